#include "weir/acme/client.hpp"

#include "weir/acme/certificate.hpp"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <utility>

#include <boost/json.hpp>

namespace weir::acme {

namespace json = boost::json;

namespace {

constexpr const char* kTooLong = "the authority did not finish within 5 minutes";  // Client::kLongestOrder
constexpr unsigned kMostNonces = 10;  // attempts to send a request if the authority rejects each nonce

std::optional<std::chrono::seconds> retry_after_in(const fetch::Response& response) {
  const auto text = response.find("Retry-After");
  std::uint32_t seconds = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return std::chrono::seconds(seconds);
}

fetch::Request request_to(const Settings& settings, const std::string& url) {
  return {.url = url, .ca_file = settings.ca};
}

base::Error in(const std::string& url, const std::string& what) {
  return {url + ": " + what};
}

bool is_success(const fetch::Response& response) noexcept {
  return response.status >= 200 && response.status < 300;
}

std::string order_text(const Names& names, const std::string& replaces) {
  json::array identifiers;
  for (const auto& name : names) identifiers.push_back(json::object{{"type", "dns"}, {"value", name}});
  json::object order{{"identifiers", std::move(identifiers)}};
  if (!replaces.empty()) order["replaces"] = replaces;
  return json::serialize(order);
}

base::Result<Directory> read_directory(const Settings& settings, const std::stop_token& stop) {
  const auto response = fetch::request(request_to(settings, settings.directory), stop);
  if (!response) return in(settings.directory, response.error().message);
  if (!is_success(*response)) return in(settings.directory, "status " + std::to_string(response->status));
  auto directory = parse_directory(response->body);
  if (!directory) return in(settings.directory, directory.error().message);
  return directory;
}

}  // namespace

Client::Client(const Settings& settings, const Key& account, std::stop_token stop)
    : settings_(settings),
      account_(account),
      stop_(std::move(stop)),
      latest_(std::chrono::steady_clock::now() + kLongestOrder) {}

base::Result<fetch::Response> Client::send(const fetch::Request& request) {
  if (std::chrono::steady_clock::now() > latest_) return base::Error{kTooLong};
  auto response = fetch::request(request, stop_);
  if (!response) return in(request.url, response.error().message);
  nonce_ = response->find("Replay-Nonce");
  if (is_success(*response)) return response;
  wanted_pause_ = retry_after_in(*response);
  problem_ = parse_problem(response->body);
  return in(request.url, "status " + std::to_string(response->status) + ": " + in_words(problem_));
}

base::Result<void> Client::renew_nonce() {
  auto request = request_to(settings_, directory_.new_nonce);
  request.method = "HEAD";
  const auto response = send(request);
  if (!response) return response.error();
  if (nonce_.empty()) return in(directory_.new_nonce, "the answer has no Replay-Nonce");
  return {};
}

// Sends a signed request. If the authority rejects the nonce, repeats the request with the nonce in the
// authority's answer (RFC 8555 §6.5).
base::Result<fetch::Response> Client::post(const std::string& url, std::string_view payload) {
  for (unsigned attempt = 1;; ++attempt) {
    if (nonce_.empty())
      if (const auto renewed = renew_nonce(); !renewed) return renewed.error();
    auto request = request_to(settings_, url);
    request.method = "POST";
    request.fields = {{"Content-Type", "application/jose+json"}};
    auto body =
        sign(account_, {.nonce = std::exchange(nonce_, {}), .url = url, .account = account_url_}, payload);
    if (!body) return body.error();
    request.body = std::move(*body);
    problem_ = {};
    auto response = send(request);
    if (response || problem_.type != "badNonce" || attempt == kMostNonces) return response;
  }
}

// Reads the directory, and creates the account or finds it again. weir stores only the account's key, because
// the authority finds the account by the key.
base::Result<void> Client::begin() {
  auto directory = read_directory(settings_, stop_);
  if (!directory) return directory.error();
  directory_ = std::move(*directory);
  if (directory_.needs_external_account && !settings_.external_account)
    return in(settings_.directory,
              "the authority takes only accounts that were made at its web site; expected "
              "external_account = { kid = \"…\", hmac_key = \"…\" } in [acme]");
  json::object account{{"termsOfServiceAgreed", true}};
  if (!settings_.email.empty()) account["contact"] = json::array{"mailto:" + settings_.email};
  if (settings_.external_account)
    account["externalAccountBinding"] =
        json::parse(bind_account(account_, *settings_.external_account, directory_.new_account));
  const auto response = post(directory_.new_account, json::serialize(account));
  if (!response) return response.error();
  account_url_ = response->find("Location");
  if (account_url_.empty()) return in(directory_.new_account, "the answer has no Location");
  return {};
}

// Places an order that names the certificate to replace. If the authority rejects the order for another
// reason than its rate limit, places the order again without the name of that certificate (RFC 9773 §5).
base::Result<Client::Placed> Client::place(const Names& names, const std::string& replaces) {
  const bool tells = !replaces.empty() && !directory_.renewal_info.empty();
  auto response = post(directory_.new_order, order_text(names, tells ? replaces : std::string()));
  if (!response && tells && !problem_.type.empty() && problem_.type != "rateLimited")
    response = post(directory_.new_order, order_text(names, {}));
  if (!response) return response.error();
  auto order = parse_order(response->body);
  if (!order) return in(directory_.new_order, order.error().message);
  std::string url(response->find("Location"));
  if (url.empty()) return in(directory_.new_order, "the answer has no Location");
  return Placed{std::move(url), std::move(*order)};
}

// Proves control of each name for which the authority has no proof yet.
base::Result<void> Client::prove(const Names& names, const std::vector<std::string>& authorizations,
                                 const Show& show) {
  std::vector<ToAnswer> to_answer;
  std::vector<std::pair<std::string, std::string>> checks;  // URLs: the challenge, and its authorization
  for (const auto& url : authorizations) {
    const auto response = post(url, "");
    if (!response) return response.error();
    const auto authorization = parse_authorization(response->body);
    if (!authorization) return in(url, authorization.error().message);
    if (authorization->status == Status::Valid) continue;
    if (std::find(names.begin(), names.end(), authorization->name) == names.end())
      return in(url, "the authority asks about another name than ordered");
    const auto& offered = authorization->challenges;
    const auto found = std::find_if(offered.begin(), offered.end(), [&](const Challenge& each) {
      return each.type == name_of(settings_.challenge);
    });
    if (found == offered.end())
      return in(url, std::string("the authority does not offer the challenge ") +
                         name_of(settings_.challenge) + " for " + authorization->name);
    to_answer.push_back({authorization->name, found->token});
    checks.emplace_back(found->url, url);
  }
  if (checks.empty()) return {};
  if (auto shown = show(to_answer); !shown) return shown;
  for (const auto& [challenge, authorization] : checks)
    if (const auto told = post(challenge, "{}"); !told) return told.error();
  for (const auto& [challenge, authorization] : checks)
    if (auto proven = await_proof(authorization); !proven) return proven;
  return {};
}

base::Result<void> Client::await_proof(const std::string& authorization) {
  for (unsigned round = 0;; ++round) {
    const auto response = post(authorization, "");
    if (!response) return response.error();
    const auto read = parse_authorization(response->body);
    if (!read) return in(authorization, read.error().message);
    if (read->status == Status::Valid) return {};
    if (read->status == Status::Invalid)
      return base::Error{"the authority could not check " + read->name + ": " + in_words(read->error)};
    if (auto waited = pause(*response, round); !waited) return waited;
  }
}

// Reads the order again and again until its status is neither `passing` nor Processing. Returns an error if
// the status is then Invalid.
base::Result<Order> Client::await(Placed placed, Status passing) {
  for (unsigned round = 0; placed.order.status == passing || placed.order.status == Status::Processing;
       ++round) {
    const auto response = post(placed.url, "");
    if (!response) return response.error();
    auto order = parse_order(response->body);
    if (!order) return in(placed.url, order.error().message);
    placed.order = std::move(*order);
    if (placed.order.status != passing && placed.order.status != Status::Processing) break;
    if (const auto waited = pause(*response, round); !waited) return waited.error();
  }
  if (placed.order.status == Status::Invalid)
    return base::Error{"the authority rejected the order: " + in_words(placed.order.error)};
  return std::move(placed.order);
}

// Waits before weir asks for a status again: as long as the authority says, at most 30 seconds. If the
// authority says nothing, waits a quarter of a second in the first round and twice as long in each further
// round, at most 8 seconds. Returns an error if the order would then take too long, or if weir stops.
base::Result<void> Client::pause(const fetch::Response& response, unsigned round) {
  constexpr std::chrono::milliseconds kFirst{250};
  constexpr std::chrono::seconds kMost{30};
  std::chrono::milliseconds time = kFirst * (1U << std::min(round, 5U));
  if (const auto wanted = retry_after_in(response))
    time = std::min<std::chrono::milliseconds>(*wanted, kMost);
  if (std::chrono::steady_clock::now() + time > latest_) return base::Error{kTooLong};
  if (!sleep_for(time, stop_)) return base::Error{"weir is stopping"};
  return {};
}

base::Result<std::string> Client::order(const Names& names, const std::string& replaces, const Key& key,
                                        const Show& show) {
  if (const auto begun = begin(); !begun) return begun.error();
  auto placed = place(names, replaces);
  if (!placed) return placed.error();
  if (const auto proven = prove(names, placed->order.authorizations, show); !proven) return proven.error();
  auto ready = await(*placed, Status::Pending);
  if (!ready) return ready.error();
  const auto request = make_signing_request(key, names);
  if (!request) return request.error();
  if (ready->status != Status::Valid) {
    const auto told = post(ready->finalize, json::serialize(json::object{{"csr", base64url(*request)}}));
    if (!told) return told.error();
  }
  auto valid = await({placed->url, std::move(*ready)}, Status::Ready);
  if (!valid) return valid.error();
  auto chain = post(valid->certificate, "");
  if (!chain) return chain.error();
  if (auto fault = fault_in_chain(chain->body, key, names); !fault.empty())
    return base::Error{std::move(fault)};
  return {boost::system::in_place_value, std::move(chain->body)};
}

AskedWindow ask_window(const Settings& settings, const std::string& ari_id, const std::stop_token& stop) {
  const auto directory = read_directory(settings, stop);
  if (!directory) return {.fault = directory.error().message};
  if (directory->renewal_info.empty()) return {};
  const auto response = fetch::request(request_to(settings, directory->renewal_info + "/" + ari_id), stop);
  if (!response) return {.fault = response.error().message};
  if (!is_success(*response)) return {.fault = "status " + std::to_string(response->status)};
  const auto window = parse_renewal_info(response->body);
  if (!window) return {.retry_after = retry_after_in(*response), .fault = window.error().message};
  return {.window = *window, .retry_after = retry_after_in(*response)};
}

bool sleep_for(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any condition;
  std::unique_lock lock(mutex);
  condition.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace weir::acme
