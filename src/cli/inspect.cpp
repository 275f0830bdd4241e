#include "weir/cli/inspect.hpp"

#include "cli/admin_json.hpp"
#include "cli/exit_status.hpp"
#include "cli/report.hpp"

#include "weir/base/ip_address.hpp"
#include "weir/observe/json_value.hpp"

#include <algorithm>
#include <iostream>
#include <stdexcept>

#include <boost/json.hpp>

namespace weir::cli {

namespace {

namespace json = boost::json;

constexpr unsigned kOk = 200;

// Thrown if a running weir does not accept the token, or fails to process a request.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct InvalidRequest : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Percent-encodes all characters except the unreserved characters of RFC 3986 §2.3.
std::string escaped(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string out;
  for (const char c : text) {
    const auto octet = static_cast<unsigned char>(c);
    if (kPlain.find(c) != std::string_view::npos)
      out += c;
    else
      out.append(1, '%').append(1, kHex[octet >> 4]).append(1, kHex[octet & 15]);
  }
  return out;
}

// Returns the JSON object of the reply. If the status is not 200, throws an exception with the reply's error
// message: Refusal for 401 and 5xx, otherwise InvalidRequest. Throws NotWeir if the object has no member
// `wanted`.
json::object ask(const AdminAccess& access, std::string_view method, std::string target, std::string body,
                 const char* wanted) {
  const auto reply = ask_admin({.address = access.address,
                                .token = access.token,
                                .method = method,
                                .target = std::move(target),
                                .body = std::move(body)});
  auto reply_json = object_in(reply);
  if (reply.status == kOk && !reply_json.contains(wanted)) throw NotWeir();
  if (reply.status == kOk) return reply_json;
  if (reply.status == 401) throw Refusal(why_unauthorized(access.token));
  const auto what = message_in(reply_json, reply);
  if (reply.status >= 500) throw Refusal(what);
  throw InvalidRequest(what);
}

// Prints the text that `report` returns. Returns the command's exit code. If `report` throws, prints the
// error.
template <class Report>
int tell(const AdminAccess& access, Report report) {
  try {
    std::cout << report() << std::flush;
    return 0;
  } catch (const InvalidRequest& error) {
    std::cerr << "weir: " << error.what() << '\n';
    return kWrong;
  } catch (const Refusal& error) {
    std::cerr << "weir: " << access.address.to_string() << ": " << error.what() << '\n';
    return kFailed;
  } catch (const std::runtime_error& error) {
    std::cerr << "weir: " << access.address.to_string() << ": " << error.what()
              << "\nthis command needs a running weir: start weir run --config FILE, or write --admin ADDR\n";
    return kFailed;
  }
}

// Returns the method and the URL, such as "GET" and "http://host/path". If the arguments are wrong, throws an
// error whose message says what to write instead.
std::pair<std::string, std::string> method_and_url(const std::vector<std::string>& request) {
  const auto& url = request.back();
  const std::string method = request.size() > 1 ? request.front() : "GET";
  if (method.find('/') != std::string::npos)
    throw InvalidRequest("\"" + method + "\" is not a method; write weir explain GET " + method);
  const auto scheme = url.find("://");
  const bool is_whole = scheme != std::string::npos && scheme < url.find('/');
  if (url.find('/') != std::string::npos && !url.starts_with('/') && !is_whole)
    throw InvalidRequest("\"" + url + "\" is not a URL; write \"http://" + url + "\", or only a path: \"/" +
                         url + "\"");
  if (url.find('/') == std::string::npos)
    throw InvalidRequest("\"" + url + "\" is not a URL; write a path such as \"/" +
                         (url == "GET" ? "api" : url) + "\", or \"http://HOST/PATH\"");
  return {method, url};
}

// Adds the options that describe a question to weir (weir/ask/question.hpp) to the request: --domain,
// --exact, --cost and --descriptor. Returns false if the user typed none of them.
bool add_question(const ExplainOptions& options, json::object& explain_request) {
  if (!options.domain.empty()) explain_request["domain"] = options.domain;
  if (options.exact) explain_request["exact"] = true;
  if (!options.cost.empty()) {
    json::error_code ec;
    const auto cost = json::parse(options.cost, ec);
    if (ec || !cost.is_int64() || cost.as_int64() < 0)
      throw InvalidRequest("--cost \"" + options.cost + "\" is not a whole number; write such as --cost 5");
    explain_request["cost"] = cost;
  }
  json::object descriptor;
  for (const auto& entry : options.descriptor) {
    const auto equals = entry.find('=');
    if (equals == std::string::npos || equals == 0)
      throw InvalidRequest("--descriptor \"" + entry + "\" has no key; write KEY=VALUE");
    descriptor[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  if (!descriptor.empty()) explain_request["descriptor"] = std::move(descriptor);
  return !explain_request.empty();
}

json::object explain_request_of(const ExplainOptions& options) {
  json::object explain_request;
  const bool is_question = add_question(options, explain_request);
  if (options.request.empty() && !is_question)
    throw InvalidRequest(
        "there is no request; write a URL, such as weir explain /api, or --descriptor KEY=VALUE for a "
        "question");
  const auto [method, whole_url] =
      method_and_url(options.request.empty() ? std::vector<std::string>{"/"} : options.request);
  explain_request["method"] = method;
  std::string_view url = whole_url;
  if (const auto scheme = url.find("://"); scheme != std::string_view::npos && scheme < url.find('/')) {
    const auto name = url.substr(0, scheme);
    if (name != "http" && name != "https")
      throw InvalidRequest("\"" + whole_url + "\" begins with " + std::string(name) +
                           "://; write http:// or https://");
    explain_request["scheme"] = name;
    url.remove_prefix(scheme + 3);
    const auto end = std::min(url.find_first_of("/?"), url.size());
    explain_request["host"] = url.substr(0, end);
    url.remove_prefix(end);
  }
  // A URL such as "http://host" has no path, so weir uses "/".
  explain_request["path"] = url.starts_with('/') ? std::string(url) : "/" + std::string(url);
  if (!options.ip.empty()) {
    if (!base::IpAddress::parse(options.ip))
      throw InvalidRequest("--ip \"" + options.ip + "\" is not an IP address; write one such as 203.0.113.7");
    explain_request["ip"] = options.ip;
  }
  if (!options.body.empty()) explain_request["body"] = options.body;
  json::object headers;
  for (const auto& line : options.headers) {
    const auto colon = line.find(':');
    if (colon == std::string::npos || colon == 0)
      throw InvalidRequest("-H \"" + line + "\" is not a header; write \"Name: value\"");
    const auto value = line.find_first_not_of(" \t", colon + 1);
    auto& lines = headers[line.substr(0, colon)];
    if (!lines.is_array()) lines = json::array();
    lines.as_array().emplace_back(value == std::string::npos ? "" : line.substr(value));
  }
  if (!headers.empty()) explain_request["headers"] = std::move(headers);
  return explain_request;
}

// Returns the first line of standard input, without its line break.
std::string line_of_input() {
  std::string line;
  std::getline(std::cin, line);
  if (line.ends_with('\r')) line.pop_back();
  if (line.empty()) throw InvalidRequest("standard input has no API key; write it there, such as < FILE");
  return line;
}

// Returns the text if it is an id of an API key. Any other text may be the key itself, so weir neither sends
// nor shows it.
const std::string& id_in(const std::string& text) {
  if (policy::ApiKeys::is_id(text)) return text;
  throw InvalidRequest(
      "the argument is not the id of a key; write the id as weir client-keys list shows it, such as "
      "sha256:9f86d081884c7d65");
}

// Returns the body for PATCH /api/client-keys. The key itself does not leave this process.
json::object client_key_of(const ClientKeysOptions& options) {
  using policy::ApiKeys;
  constexpr std::string_view kBegin = "sha256:";
  json::object key;
  if (options.key == "-")
    key["sha256"] = ApiKeys::hex_of(ApiKeys::digest(line_of_input()));
  else if (ApiKeys::is_id(options.key))
    key["id"] = options.key;
  else if (const auto hex = options.key.substr(std::min(kBegin.size(), options.key.size()));
           options.key.starts_with(kBegin) && ApiKeys::parse_digest(hex))
    key["sha256"] = hex;
  else
    throw InvalidRequest(
        "the argument is neither an id such as sha256:9f86d081884c7d65 nor sha256: and the 64 digits of a "
        "SHA-256; write - and give the key to standard input, where other users of the machine cannot see "
        "it");
  const auto add = [&](const char* name, const std::optional<std::string>& value) {
    if (value) key[name] = *value;
  };
  add("user", options.owner.user);
  add("org", options.owner.org);
  add("tier", options.owner.tier);
  add("service", options.owner.service);
  return key;
}

}  // namespace

int run_explain(const AdminAccess& access, const ExplainOptions& options) {
  return tell(access, [&] {
    const auto reply_json =
        ask(access, "POST", "/api/explain", observe::json_text(explain_request_of(options)), "verdict");
    return options.json ? observe::json_text(reply_json) + "\n" : explanation_report(reply_json);
  });
}

int run_keys(const AdminAccess& access, const KeysOptions& options) {
  return tell(access, [&] {
    std::string target = "/api/keys?rule=" + escaped(options.rule);
    for (const auto& part : options.key) target += "&key=" + escaped(part);
    const auto reply_json = ask(access, options.reset ? "DELETE" : "GET", std::move(target), {}, "limits");
    return options.json ? observe::json_text(reply_json) + "\n" : keys_report(reply_json);
  });
}

int run_client_keys(const AdminAccess& access, const ClientKeysOptions& options) {
  using Action = ClientKeysOptions::Action;
  return tell(access, [&] {
    const std::string page = "/api/client-keys";
    const auto reply_json =
        options.action == Action::List ? ask(access, "GET", page, {}, "keys")
        : options.action == Action::Set
            ? ask(access, "PATCH", page, observe::json_text(client_key_of(options)), "key")
            : ask(access, "DELETE", page + "?id=" + escaped(id_in(options.key)), {}, "key");
    return options.json ? observe::json_text(reply_json) + "\n" : client_keys_report(reply_json);
  });
}

int run_servers(const AdminAccess& access, const ServersOptions& options) {
  return tell(access, [&] {
    json::object change;
    if (options.drained) change["drained"] = *options.drained;
    if (options.weight) change["weight"] = *options.weight;
    const bool lists = change.empty();
    if (!lists) {
      change["upstream"] = options.upstream;
      change["server"] = options.server;
    }
    const auto reply_json = ask(access, lists ? "GET" : "POST", "/api/servers",
                                lists ? std::string() : observe::json_text(change), "servers");
    return options.json ? observe::json_text(reply_json) + "\n" : servers_report(reply_json);
  });
}

}  // namespace weir::cli
