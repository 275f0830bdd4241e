#include "proxy/upstream/upload.hpp"

#include "proxy/client/session.hpp"
#include "proxy/exchange/body_inspector.hpp"
#include "proxy/upstream/attempt.hpp"

#include "weir/http/forwarding.hpp"

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

namespace weir::proxy {

// The client's body did not come whole, and that is why the exchange ends.
bool Exchange::body_failed() const noexcept {
  return upload_ && upload_->fault != 0;
}

// All of the request has gone to the server.
bool Exchange::is_request_sent() const noexcept {
  return context_.request_body->complete() && (!upload_ || upload_->sent);
}

void Exchange::note_body_fault(unsigned status) {
  using observe::ClientError;
  const bool slow = upload_->slow;
  context_.report.failure = status == 503 ? "out_of_memory" : slow ? "slow_body" : "bad_body";
  if (status == 503 || status == 400) return;
  context_.worker.counters
      .client_errors(slow            ? ClientError::SlowBody
                     : status == 408 ? ClientError::BodyTimeout
                                     : ClientError::BodyTooLarge)
      .add();
}

net::Task<Ending> Exchange::refuse_body(unsigned status) {
  note_body_fault(status);
  if (status == 503) return reply_.error({status, "this server is out of memory; please retry"});
  if (status == 400) return reply_.error({status, "the request body is malformed or incomplete"});
  return reply_.error({status, upload_->slow   ? "the request body comes too slowly"
                               : status == 408 ? "the request body did not come in time"
                                               : "the request body is too large"});
}

// `sent`: octets of the head, and of a body that is at hand, that the server has taken already.
void Exchange::start_upload(const upstream::Pool& pool, Attempt& attempt, std::size_t sent) {
  const std::string_view head = context_.buffers.out;
  const auto of_head = std::min(sent, head.size());
  auto begun = std::make_unique<Upload>(context_.worker.executor);
  begun->response = pool.settings().timeouts.response;
  begun->word = pool.settings().timeouts.expect_continue;
  begun->out = head.substr(of_head);
  upload_ = std::move(begun);
  context_.upload_begun = true;
  if (attempt.whole) context_.request_body->put_back(attempt.body.substr(sent - of_head));
  try {
    net::spawn(context_.worker.executor, upload(attempt), [this](const std::exception_ptr& thrown) {
      if (thrown) {
        upload_->fault = 503;
        lease_.cancel();
      }
      upload_->done = true;
      upload_->finished.raise();
    });
  } catch (...) {
    context_.upload_begun = false;
    upload_.reset();  // it has not begun, and nobody would say that it ended
    throw;
  }
}

net::Task<void> Exchange::upload(Attempt& attempt) {
  auto& state = *upload_;
  Relay relay(*context_.request_body, lease_.stream(), context_.buffers.head.framing, state.out);
  relay.goes_on();
  MinRateCheck pace(context_.config.server.min_rate);
  auto need = relay.advance();
  state.began = context_.now;
  const auto& body = *context_.request_body;
  state.expectant =
      context_.buffers.head.expects_continue && body.received() + body.at_hand() == 0 && !body.complete();
  bool word_awaited = !state.expectant;
  for (unsigned pieces = 1; need == Relay::Need::Bytes || need == Relay::Need::Room; ++pieces) {
    const bool reading = need == Relay::Need::Bytes;
    if (pieces % Relay::kPiecesInTurn == 0) {
      co_await net::Pause(context_.worker.executor);
      if (state.stop || context_.watch.left() ||
          (context_.watch.late() && !client_stalls_ && !state.expectant))
        co_return;
    }
    if (reading && !attempt.whole) release_body(context_.buffers);  // all that was at hand was sent
    if (reading && !std::exchange(word_awaited, true)) await_continue(attempt);
    await_more(attempt, reading);
    const auto ec = co_await relay.wait(need);
    if (state.stop) co_return;
    // The session has one deadline. One that was for the answer, or for its reader, ended this wait as well,
    // and says nothing of it.
    const bool others = ec == net::asio::error::operation_aborted && !context_.watch.left() &&
                        !context_.worker.hard_stop &&
                        (client_stalls_ || state.expectant || !context_.watch.late());
    state.slow = (!ec || others) && state.since != base::TimePoint{} &&
                 !pace.note(context_.worker.clock.now() - state.since, context_.request_body->filled());
    if (others && !state.slow) continue;
    if (state.slow || (ec && reading)) {
      state.fault = state.slow || context_.watch.late() ? 408 : 400;
      lease_.cancel();
    }
    if (ec || state.slow) co_return;
    if (reading && state.expectant) begin_body(attempt);  // it did not wait for the word
    need = relay.advance();
  }
  if (need == Relay::Need::Source) {
    state.fault = relay.status() == BodySource::Status::TooLarge ? 413 : 400;
    lease_.cancel();
  }
  state.sent = need == Relay::Need::Nothing;
  if (state.sent && (context_.report.answered != base::TimePoint{} || !repeatable(attempt)))
    release_body(context_.buffers);
  end_body(attempt);
}

// Whose time it is now. A client that does not take its answer gains none by sending more; while it waits for
// its server's word, the server has the time that it has for an answer; and what is at hand is no matter of
// the client's.
void Exchange::await_more(Attempt& attempt, bool reading) noexcept {
  auto& state = *upload_;
  const bool counts = reading && !state.expectant && context_.config.server.min_rate.octets_per_second != 0;
  state.since = counts ? context_.worker.clock.now() : base::TimePoint{};
  if (client_stalls_ || state.expectant) return;
  if (attempt.whole && context_.report.answered == base::TimePoint{}) {
    context_.read_clock();
    return arm(attempt, state.response);
  }
  attempt.cut_short = false;
  context_.watch.arm(reading ? context_.config.server.body_timeout : state.response);
}

// What is left of so much time since the head went to the server.
void Exchange::arm_since_head(Attempt& attempt, base::Duration time) noexcept {
  context_.read_clock();
  arm(attempt, std::max(time - (context_.now - context_.report.sent), base::Duration{0}));
}

void Exchange::await_continue(Attempt& attempt) noexcept {
  auto& state = *upload_;
  if (state.word >= state.response) return;
  arm_since_head(attempt, state.word);
  state.continue_deadline = !attempt.cut_short;
}

// 100, 103 and their like go on to clients that know them (RFC 9110 §15.2).
net::Task<net::ErrorCode> Exchange::relay_interim(Attempt& attempt) {
  auto& buffers = context_.buffers;
  if (buffers.head.minor_version == 0) co_return net::ErrorCode{};
  buffers.text.clear();
  http::write_interim_head(buffers.text, buffers.response);
  // A client that is slow to take it is not asked for its body meanwhile.
  const bool word_due = upload_ && std::exchange(upload_->continue_deadline, false);
  if (word_due) {
    context_.watch.clear_late();
    arm_since_head(attempt, upload_->response);
  }
  const auto ec = co_await context_.session.client.write(buffers.text);
  if (ec) co_return ec;
  if (buffers.response.status == 100)
    begin_body(attempt);
  else if (word_due && upload_->expectant)
    await_continue(attempt);
  co_return ec;
}

// Whether it was for the server's word alone that time has run out, and not for its answer.
bool Exchange::continue_is_overdue() const noexcept {
  return upload_ && upload_->continue_deadline && context_.watch.late() && !context_.watch.left() &&
         !context_.worker.hard_stop && !body_failed();
}

// No client need wait for ever, nor is a server to blame that does not know of this word: the client is asked
// for its body, unless that has just begun to come.
net::Task<bool> Exchange::prompt_client(Attempt& attempt) {
  upload_->continue_deadline = false;
  context_.watch.clear_late();
  if (!upload_->expectant) co_return true;
  tallies().prompted.add();
  const bool said = co_await context_.send_continue();
  attempt.client_broken = attempt.client_broken || !said;
  attempt.client_ended = !said;
  begin_body(attempt);
  co_return said;
}

// The client sends its body from now on: it was told to, or does not wait for that.
void Exchange::begin_body(Attempt& attempt) noexcept {
  context_.buffers.head.expects_continue = false;
  if (!upload_ || !upload_->expectant) return;
  upload_->expectant = false;
  if (!context_.watch.late())
    upload_->continue_deadline = false;  // else it ended the waits, and prompt_client says so
  upload_->began = context_.worker.clock.now();
  await_more(attempt, true);
}

// The server has its whole time from now on. Where the client sent, what took so long was it: all attempts
// together have what was left of theirs.
void Exchange::end_body(Attempt& attempt) noexcept {
  if (context_.report.answered != base::TimePoint{}) {
    if (!client_stalls_) context_.watch.arm(upload_->response);
    return;
  }
  context_.read_clock();
  if (!attempt.whole) {
    context_.report.sent = context_.now;
    if (attempt.deadline != base::TimePoint::max()) attempt.deadline += context_.now - upload_->began;
  }
  arm(attempt, upload_->response);
}

// Stops the upload where it is; what to wait for until it has ended. No coroutine: it must not fail.
net::Signal::Wait Exchange::end_upload() noexcept {
  auto& state = *upload_;
  if (!state.done) {
    state.stop = true;
    context_.session.client.cancel();
    lease_.cancel();
  }
  return state.finished.wait();
}

}  // namespace weir::proxy
