#include "proxy/upstream/upload.hpp"

#include "proxy/exchange/body_inspector.hpp"

#include "weir/proxy/http1_sink.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace weir::proxy {

void note_body_fault(ExchangeContext& context, const BodyFault& fault) {
  using observe::ClientError;
  const auto [status, slow] = fault;
  context.report.failure = status == 503                ? "out_of_memory"
                           : status == kTooManyMessages ? "message_limit"
                           : slow                       ? "slow_body"
                                                        : "bad_body";
  if (status == 503 || status == 400 || status == kTooManyMessages) return;
  context.worker.counters
      .client_errors(slow            ? ClientError::SlowBody
                     : status == 408 ? ClientError::BodyTimeout
                                     : ClientError::BodyTooLarge)
      .add();
}

LocalError error_of(const BodyFault& fault) noexcept {
  const auto status = fault.status;
  if (status == 503) return {status, "this server is out of memory; please retry"};
  if (status == kTooManyMessages) return {status, "too many messages"};
  if (status == 400) return {status, "the request body is malformed or incomplete"};
  if (fault.slow) return {status, "the request body comes too slowly"};
  if (status == 408) return {status, "the request body did not come in time"};
  return {status, "the request body is too large"};
}

Upload::Upload(ExchangeContext& context, ServerAttempt& attempt, std::string begun, MessageGate* gate)
    : context_(context),
      attempt_(attempt),
      gate_(gate),
      finished_(context.worker.executor),
      out_(std::move(begun)),
      response_(attempt.pool.settings().timeouts.response),
      continue_timeout_(attempt.pool.settings().timeouts.expect_continue) {}

void Upload::start() {
  net::spawn(context_.worker.executor, run(), [this](const std::exception_ptr& thrown) {
    if (thrown) fail(503, false);
    done_ = true;
    finished_.raise();
  });
}

// Tells the upload to end. Returns a wait for its end. Not a coroutine, because a coroutine may fail if
// memory runs out.
net::Signal::Wait Upload::end() noexcept {
  if (!done_) {
    stop_ = true;
    context_.client.cancel();
    attempt_.lease.cancel();
    if (gate_ != nullptr) gate_->cancel();
    if (attempt_.pacing) attempt_.pacing->to_server().cancel();
  }
  return finished_.wait();
}

net::Task<void> Upload::run() {
  const auto& head = context_.buffers.head;
  const auto& body = context_.client.body();
  auto& watch = context_.watch;
  Http1Sink sink(attempt_.lease.stream(), head.framing, out_);
  sink.goes_on();
  const bool paces = attempt_.pacing && !attempt_.whole;
  Relay relay(context_.client.body(), sink, attempt_.whole ? nullptr : &attempt_.copy, gate_,
              paces ? &attempt_.pacing->to_server() : nullptr);
  MinRateCheck pace(context_.config.server.min_rate);
  auto need = relay.advance();
  began_ = context_.now;
  expects_continue_ =
      head.expects_continue && body.received() == 0 && body.at_hand().empty() && !body.complete();
  bool continue_awaited = !expects_continue_;
  for (unsigned pieces = 1; Relay::is_wait(need); ++pieces) {
    const bool reading = need == Relay::Need::Bytes;
    if (pieces % Relay::kPiecesInTurn == 0) {
      co_await net::Pause(context_.worker.executor);
      const bool late = watch.late() && !attempt_.client_stalls && !expects_continue_;
      if (stop_ || watch.left() || late) co_return;
    }
    if (need == Relay::Need::Gate || need == Relay::Need::Pace) {
      auto wait = need == Relay::Need::Gate ? wait_at_gate() : wait_for_pace();
      const bool goes_on = co_await std::move(wait);
      if (!goes_on) co_return;
      need = relay.advance();
      continue;
    }
    if (reading && !attempt_.whole) release_body(context_.buffers);  // frees the octets, which were all sent
    if (reading && !std::exchange(continue_awaited, true)) await_continue();
    arm_for_more(reading);
    const auto ec = co_await relay.wait(need);
    const auto next = judge_wait(ec, reading, pace);
    if (next == Next::End) co_return;
    if (next == Next::Wait) continue;
    if (reading && expects_continue_) begin_body();  // the client sends without waiting for 100 Continue
    need = relay.advance();
  }
  finish(need, relay.status());
}

// Waits until weir may forward the client's next message. Returns false if the upload must end instead.
net::Task<bool> Upload::wait_at_gate() {
  if (gate_->refuses()) {
    fail(kTooManyMessages, false);
    co_return false;
  }
  const auto& watch = context_.watch;
  const bool answered = context_.report.answered != base::TimePoint{};
  const auto longest = gate_->wait() + response_;
  context_.read_clock();
  if (answered && !attempt_.client_stalls) context_.watch.arm(longest);
  if (!answered) attempt_.arm(longest);
  static_cast<void>(co_await gate_->hold());
  const bool late = watch.late() && !attempt_.client_stalls;
  // Fails if the client has disconnected, because such a client sends no more of its request. The exchange
  // may still wait for the answer.
  if (watch.has_disconnected() && !stop_) fail(400, false);
  if (watch.has_disconnected()) co_return false;
  co_return !stop_ && !watch.left() && !late && !context_.worker.hard_stop;
}

// Waits until weir may forward the next piece of the body. This wait does not count against the server's
// response timeout. Returns false if the upload must end.
net::Task<bool> Upload::wait_for_pace() {
  auto& watch = context_.watch;
  auto& gate = attempt_.pacing->to_server();
  if (!attempt_.client_stalls) {
    attempt_.cut_short = false;
    watch.arm(gate.wait() + response_);
  }
  co_await gate.hold();
  const bool late = watch.late() && !attempt_.client_stalls;
  co_return !stop_ && !watch.left() && !late && !context_.worker.hard_stop;
}

Upload::Next Upload::judge_wait(const net::ErrorCode& ec, bool reading, MinRateCheck& pace) {
  if (stop_) return Next::End;
  const auto& watch = context_.watch;
  // True if a deadline that does not apply to the upload has ended its wait. The upload then waits again.
  const bool ended_for_other_wait = ec == net::asio::error::operation_aborted && !watch.left() &&
                                    !context_.worker.hard_stop &&
                                    (attempt_.client_stalls || expects_continue_ || !watch.late());
  const bool slow = (!ec || ended_for_other_wait) && since_ != base::TimePoint{} &&
                    !pace.note(context_.worker.clock.now() - since_, context_.client.body().filled());
  if (ended_for_other_wait && !slow) return Next::Wait;
  if (slow || (ec && reading)) fail(slow || watch.late() ? 408 : 400, slow);
  return ec || slow ? Next::End : Next::Advance;
}

void Upload::finish(Relay::Need need, BodySource::Status status) {
  if (need == Relay::Need::Source) fail(status == BodySource::Status::TooLarge ? 413 : 400, false);
  sent_ = need == Relay::Need::Nothing;
  const bool answered = context_.report.answered != base::TimePoint{};
  if (sent_ && (answered || !attempt_.may_need_body())) release_body(context_.buffers);
  end_body();
}

void Upload::fail(unsigned status, bool slow) noexcept {
  attempt_.body_fault = {status, slow};
  attempt_.lease.cancel();
}

// Arms the deadline for the client or the server, depending on which of them must act next. `reading`: the
// upload reads from the client next; false: it writes to the server. Leaves the armed deadline unchanged in
// two cases:
// * The client does not read its answer. The client must not gain time by sending more of its body.
// * The client waits for 100 Continue. The deadline for the server's answer remains armed.
//
// If the whole body is in memory and the server has not answered, only the server must act.
void Upload::arm_for_more(bool reading) noexcept {
  const bool counts = reading && !expects_continue_ && context_.config.server.min_rate.octets_per_second != 0;
  since_ = counts ? context_.worker.clock.now() : base::TimePoint{};
  if (attempt_.client_stalls || expects_continue_) return;
  if (attempt_.whole && context_.report.answered == base::TimePoint{}) {
    context_.read_clock();
    return attempt_.arm(response_);
  }
  attempt_.cut_short = false;
  context_.watch.arm(reading ? context_.config.server.body_timeout : response_);
}

// Arms a deadline: `time` after the head was sent to the server.
void Upload::arm_since_head(base::Duration time) noexcept {
  context_.read_clock();
  attempt_.arm(std::max(time - (context_.now - context_.report.sent), base::Duration{0}));
}

void Upload::await_continue() noexcept {
  if (continue_timeout_ >= response_) return;
  arm_since_head(continue_timeout_);
  has_continue_deadline_ = !attempt_.cut_short;
}

bool Upload::suspend_continue_deadline() noexcept {
  if (!std::exchange(has_continue_deadline_, false)) return false;
  context_.watch.clear_late();
  arm_since_head(response_);
  return true;
}

bool Upload::is_continue_overdue() const noexcept {
  const auto& watch = context_.watch;
  return has_continue_deadline_ && watch.late() && !watch.left() && !context_.worker.hard_stop &&
         !attempt_.body_fault;
}

void Upload::begin_body() noexcept {
  context_.buffers.head.expects_continue = false;
  if (!expects_continue_) return;
  expects_continue_ = false;
  // If the deadline has passed, the exchange must still handle it, so is_continue_overdue() must return true.
  if (!context_.watch.late()) has_continue_deadline_ = false;
  began_ = context_.worker.clock.now();
  arm_for_more(true);
}

// Starts the server's response timeout anew. Extends the deadline of all attempts by the time that the client
// took to send its body.
void Upload::end_body() noexcept {
  if (context_.report.answered != base::TimePoint{}) {
    if (!attempt_.client_stalls) context_.watch.arm(response_);
    return;
  }
  context_.read_clock();
  if (!attempt_.whole) {
    context_.report.sent = context_.now;
    if (attempt_.deadline != base::TimePoint::max()) attempt_.deadline += context_.now - began_;
  }
  attempt_.arm(response_);
}

}  // namespace weir::proxy
