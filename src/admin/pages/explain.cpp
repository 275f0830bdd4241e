// POST /api/explain: the body describes an HTTP request as JSON. The response says what weir would decide for
// that request, and why.
#include "admin/pages/explain_request_reader.hpp"
#include "admin/pages/limit_json.hpp"
#include "admin/pages/pages.hpp"

#include "weir/observe/json_value.hpp"

#include <string>
#include <utility>

namespace weir::admin {

namespace {

namespace json = boost::json;

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

json::object explanation_json(const policy::Explanation& explanation) {
  json::array rules;
  for (const auto& rule : explanation.rules) rules.push_back(rule_json(rule));
  return {{"verdict", verdict_json(explanation.verdict)},
          {"client", client_json(explanation.client)},
          {"route", route_json(explanation.route)},
          {"rules", std::move(rules)}};
}

}  // namespace

net::Task<Answer> answer_explain(const Sources& sources, const PageRequest& question, const net::Executor&) {
  policy::ExplainRequest explain_request;
  if (const auto fault = read_explain_request(question.body, explain_request))
    co_return error_answer(400, "bad_request", *fault);
  auto pending = sources.explain(std::move(explain_request));
  const auto explanation = co_await std::move(pending);
  co_return Answer{.status = 200, .body = observe::json_text(explanation_json(explanation))};
}

}  // namespace weir::admin
