#include "weir/policy/inspection.hpp"

#include "weir/policy/evaluation.hpp"

#include <algorithm>

namespace weir::policy {

namespace {

// Returns true if the body is needed to choose the override that applies.
bool overrides_ask(const Rule& rule, const Request& request) {
  for (const auto& variant : rule.overrides) {
    const auto known = variant.match.known(request);
    if (known != Match::Known::No) return known == Match::Known::Open;
  }
  return false;
}

}  // namespace

bool is_coded(const http::Fields& fields) noexcept {
  return std::any_of(fields.begin(), fields.end(), [](const http::Field& field) {
    return http::equal_ignoring_case(field.name, "Content-Encoding") && !field.value.empty() &&
           !http::equal_ignoring_case(field.value, "identity");
  });
}

bool asks_for_body(const Rule& rule, const Request& request) {
  if (rule.max_body == 0) return false;
  const auto known = rule.match.known(request);
  if (known == Match::Known::No) return false;
  if (rule.on_missing == OnMissing::Skip && missing_part(rule, request) != nullptr) return false;
  return known == Match::Known::Open || reads_body(rule.cost_from) || overrides_ask(rule, request);
}

std::uint64_t wanted_body(RuleList rules, const Request& request) {
  std::uint64_t most = 0;
  for (const Rule& rule : rules)
    if (rule.max_body > most && asks_for_body(rule, request)) most = rule.max_body;
  return most;
}

std::uint64_t body_wanted_to_enforce(RuleList rules, const Request& request) {
  std::uint64_t most = 0;
  for (const Rule& rule : rules)
    if (rule.mode == Mode::Enforce && rule.max_body > most && asks_for_body(rule, request))
      most = rule.max_body;
  return most;
}

RequestBody::State hidden_body(const Rule& rule, const Request& request) {
  using State = RequestBody::State;
  const auto& body = request.body;
  const auto state =
      body.state == State::Whole && body.text.size() > rule.max_body ? State::TooLong : body.state;
  return state != State::Whole && asks_for_body(rule, request) ? state : State::Whole;
}

}  // namespace weir::policy
