#include "admin/pages/explain_request_reader.hpp"

#include <boost/json.hpp>

namespace weir::admin {

namespace {

namespace json = boost::json;

constexpr std::string_view kMembers =
    "method, host, path, ip, headers, body, certificate, scheme, listener, domain, descriptor, exact and "
    "cost";

using Fault = ExplainRequestFault;

Fault take_text(const json::value& value, std::string_view name, std::string& text) {
  if (!value.is_string()) return "\"" + std::string(name) + "\" is not a string";
  text = std::string_view(value.as_string().data(), value.as_string().size());
  return std::nullopt;
}

// Reads the header fields from an object such as {"X-Tenant": "acme", "Cookie": ["a=1", "b=2"]}. A list means
// several lines of one field.
Fault take_headers(const json::value& value, policy::ExplainRequest& explain_request) {
  if (!value.is_object()) return "\"headers\" is not an object of names and values";
  for (const auto& member : value.as_object()) {
    const auto& json_value = member.value();
    const auto add = [&](const json::value& line) {
      auto& header = explain_request.headers.emplace_back(std::string(member.key()), std::string());
      return take_text(line, header.first, header.second);
    };
    if (!json_value.is_array()) {
      if (auto fault = add(json_value)) return fault;
      continue;
    }
    for (const auto& line : json_value.as_array())
      if (auto fault = add(line)) return fault;
  }
  return std::nullopt;
}

Fault take_address(const json::value& value, policy::ExplainRequest& explain_request) {
  std::string text;
  if (auto fault = take_text(value, "ip", text)) return fault;
  const auto address = base::IpAddress::parse(text);
  if (!address) return "\"ip\" is not an IP address such as \"203.0.113.7\"";
  explain_request.peer = *address;
  return std::nullopt;
}

Fault take_scheme(const json::value& value, policy::ExplainRequest& explain_request) {
  std::string text;
  if (auto fault = take_text(value, "scheme", text)) return fault;
  explain_request.secure = text == "https";
  if (text == "http" || text == "https") return std::nullopt;
  return "\"scheme\" is neither \"http\" nor \"https\"";
}

Fault take_descriptor(const json::value& value, policy::ExplainQuestion& question) {
  if (!value.is_object()) return "\"descriptor\" is not an object of keys and values";
  for (const auto& member : value.as_object()) {
    auto& [key, text] = question.descriptor.emplace_back(std::string(member.key()), std::string());
    if (auto fault = take_text(member.value(), key, text)) return fault;
  }
  return std::nullopt;
}

Fault take_cost(const json::value& value, policy::ExplainQuestion& question) {
  const auto cost = value.is_int64() ? value.as_int64() : -1;
  if (cost < 0 || cost > static_cast<std::int64_t>(limit::kMaxCost))
    return "\"cost\" is not a whole number from 0 to " + std::to_string(limit::kMaxCost);
  question.cost = static_cast<limit::Cost>(cost);
  return std::nullopt;
}

// Reads a member that only a question has. Returns false if no question has a member with this name.
bool take_member_of_question(std::string_view name, const json::value& value,
                             policy::ExplainRequest& explain_request, Fault& fault) {
  if (name != "domain" && name != "descriptor" && name != "exact" && name != "cost") return false;
  if (!explain_request.question) explain_request.question.emplace();
  auto& question = *explain_request.question;
  if (name == "domain")
    fault = take_text(value, name, question.domain);
  else if (name == "descriptor")
    fault = take_descriptor(value, question);
  else if (name == "cost")
    fault = take_cost(value, question);
  else if (value.is_bool())
    question.exact = value.as_bool();
  else
    fault = "\"exact\" is neither true nor false";
  return true;
}

Fault take_member(std::string_view name, const json::value& value, policy::ExplainRequest& explain_request) {
  if (name == "method") return take_text(value, name, explain_request.method);
  if (name == "host") return take_text(value, name, explain_request.host.emplace());
  if (name == "path") return take_text(value, name, explain_request.target);
  if (name == "ip") return take_address(value, explain_request);
  if (name == "headers") return take_headers(value, explain_request);
  if (name == "body") return take_text(value, name, explain_request.body);
  if (name == "certificate") return take_text(value, name, explain_request.certificate_subject);
  if (name == "scheme") return take_scheme(value, explain_request);
  if (name == "listener") return take_text(value, name, explain_request.listener);
  Fault fault;
  if (take_member_of_question(name, value, explain_request, fault)) return fault;
  return "there is no member \"" + std::string(name) + "\"; expected one of " + std::string(kMembers);
}

}  // namespace

ExplainRequestFault read_explain_request(std::string_view text, policy::ExplainRequest& explain_request) {
  json::error_code ec;
  const auto json_value = json::parse(json::string_view(text.data(), text.size()), ec);
  if (ec || !json_value.is_object()) return "the body is not a JSON object of " + std::string(kMembers);
  explain_request.peer = *base::IpAddress::parse("127.0.0.1");
  explain_request.host.reset();
  for (const auto& [name, value] : json_value.as_object())
    if (auto fault = take_member({name.data(), name.size()}, value, explain_request)) return fault;
  // A question needs no host. Without an empty host, weir would choose a host for it.
  if (explain_request.question && !explain_request.host) explain_request.host.emplace();
  return std::nullopt;
}

}  // namespace weir::admin
