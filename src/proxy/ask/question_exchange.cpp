#include "proxy/ask/question_exchange.hpp"

#include "proxy/ask/question_answer.hpp"

#include "weir/http/described_head.hpp"
#include "weir/http/head_parser.hpp"

#include <algorithm>
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

// Ends the current wait if weir stops at once, or if the asker has disconnected. An asker whose timeout has
// passed (Question::timeout) counts as disconnected.
void QuestionExchange::on_tick() noexcept {
  if (worker_.hard_stop) {
    late_ = true;
    return cancel();
  }
  if (waits_cancellably_ && !left_ && (has_disconnected() || is_overdue())) {
    left_ = true;
    cancel();
  }
  if (!waits_cancellably_) skip_ticks();
}

// Returns true if the asker's timeout (Question::timeout) will have passed `wait` from now.
bool QuestionExchange::is_overdue(base::Duration wait) const noexcept {
  const auto timeout = question().timeout;
  return timeout > base::Duration{0} && worker_.clock.now() - asked_at_ + wait > timeout;
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

// Returns the answer. Refunds the charges if the asker does not wait for the answer any more.
ask::Answer QuestionExchange::conclude() {
  auto& context = exchange_.context();
  const auto& report = context.report;
  const bool asker_disconnected = stream_.has_asker_disconnected();
  stream_.forget_asker();
  disarm();
  if (is_overdue(question().answer_waits ? report.wait : base::Duration{0})) {
    withdraw(504, "deadline");
    return error_answer(504, kOverdue);
  }
  if (report.failure == kTakenOver) return error_answer(kTakenOverError.status, kTakenOverError.what);
  if (!asker_disconnected && (report.admitted || stream_.refusal().status != 0))
    return answer_of(context, std::move(stream_.refusal()));
  if (report.admitted) withdraw(0, "client_left");
  return {};
}

void QuestionExchange::withdraw(unsigned status, std::string_view failure) {
  auto& context = exchange_.context();
  if (context.report.admitted) context.refund();
  context.report.status = status;
  context.report.failure = failure;
}

bool QuestionExchange::needs_settlement() {
  auto& context = exchange_.context();
  return context.admission.holds() || context.admission.settlements().due();
}

bool QuestionExchange::settle(const ask::SettleRequest& request) {
  auto& context = exchange_.context();
  if (request.status) {
    auto text = http::head_text({.status = *request.status, .fields = request.headers});
    if (!text) return false;
    answer_head_ = std::move(*text);
    if (http::parse_response_head(answer_head_, false, context.buffers.response)) return false;
  }
  context.read_clock();
  if (request.refund) {
    context.refund();
    return true;
  }
  if (request.cost) context.admission.settlements().settle_to_stated(*request.cost, context.now);
  if (request.status) settle_by_answer(request);
  const auto begun = std::max(context.report.asked_at, context.report.departed);
  context.report.reported_ending.emplace();
  if (request.status.value_or(200) < 500) context.report.reported_ending->latency = context.now - begun;
  return true;
}

// Settles the charges as if the server of the asker had answered weir. If the asker reports no body, the
// answer counts as an answer without a body.
void QuestionExchange::settle_by_answer(const ask::SettleRequest& request) {
  auto& context = exchange_.context();
  auto& settlements = context.admission.settlements();
  auto& head = context.buffers.response;
  context.report.status = *request.status;
  head.framing = request.body ? http::Framing::Length : http::Framing::None;
  head.content_length = request.body ? request.body->size() : 0;
  if (!settlements.due()) return;
  (void)settlements.answered(*request.status, &head, context.now);
  auto* observer = settlements.watch();
  if (observer == nullptr) return;
  observer->see(request.body.value_or(std::string()));
  observer->complete({});
}

}  // namespace weir::proxy
