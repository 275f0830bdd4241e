#include "weir/acme/messages.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include <boost/json.hpp>

namespace weir::acme {

namespace json = boost::json;

namespace {

constexpr std::size_t kMostWords = 500;           // the most bytes of a problem in the log
constexpr std::size_t kMostAuthorizations = 100;  // the most authorizations of an order

base::Result<json::object> object_of(std::string_view text, const char* what) {
  boost::system::error_code fault;
  auto value = json::parse({text.data(), text.size()}, fault);
  if (fault || !value.is_object())
    return base::Error{std::string("the authority's ") + what + " is no JSON object"};
  return std::move(value.as_object());
}

base::Error lacks(const char* what, std::string_view member) {
  return {std::string("the authority's ") + what + " has no usable \"" + std::string(member) + "\""};
}

// Returns the text of a member; empty if the member is missing or no text.
std::string text_of(const json::object& object, std::string_view member) {
  const auto* value = object.if_contains({member.data(), member.size()});
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

const json::object* object_in(const json::object& object, std::string_view member) {
  const auto* value = object.if_contains({member.data(), member.size()});
  return value != nullptr ? value->if_object() : nullptr;
}

const json::array* array_in(const json::object& object, std::string_view member) {
  const auto* value = object.if_contains({member.data(), member.size()});
  return value != nullptr ? value->if_array() : nullptr;
}

Problem problem_of(const json::object& object) {
  constexpr std::string_view kPrefix = "urn:ietf:params:acme:error:";
  Problem problem{text_of(object, "type"), text_of(object, "detail")};
  if (problem.type.starts_with(kPrefix)) problem.type.erase(0, kPrefix.size());
  return problem;
}

// Returns the status with this name. All other statuses ("deactivated", "expired", "revoked") become Invalid,
// because weir must begin again after each of them.
Status status_of(const json::object& object) {
  const auto text = text_of(object, "status");
  if (text == "pending") return Status::Pending;
  if (text == "ready") return Status::Ready;
  if (text == "processing") return Status::Processing;
  return text == "valid" ? Status::Valid : Status::Invalid;
}

}  // namespace

base::Result<Directory> parse_directory(std::string_view text) {
  const auto object = object_of(text, "directory");
  if (!object) return object.error();
  Directory directory{.new_nonce = text_of(*object, "newNonce"),
                      .new_account = text_of(*object, "newAccount"),
                      .new_order = text_of(*object, "newOrder"),
                      .renewal_info = text_of(*object, "renewalInfo")};
  if (directory.new_nonce.empty()) return lacks("directory", "newNonce");
  if (directory.new_account.empty()) return lacks("directory", "newAccount");
  if (directory.new_order.empty()) return lacks("directory", "newOrder");
  if (const auto* meta = object_in(*object, "meta"))
    if (const auto* needs = meta->if_contains("externalAccountRequired"))
      directory.needs_external_account = needs->is_bool() && needs->as_bool();
  return directory;
}

Problem parse_problem(std::string_view text) {
  const auto object = object_of(text, "problem");
  return object ? problem_of(*object) : Problem{};
}

std::string in_words(const Problem& problem) {
  auto words = problem.detail.empty() ? std::string("no reason given") : problem.detail;
  if (!problem.type.empty()) words += " (" + problem.type + ")";
  if (words.size() > kMostWords) words.resize(kMostWords);
  std::replace_if(
      words.begin(), words.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return words;
}

base::Result<Order> parse_order(std::string_view text) {
  const auto object = object_of(text, "order");
  if (!object) return object.error();
  Order order{.status = status_of(*object),
              .authorizations = {},
              .finalize = text_of(*object, "finalize"),
              .certificate = text_of(*object, "certificate")};
  if (order.finalize.empty()) return lacks("order", "finalize");
  const auto* authorizations = array_in(*object, "authorizations");
  if (authorizations == nullptr || authorizations->size() > kMostAuthorizations)
    return lacks("order", "authorizations");
  for (const auto& url : *authorizations) {
    if (!url.is_string()) return lacks("order", "authorizations");
    order.authorizations.emplace_back(url.as_string());
  }
  if (const auto* error = object_in(*object, "error")) order.error = problem_of(*error);
  return order;
}

base::Result<Authorization> parse_authorization(std::string_view text) {
  const auto object = object_of(text, "authorization");
  if (!object) return object.error();
  Authorization authorization{.status = status_of(*object), .name = {}, .challenges = {}};
  if (const auto* identifier = object_in(*object, "identifier"))
    authorization.name = text_of(*identifier, "value");
  if (authorization.name.empty()) return lacks("authorization", "identifier");
  const auto* challenges = array_in(*object, "challenges");
  if (challenges == nullptr) return lacks("authorization", "challenges");
  for (const auto& each : *challenges) {
    const auto* challenge = each.if_object();
    if (challenge == nullptr) continue;
    if (const auto* error = object_in(*challenge, "error")) authorization.error = problem_of(*error);
    Challenge read{text_of(*challenge, "type"), text_of(*challenge, "url"), text_of(*challenge, "token")};
    if (!read.url.empty() && is_token(read.token)) authorization.challenges.push_back(std::move(read));
  }
  return authorization;
}

base::Result<RenewalWindow> parse_renewal_info(std::string_view text) {
  const auto object = object_of(text, "renewal information");
  if (!object) return object.error();
  const auto* window = object_in(*object, "suggestedWindow");
  if (window == nullptr) return lacks("renewal information", "suggestedWindow");
  const auto start = parse_time(text_of(*window, "start")), end = parse_time(text_of(*window, "end"));
  if (!start || !end || *end <= *start) return lacks("renewal information", "suggestedWindow");
  return RenewalWindow{*start, *end};
}

std::optional<SysTime> parse_time(std::string_view text) {
  int year = 0;
  unsigned month = 0, day = 0, hour = 0, minute = 0, second = 0;
  int size = 0;
  const std::string owned(text);
  if (std::sscanf(owned.c_str(), "%4d-%2u-%2uT%2u:%2u:%2u%n", &year, &month, &day, &hour, &minute, &second,
                  &size) != 6)
    return std::nullopt;
  auto rest = text.substr(static_cast<std::size_t>(size));
  if (rest.starts_with('.'))
    rest.remove_prefix(std::min(rest.find_first_not_of("0123456789", 1), rest.size()));
  const auto date = std::chrono::year(year) / static_cast<int>(month) / static_cast<int>(day);
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const SysTime local = std::chrono::sys_days(date) + std::chrono::hours(hour) +
                        std::chrono::minutes(minute) + std::chrono::seconds(second);
  if (rest == "Z" || rest == "z") return local;
  unsigned hours = 0, minutes = 0;
  if (rest.size() != 6 || (rest[0] != '+' && rest[0] != '-') ||
      std::sscanf(std::string(rest.substr(1)).c_str(), "%2u:%2u", &hours, &minutes) != 2)
    return std::nullopt;
  const std::chrono::minutes offset(hours * 60 + minutes);
  return rest[0] == '+' ? local - offset : local + offset;
}

bool is_token(std::string_view text) noexcept {
  constexpr std::size_t kMost = 128;
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !text.empty() && text.size() <= kMost && std::all_of(text.begin(), text.end(), good);
}

}  // namespace weir::acme
