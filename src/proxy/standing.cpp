#include "proxy/standing.hpp"

namespace weir::proxy {

void append_standing(std::string& fields, const policy::Decision& decision, const ServerSettings& server,
                     base::TimePoint asked_at) {
  if (decision.rule == nullptr) return;
  const auto& outcome = decision.outcome;
  http::append_standing(fields,
                        {.rule = decision.rule->name,
                         .limit = limit::quota_of(*decision.limiter, outcome),
                         .remaining = outcome.remaining,
                         .window = limit::window(*decision.limiter),
                         .more_after = outcome.more_after,
                         .reset_at = asked_at + outcome.reset_after,
                         .exceeded = decision.exceeded,
                         .concurrency = limit::holds(*decision.limiter)},
                        {.x = server.x_ratelimit, .ietf = server.ietf_ratelimit});
}

RefusalText append_refusal(std::string& fields, std::string& body, const policy::Rule& rule,
                           base::Duration retry_after, const http::Fields& request) {
  const http::Refusal refusal{.rule = rule.name,
                              .status = rule.refusal_status,
                              .retry_after_seconds = http::retry_after_seconds(retry_after)};
  if (refusal.retry_after_seconds) http::append_retry_after(fields, *refusal.retry_after_seconds);
  const auto* accept = http::find_field(request, http::FieldId::Accept);
  const bool problem = accept != nullptr && http::wants_problem_json(accept->value);
  if (rule.refusal_body)
    body = *rule.refusal_body;
  else if (problem)
    http::append_refusal_problem(body, refusal);
  else
    http::append_refusal_json(body, refusal);
  return {refusal.status, rule.refusal_body ? "text/plain; charset=utf-8"
                          : problem         ? "application/problem+json"
                                            : "application/json"};
}

}  // namespace weir::proxy
