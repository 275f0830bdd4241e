#include "proxy/ask/question_answer.hpp"

#include "weir/ask/question.hpp"
#include "weir/http/answer.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace weir::proxy {

namespace {

// Returns the seconds in the Retry-After line. The JSON member "retry_after_seconds" must state the same
// time. weir cannot compute the time again, because it has lengthened the time at random.
std::optional<std::uint64_t> retry_after_in(std::string_view fields) noexcept {
  constexpr std::string_view kName = "Retry-After: ";
  auto at = fields.starts_with(kName) ? 0 : fields.find("\r\nRetry-After: ");
  if (at == std::string_view::npos) return std::nullopt;
  at = fields.find(kName, at) + kName.size();
  std::uint64_t seconds = 0;
  const auto parsed = std::from_chars(fields.data() + at, fields.data() + fields.size(), seconds);
  return parsed.ec == std::errc{} ? std::optional(seconds) : std::nullopt;
}

// Returns the rule that decided; null if there is none.
const policy::Rule* deciding_rule(const RequestReport& report) noexcept {
  if (report.decided) return report.decision.rule;
  return report.closed != nullptr ? report.closed : report.rejecting_rule;
}

void add_limit(ask::Answer& answer, const RequestReport& report) {
  const auto& decision = report.decision;
  if (const auto* rule = deciding_rule(report)) answer.rule = rule->name;
  if (!report.decided || decision.limiter == nullptr) return;
  const auto limit = limit::quota_of(*decision.limiter, decision.outcome);
  answer.limit = limit;
  answer.remaining = std::min<std::uint64_t>(decision.outcome.remaining, limit);
  if (!limit::holds(*decision.limiter)) answer.reset_after = decision.outcome.reset_after;
}

ask::DescriptorStatus status_of(const policy::Decision& decision) {
  ask::DescriptorStatus status;
  status.allowed = decision.verdict != policy::Verdict::Reject;
  if (decision.limiter == nullptr) return status;
  status.rule = decision.rule->name;
  status.limit = limit::quota_of(*decision.limiter, decision.outcome);
  status.window = limit::window(*decision.limiter);
  status.remaining = std::min<std::uint64_t>(decision.outcome.remaining, status.limit);
  if (!limit::holds(*decision.limiter)) status.reset_after = decision.outcome.reset_after;
  return status;
}

void add_descriptors(ask::Answer& answer, const ExchangeContext& context) {
  const auto count = context.question->descriptors.size();
  if (!context.report.decided) return answer.descriptors.resize(count, {.allowed = false});
  answer.descriptors.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    answer.descriptors.push_back(status_of(context.admission.decision_for_descriptor(i)));
}

// Returns true if weir itself failed. If more rules apply than weir can charge, that is no failure of weir:
// each repetition of the request would be refused, too.
bool has_failed(const RequestReport& report) noexcept {
  return !report.decided && report.status >= 500 && !report.too_many_rules;
}

}  // namespace

ask::Answer answer_of(ExchangeContext& context, QuestionStream::Refusal&& refusal) {
  const auto& report = context.report;
  ask::Answer answer;
  answer.allowed = report.admitted;
  answer.status = report.status;
  answer.wait = report.wait;
  answer.failed = has_failed(report);
  add_limit(answer, report);
  add_descriptors(answer, context);
  if (answer.allowed) {
    answer.fields = context.buffers.rate_limit_headers;
    return answer;
  }
  answer.fields = std::move(refusal.fields);
  answer.content_type = std::move(refusal.content_type);
  answer.body = std::move(refusal.body);
  answer.retry_after_seconds = retry_after_in(answer.fields);
  return answer;
}

ask::Answer refusal_of(const http::Fault& fault) {
  ask::Answer answer;
  answer.status = fault.status;
  answer.content_type = "application/json";
  http::append_error_json(answer.body, fault.status, fault.what);
  return answer;
}

ask::Answer error_answer(unsigned status, std::string_view what) {
  ask::Answer answer;
  answer.status = status;
  answer.error = what;
  answer.failed = true;
  return answer;
}

}  // namespace weir::proxy
