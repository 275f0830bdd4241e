#include "admin/answer.hpp"

#include <array>

#include <boost/json.hpp>

namespace weir::admin {

namespace {

namespace json = boost::json;

Answer say_health(const Sources&) {
  return {.status = 200, .body = "ok\n", .content_type = "text/plain; charset=utf-8"};
}

Answer say_readiness(const Sources& sources) {
  const Readiness now = sources.readiness ? sources.readiness() : Readiness{true, {}};
  json::object body{{"ready", now.ready}};
  if (!now.detail.empty()) body["detail"] = now.detail;
  return {.status = now.ready ? 200U : 503U, .body = json::serialize(body)};
}

Answer say_metrics(const Sources& sources) {
  return {.status = 200,
          .body = metrics_text(sources),
          .content_type = "text/plain; version=0.0.4; charset=utf-8"};
}

Answer say_rules(const Sources& sources) {
  return {.status = 200, .body = rules_json(sources)};
}

struct Page {
  std::string_view path;
  bool open;  // asks for no token: for probes, which carry none
  Answer (*say)(const Sources&);
};

constexpr std::array<Page, 4> kPages{{{"/healthz", true, say_health},
                                      {"/readyz", true, say_readiness},
                                      {"/metrics", false, say_metrics},
                                      {"/api/rules", false, say_rules}}};

const Page* find_page(std::string_view target) {
  const auto path = target.substr(0, target.find('?'));
  for (const Page& page : kPages)
    if (page.path == path) return &page;
  return nullptr;
}

json::object counters_of(const Sources& sources, std::size_t rule) {
  json::object out;
  for (std::size_t i = 0; i < observe::kRuleOutcomes; ++i) {
    std::uint64_t sum = 0;
    for (const auto* counters : sources.counters)
      sum += counters->decisions(static_cast<limit::RuleIndex>(rule), static_cast<observe::RuleOutcome>(i))
                 .value();
    out[observe::kRuleOutcomeNames[i]] = sum;
  }
  return out;
}

}  // namespace

Answer error_answer(unsigned status, std::string_view code, std::string_view message) {
  return {.status = status, .body = json::serialize(json::object{{"error", code}, {"message", message}})};
}

Answer answer(const Sources& sources, const Token& token, const Question& question) {
  const Page* const page = find_page(question.target);
  // The token comes first: without it nobody learns what there is.
  if (!(page && page->open) && !token.admits(question.authorization)) {
    Answer refusal =
        error_answer(401, "unauthorized", "Authorization: Bearer with the admin token is needed.");
    refusal.challenge = true;
    return refusal;
  }
  if (!page) return error_answer(404, "not_found", "There is no such page.");
  if (question.method != "GET" && question.method != "HEAD") {
    Answer refusal = error_answer(405, "method_not_allowed", "This page answers GET and HEAD.");
    refusal.allow = "GET, HEAD";
    return refusal;
  }
  return page->say(sources);
}

std::string rules_json(const Sources& sources) {
  json::array rules;
  for (std::size_t i = 0; i < sources.rules.size(); ++i) {
    const RuleText& rule = sources.rules[i];
    rules.push_back({{"name", rule.name},
                     {"algorithm", rule.algorithm},
                     {"limit", rule.limit},
                     {"match", rule.match},
                     {"key", rule.key},
                     {"store", rule.store},
                     {"mode", rule.mode},
                     {"counters", counters_of(sources, i)}});
  }
  return json::serialize(json::object{{"rules", std::move(rules)}});
}

}  // namespace weir::admin
