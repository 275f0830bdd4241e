#include "proxy/ask/question_exchange.hpp"

#include "proxy/ask/question_answer.hpp"

#include <utility>

namespace weir::proxy {

namespace {

constexpr std::string_view kOverdue = "weir could not decide within the time that the question allows";

}  // namespace

QuestionExchange::QuestionExchange(ClientStream& asker, ask::Question question)
    : ClientWatch(asker.worker.watchdog),
      worker_(asker.worker),
      stream_(asker, *this, std::move(question)),
      exchange_(stream_) {}

void QuestionExchange::on_late() noexcept {
  late_ = true;
  cancel();
}

// A wait also ends when the question's own time has passed, as if the asker had disconnected.
void QuestionExchange::on_tick() noexcept {
  if (worker_.hard_stop) {
    late_ = true;
    return cancel();
  }
  if (waits_cancellably_ && !left_ && (has_gone() || is_overdue())) {
    left_ = true;
    cancel();
  }
  if (!waits_cancellably_) doze();
}

bool QuestionExchange::is_overdue() const noexcept {
  const auto timeout = question().timeout;
  return timeout > base::Duration{0} && worker_.clock.now() - asked_at_ > timeout;
}

net::Task<ask::Answer> QuestionExchange::decide() {
  asked_at_ = worker_.clock.now();
  if (const auto fault = stream_.read_head(exchange_.buffers().head)) {
    stream_.forget_asker();
    co_return refusal_of(*fault);
  }
  co_await exchange_.run();
  co_return conclude();
}

// Returns the answer. Refunds the charges if the asker does not wait for it any more.
ask::Answer QuestionExchange::conclude() {
  auto& context = exchange_.context();
  auto& report = context.report;
  const bool gone = stream_.has_asker_gone();
  stream_.forget_asker();
  disarm();
  if (!is_overdue()) {
    if (!gone && (report.admitted || stream_.refusal().status != 0))
      return answer_of(context, std::move(stream_.refusal()));
    if (report.admitted) refund();
    return {};
  }
  if (report.admitted) refund();
  report.failure = "deadline";
  report.status = 504;
  return error_answer(504, kOverdue);
}

bool QuestionExchange::needs_settlement() {
  auto& context = exchange_.context();
  return context.admission.holds() || context.admission.settlements().due();
}

}  // namespace weir::proxy
