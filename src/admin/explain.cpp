// POST /api/explain: from a described request to what would become of it, both in JSON.
#include "admin/limit_json.hpp"
#include "admin/pages.hpp"

#include "weir/observe/json_value.hpp"

#include <optional>
#include <string>
#include <utility>

namespace weir::admin {

namespace {

namespace json = boost::json;

constexpr std::string_view kMembers = "method, host, path, ip, headers, body and certificate";

// What is wrong with the question, as a sentence.
using Fault = std::optional<std::string>;

Fault take_text(const json::value& value, std::string_view name, std::string& text) {
  if (!value.is_string()) return "\"" + std::string(name) + "\" is not a string";
  text = std::string_view(value.as_string().data(), value.as_string().size());
  return std::nullopt;
}

// {"X-Tenant": "acme", "Cookie": ["a=1", "b=2"]}: a list for a field of several lines.
Fault take_headers(const json::value& value, policy::Inquiry& inquiry) {
  if (!value.is_object()) return "\"headers\" is not an object of names and values";
  for (const auto& member : value.as_object()) {
    const auto& said = member.value();
    const auto add = [&](const json::value& line) {
      auto& header = inquiry.headers.emplace_back(std::string(member.key()), std::string());
      return take_text(line, header.first, header.second);
    };
    if (!said.is_array()) {
      if (auto fault = add(said)) return fault;
      continue;
    }
    for (const auto& line : said.as_array())
      if (auto fault = add(line)) return fault;
  }
  return std::nullopt;
}

Fault take_address(const json::value& value, policy::Inquiry& inquiry) {
  std::string text;
  if (auto fault = take_text(value, "ip", text)) return fault;
  const auto address = base::IpAddress::parse(text);
  if (!address) return "\"ip\" is not an IP address, as \"203.0.113.7\"";
  inquiry.peer = *address;
  return std::nullopt;
}

Fault take_member(std::string_view name, const json::value& value, policy::Inquiry& inquiry) {
  if (name == "method") return take_text(value, name, inquiry.method);
  if (name == "host") return take_text(value, name, inquiry.host.emplace());
  if (name == "path") return take_text(value, name, inquiry.target);
  if (name == "ip") return take_address(value, inquiry);
  if (name == "headers") return take_headers(value, inquiry);
  if (name == "body") return take_text(value, name, inquiry.body);
  if (name == "certificate") return take_text(value, name, inquiry.certificate_subject);
  return "there is no member \"" + std::string(name) + "\": they are " + std::string(kMembers);
}

Fault read_inquiry(std::string_view text, policy::Inquiry& inquiry) {
  json::error_code ec;
  const auto said = json::parse(json::string_view(text.data(), text.size()), ec);
  if (ec || !said.is_object()) return "the body is not a JSON object of " + std::string(kMembers);
  inquiry.peer = *base::IpAddress::parse("127.0.0.1");
  inquiry.host.reset();
  for (const auto& [name, value] : said.as_object())
    if (auto fault = take_member({name.data(), name.size()}, value, inquiry)) return fault;
  return std::nullopt;
}

json::object client_json(const policy::ClientExplanation& client) {
  json::object out{{"address", client.address}};
  if (client.peer != client.address) out["peer"] = client.peer;
  out["peer_trusted"] = client.peer_trusted;
  for (const auto& [name, value] : client.attributes) out[name] = value;
  return out;
}

json::value route_json(const policy::RouteExplanation& route) {
  json::array others;
  for (const auto& [name, why] : route.others) others.push_back({{"name", name}, {"why", why}});
  json::object out;
  out["name"] = route.name.empty() ? json::value(nullptr) : json::value(route.name);
  if (!route.target.empty()) out["target"] = route.target;
  if (!route.assumed_host.empty()) out["assumed_host"] = route.assumed_host;
  out["priority"] = route.priority;
  out["passed_over"] = std::move(others);
  return out;
}

json::object rule_json(const policy::RuleExplanation& rule) {
  json::object out{
      {"name", rule.name}, {"mode", rule.mode}, {"match", rule.match}, {"applies", rule.applies}};
  if (!rule.why.empty()) out["why"] = rule.why;
  if (!rule.applies) return out;
  out["key"] = texts_json(rule.key);
  out["cost"] = rule.cost;
  json::array limits;
  for (const auto& limit : rule.limits) limits.push_back(limit_json(limit));
  out["limits"] = std::move(limits);
  return out;
}

json::object verdict_json(const policy::VerdictExplanation& verdict) {
  json::object out{{"verdict", verdict.verdict}, {"why", verdict.why}};
  if (!verdict.rule.empty()) out["rule"] = verdict.rule;
  if (verdict.delay.count() > 0) out["delay_seconds"] = seconds_json(verdict.delay);
  if (verdict.retry_after.count() > 0) out["retry_after_seconds"] = seconds_json(verdict.retry_after);
  if (verdict.status != 0) out["status"] = verdict.status;
  json::object headers;
  for (const auto& [name, value] : verdict.headers) headers[name] = value;
  out["headers"] = std::move(headers);
  if (!verdict.body.empty()) out["body"] = verdict.body;
  return out;
}

json::object explanation_json(const policy::Explanation& said) {
  json::array rules;
  for (const auto& rule : said.rules) rules.push_back(rule_json(rule));
  return {{"verdict", verdict_json(said.verdict)},
          {"client", client_json(said.client)},
          {"route", route_json(said.route)},
          {"rules", std::move(rules)}};
}

}  // namespace

net::Awaitable<Answer> answer_explain(const Sources& sources, const Question& question) {
  policy::Inquiry inquiry;
  if (const auto fault = read_inquiry(question.body, inquiry))
    co_return error_answer(400, "bad_request", *fault);
  auto asked = sources.explain(std::move(inquiry));
  const auto said = co_await std::move(asked);
  co_return Answer{.status = 200, .body = observe::json_text(explanation_json(said))};
}

}  // namespace weir::admin
