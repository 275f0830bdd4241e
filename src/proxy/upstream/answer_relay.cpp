#include "proxy/upstream/answer_relay.hpp"

#include "proxy/admission/rate_limit_headers.hpp"
#include "proxy/exchange/body_inspector.hpp"

#include "weir/http/answer.hpp"
#include "weir/http/grpc_status.hpp"
#include "weir/net/signal.hpp"

#include <algorithm>
#include <utility>

namespace weir::proxy {

AnswerRelay::AnswerRelay(ExchangeContext& context, ServerAttempt& attempt, const Upload* upload,
                         MessageGate* gate)
    : context_(context),
      attempt_(attempt),
      upload_(upload),
      request_sent_(is_request_sent()),
      sink_(begin()),
      meter_(context.admission.settlements().meter()),
      gate_(meter_ != nullptr ? nullptr : gate),  // a stream of JSON has no gRPC messages
      body_(attempt.lease.stream(), context.buffers.answer, attempt.body_framing,
            context.buffers.response.content_length, BodySource::kUnbounded,
            http::ChunkDecoder::Sender::Server),
      relay_(body_, sink_, context.admission.settlements().watch(),
             gate_ != nullptr ? static_cast<BodyGate*>(gate_) : meter_,
             attempt.pacing ? &attempt.pacing->to_client() : nullptr),
      pace_(context.config.server.min_rate) {}

bool AnswerRelay::is_request_sent() const noexcept {
  return context_.client.body().complete() && (upload_ == nullptr || upload_->is_sent());
}

// Adjusts the charges to the answer's head, and writes the head for the client.
BodySink& AnswerRelay::begin() {
  auto& buffers = context_.buffers;
  auto& response = buffers.response;
  if (request_sent_) release_body(buffers);  // from now on, no other server can get the request
  attempt_.copy.drop();
  if (response.status == 429 && context_.route()->honor_retry_after) note_pause();
  context_.settle(response.status, &response);
  context_.edit_answer(response.fields);
  // must follow edit_answer(), so that pages may also read the fields that the route adds
  if (const auto& cors = context_.config.cors)
    http::append_exposed_names(buffers.rate_limit_headers, *cors, buffers.head.fields);
  keep_stricter(response.fields, buffers.rate_limit_headers);
  context_.report.status = response.status;
  return context_.client.begin_answer(response, {.fields = buffers.rate_limit_headers,
                                                 .date = context_.date(),
                                                 .request_sent = request_sent_,
                                                 .trailers_may_follow = response.trailers_may_follow});
}

// Pauses the upstream for the time that its Retry-After demands.
void AnswerRelay::note_pause() {
  // The longest pause. After this time weir tries the upstream again, even if Retry-After was longer.
  constexpr base::Duration kLongest = std::chrono::hours{1};
  const auto* said = http::find_field(context_.buffers.response.fields, "retry-after");
  const auto wait =
      said != nullptr ? http::parse_retry_after(said->value, net::Clock::machine_now()) : std::nullopt;
  if (wait) attempt_.pool.server_group().pause_until(context_.now + std::min(*wait, kLongest));
}

net::Task<std::optional<Outcome>> AnswerRelay::run() {
  const auto need = relay_.advance();
  if (need != Relay::Need::Nothing) return run_on(need);
  return net::Task<std::optional<Outcome>>::ended(finish());
}

net::Task<std::optional<Outcome>> AnswerRelay::run_on(Relay::Need need) {
  if (Relay::is_wait(need)) need = co_await relay_rest(need);
  if (need == Relay::Need::Nothing) co_return finish();
  const bool abandoned = is_abandoned(need);
  if (!abandoned && is_message_refused()) {
    const auto refused = co_await refuse_message();
    co_return refused;
  }
  if (!abandoned && meter_ != nullptr && meter_->cuts()) {
    const auto cut = co_await cut_stream();
    co_return cut;
  }
  const auto outcome = abort_answer(need);
  if (abandoned && is_request_sent()) co_await read_to_end();
  co_return outcome;
}

// Relays the rest of the answer, and waits as often as necessary. Returns what the relay needed last, or
// Nothing if it has sent all.
net::Task<Relay::Need> AnswerRelay::relay_rest(Relay::Need need) {
  auto& watch = context_.watch;
  const auto& server = context_.config.server;
  const auto response = attempt_.pool.settings().timeouts.response;
  const auto look =
      pace_.counts() ? std::min(server.min_rate.grace, server.write_timeout) : server.write_timeout;
  for (unsigned pieces = 1; Relay::is_wait(need); ++pieces) {
    const bool reading = need == Relay::Need::Bytes;
    if (pieces % Relay::kPiecesInTurn == 0) {
      co_await net::Pause(context_.worker.executor);
      if (watch.late() || watch.left()) break;
    }
    if (attempt_.lease.member().suspect()) note_lasting_answer();
    // ends the relay, because the upload of the request has failed during a wait
    if (attempt_.body_fault) break;
    if (need == Relay::Need::Gate || need == Relay::Need::Pace) {
      const bool gate = need == Relay::Need::Gate;
      auto wait = gate ? wait_at_gate() : wait_for_pace();
      const bool goes_on = co_await std::move(wait);
      if (!goes_on) break;
      need = relay_.advance();
      continue;
    }
    watch.arm(reading ? response : look);
    if (reading) watch.begin_cancellable_wait();
    attempt_.client_stalls = !reading;
    const auto since = reading ? base::TimePoint{} : context_.worker.clock.now();
    const auto ec = co_await relay_.wait(need);
    context_.read_clock();
    attempt_.client_stalls = false;
    watch.end_cancellable_wait();
    const bool goes_on = reading ? !ec : keeps_reading(context_.now - since, ec);
    if (!goes_on) break;
    need = relay_.advance();
  }
  co_return need;
}

// Waits until weir may forward the server's next message or event. Returns false if the answer must end.
net::Task<bool> AnswerRelay::wait_at_gate() {
  auto& watch = context_.watch;
  if (gate_ == nullptr) {
    if (meter_->cuts()) co_return false;
    watch.arm(attempt_.pool.settings().timeouts.response);
    co_await meter_->charge_in_redis(context_.worker.clock.now());
    context_.read_clock();
    co_return !watch.late() && !watch.left() && !context_.worker.hard_stop;
  }
  if (gate_->refuses()) co_return false;
  watch.arm(gate_->wait() + attempt_.pool.settings().timeouts.response);
  watch.begin_cancellable_wait();
  static_cast<void>(co_await gate_->hold());
  context_.read_clock();
  watch.end_cancellable_wait();
  co_return !watch.late() && !watch.left() && !context_.worker.hard_stop;
}

// Waits until weir may forward the next piece of the answer (`bandwidth`). Returns false if the answer must
// end. Sets client_stalls, so that the upload sets no deadline during this wait.
net::Task<bool> AnswerRelay::wait_for_pace() {
  auto& watch = context_.watch;
  auto& gate = attempt_.pacing->to_client();
  watch.arm(gate.wait() + attempt_.pool.settings().timeouts.response);
  watch.begin_cancellable_wait();
  attempt_.client_stalls = true;
  co_await gate.hold();
  attempt_.client_stalls = false;
  context_.read_clock();
  watch.end_cancellable_wait();
  co_return !watch.late() && !watch.left() && !context_.worker.hard_stop;
}

bool AnswerRelay::is_message_refused() const noexcept {
  return (gate_ != nullptr && gate_->refuses()) || attempt_.body_fault.status == kTooManyMessages;
}

// Ends a gRPC call that sent more messages than a rule permits. If the client's protocol has trailers, the
// trailers tell the client why. If a message of the client exceeded the limit, the charge for the call
// remains, as for a client that leaves. Otherwise a client could avoid the charge by sending too many
// messages.
net::Task<Outcome> AnswerRelay::refuse_message() {
  if (gate_ != nullptr && gate_->refuses())
    context_.admission.settlements().end_call(http::kGrpcResourceExhausted);
  note_body_fault(context_, {.status = kTooManyMessages});
  const bool chunked = context_.buffers.response.framing == http::Framing::Chunked;
  const auto outcome = co_await end_early(body_.complete() || (sink_.takes_trailers() && chunked),
                                          "grpc-status: 8\r\ngrpc-message: too many messages\r\n");
  co_return outcome;
}

// Ends a stream of events because the client's budget is used up. To the client the body looks complete,
// unless the head has stated a Content-Length.
net::Task<Outcome> AnswerRelay::cut_stream() {
  context_.report.failure = "stream_cut";
  const auto outcome = co_await end_early(context_.buffers.response.framing != http::Framing::Length, {});
  co_return outcome;
}

// Ends an answer before its server does. `clean`: true if the client may take the body for complete; if
// false, resets the client's stream or connection.
net::Task<Outcome> AnswerRelay::end_early(bool clean, std::string_view trailers) {
  attempt_.note_answer();
  bool sent = false;
  if (clean) {
    if (!body_.complete()) sink_.end(trailers);
    net::ErrorCode ec;
    sent = sink_.flush(ec);
    while (!sent && !ec) {
      context_.watch.arm(context_.config.server.write_timeout);
      ec = co_await sink_.wait_for_room();
      if (!ec) sent = sink_.flush(ec);
    }
  }
  context_.worker.counters.bytes_out.add(sink_.sent());
  context_.report.body_out = body_.received();
  if (!sent) context_.client.cut_answer();
  co_return Outcome{.ending = sent ? Ending::Answered : Ending::Abort};
}

// Returns true if the client accepts the answer fast enough. Measures acknowledged octets, because the kernel
// reports room in its buffer only once a large part of it is free.
bool AnswerRelay::keeps_reading(base::Duration waited, const net::ErrorCode& ec) {
  auto& watch = context_.watch;
  const auto sent = sink_.sent();
  const auto unread = context_.client.unacknowledged();
  const auto taken = sent > unread ? sent - unread : 0;
  const bool moves = !ec || taken > taken_;
  taken_ = std::max(taken_, taken);
  stalled_ = moves ? base::Duration{} : stalled_ + waited;
  slow_ = pace_.counts() && !pace_.note(waited, taken);
  if (slow_ || !ec) return !slow_;
  const bool ended = !watch.late() || context_.worker.hard_stop || watch.left();
  if (ended || stalled_ >= context_.config.server.write_timeout) return false;
  watch.clear_late();
  return true;
}

// Counts a long answer, such as a stream of events, as a success of the server before the answer has ended.
void AnswerRelay::note_lasting_answer() noexcept {
  const auto since = context_.worker.clock.now() - context_.report.answered;
  if (since >= attempt_.pool.settings().timeouts.response) attempt_.note_answer();
}

// Returns true if the connection to the server can serve another request. Returns false if the server got
// `Expect: 100-continue` and answered without a 100. The server may then read the body that weir sent, or
// take the body for the next request (RFC 9110 §10.1.1).
bool AnswerRelay::is_in_step() const noexcept {
  const auto& response = context_.buffers.response;
  const bool ambiguous = attempt_.expects_continue && !attempt_.continued;
  return !ambiguous && body_.complete() && response.keep_alive && context_.buffers.answer.empty() &&
         response.framing != http::Framing::UntilClose;
}

Outcome AnswerRelay::finish() {
  context_.worker.counters.bytes_out.add(sink_.sent());
  context_.report.body_out = body_.received();
  attempt_.note_answer();
  if (request_sent_ && is_in_step()) attempt_.lease.keep();
  return {.ending = Ending::Answered};
}

// Returns true if the client, not the server, ended the answer early.
bool AnswerRelay::is_abandoned(Relay::Need need) const noexcept {
  return context_.watch.left() || need == Relay::Need::SinkBroken ||
         (need == Relay::Need::Room && !attempt_.body_fault);
}

// Handles an answer that did not reach the client completely. Returns nullopt if the client has received no
// octet, so that weir may still send another answer.
std::optional<Outcome> AnswerRelay::abort_answer(Relay::Need need) {
  auto& report = context_.report;
  context_.worker.counters.bytes_out.add(sink_.sent());
  report.body_out = body_.received();
  if (need == Relay::Need::SinkBroken || need == Relay::Need::Room)
    attempt_.note_answer();  // the server answered, and only the client failed
  if (is_abandoned(need)) return note_client_fault();
  // A server is not to blame if the client waits for 100 Continue and has not sent the body yet.
  const bool owed = upload_ != nullptr && upload_->is_expectant();
  auto& lease = attempt_.lease;
  if (!owed && attempt_.count_failure()) {
    if (!lease.moved()) lease.member().failed(report.sent, context_.worker.clock.now());
    // Once the client has received octets of the answer, the gRPC call ends here. Before that, weir may still
    // send another answer.
    if (!sink_.is_untouched()) context_.admission.settlements().end_call(http::kGrpcUnavailable);
  }
  if (sink_.is_untouched()) {
    report.answered = {};
    attempt_.error.what = "the upstream's answer is malformed";
    return std::nullopt;
  }
  report.failure = context_.worker.hard_stop ? "stopped" : "upstream_truncated";
  if (attempt_.body_fault) note_body_fault(context_, attempt_.body_fault);
  context_.client.cut_answer();
  return Outcome{.ending = Ending::Abort};
}

Outcome AnswerRelay::note_client_fault() {
  using observe::ClientError;
  if (slow_)
    context_.note_client_error(ClientError::SlowRead, "slow_read");
  else if (context_.watch.late())
    context_.note_client_error(ClientError::WriteTimeout, "write_timeout");
  else
    context_.note_client_error(ClientError::Left, "client_left");
  return {.ending = Ending::Abort};
}

// If a rule needs the rest of the answer, closes the client's connection, and then reads and drops the rest.
net::Task<void> AnswerRelay::read_to_end() {
  const auto& timeouts = attempt_.pool.settings().timeouts;
  const auto& clock = context_.worker.clock;
  auto& admission = context_.admission;
  admission.settlements().settle_bytes(context_.client.body().received(), context_.report.body_out);
  if (!admission.needs_answer(timeouts.abandoned)) co_return;
  context_.client.close();
  if (meter_ != nullptr) meter_->stop_charging();
  context_.watch.clear_late();
  const auto end = clock.now() + timeouts.abandoned;
  unsigned pieces = 0;
  while (!body_.complete() && !context_.worker.hard_stop) {
    std::string_view piece;
    const auto status = body_.take(piece);
    if (meter_ != nullptr && status == BodySource::Status::Piece) (void)meter_->admit(piece);
    if (auto* watch = admission.settlements().watch()) {
      if (status == BodySource::Status::Piece) watch->see(piece);
      if (status == BodySource::Status::End) watch->complete(body_.trailers());
    }
    if (status == BodySource::Status::Piece) continue;
    if (status != BodySource::Status::NeedBytes || !admission.needs_answer(end - clock.now())) break;
    context_.watch.arm(std::min(std::max(end - clock.now(), base::Duration{1}), timeouts.response));
    const auto ec = co_await body_.fill();
    if (ec) break;
    if (++pieces % Relay::kPiecesInTurn == 0) co_await net::Pause(context_.worker.executor);
  }
  context_.watch.disarm();
  context_.read_clock();
  context_.worker.counters.abandoned(body_.complete()).add();
  if (is_in_step()) attempt_.lease.keep();
}

}  // namespace weir::proxy
