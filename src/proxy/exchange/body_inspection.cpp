// The part of an exchange that comes before the decision where rules ask what the body says: up to their
// bound it is read into memory, and goes on from there unchanged. Requests that no rule asks so pass through
// untouched; so that nobody's body is read for nothing, the other rules are looked at before.
#include "proxy/client/session.hpp"
#include "proxy/exchange/exchange.hpp"

#include "weir/policy/inspection.hpp"

#include <algorithm>

namespace weir::proxy {

namespace {

using State = policy::RequestBody::State;

bool is_empty(const http::RequestHead& head) noexcept {
  return head.framing == http::Framing::None ||
         (head.framing == http::Framing::Length && head.content_length == 0);
}

}  // namespace

// What cannot be read is not waited for: whether that matters is for the rules to say. All this comes before
// the request counts as one under way, so that slow bodies crowd nobody out.
net::Task<Exchange::Ending> Exchange::inspect() {
  auto& body = buffers_->request.body;
  const auto& head = buffers_->head;
  const auto wanted = policy::wanted_body(config_.rules, buffers_->request);
  // A body that all memory could not hold is too long, whatever a rule says: it would find no room ever.
  const auto most = std::min(wanted, config_.server.max_body_memory);
  if (most == 0) return decide();
  const bool sized = head.framing == http::Framing::Length;
  body.state = is_empty(head)                          ? State::Whole
               : policy::is_coded(head.fields)         ? State::Coded
               : sized && head.content_length > wanted ? State::TooLong
               : sized && head.content_length > most   ? State::OverMemory
                                                       : State::Whole;
  if (body.state == State::OverMemory) worker_.counters.body_memory_refused.add();
  if (is_empty(head) || body.state != State::Whole) return decide();
  const auto unread = session_.inbox.unread();
  if (!sized || unread.size() < head.content_length) {
    AdmissionResult admission_result;
    report_.asked_at = latest_;
    return admission_.refuses_by_head(report_.asked_at, admission_result) ? apply_decision(admission_result)
                                                                          : read_body(most);
  }
  body.text = unread.substr(0, static_cast<std::size_t>(head.content_length));
  return decide();
}

net::Task<Exchange::Ending> Exchange::read_body(std::uint64_t most) {
  auto& body = buffers_->request.body;
  const auto status = co_await gather_body(most);
  session_.disarm();
  latest_ = worker_.clock.now();
  const auto received = request_body_->received();
  if (no_memory_ && received <= policy::body_wanted_to_enforce(config_.rules, buffers_->request)) {
    report_.failure = "body_memory";
    co_return co_await refuse_unread(503, "too many request bodies are being read; please retry");
  }
  if (status != BodySource::Status::End && status != BodySource::Status::Piece)
    co_return co_await give_up_body(status);
  const bool too_long = no_memory_ || received > policy::wanted_body(config_.rules, buffers_->request);
  body.state = status == BodySource::Status::End ? State::Whole
               : too_long                        ? State::TooLong
                                                 : State::OverMemory;
  if (body.state == State::OverMemory) worker_.counters.body_memory_refused.add();
  body.text = buffers_->inspected.view();
  request_body_->put_back(body.text, unheld_);
  co_return co_await decide();
}

// Takes the body into memory. Returns End; a Piece that made it longer than `most`, or that memory did not
// hold
// (`unheld_`); or the fault: NeedBytes if the rest did not come.
net::Task<BodySource::Status> Exchange::gather_body(std::uint64_t most) {
  const auto& head = buffers_->head;
  const auto whole = head.framing == http::Framing::Length ? head.content_length : most;
  std::string_view piece;
  MinRateCheck pace(config_.server.min_rate);
  for (;;) {
    const auto status = request_body_->take(piece);
    if (status == BodySource::Status::Piece) {
      const bool fits = buffers_->inspected.size() + piece.size() <= config_.server.max_body_memory;
      no_memory_ = fits && !buffers_->inspected.append(piece, whole);
      if (!fits || no_memory_) unheld_ = piece;
      if (unheld_.empty() && buffers_->inspected.size() <= most) continue;
    }
    if (status != BodySource::Status::NeedBytes) co_return status;
    const auto since = worker_.clock.now();
    const bool came = co_await await_body();
    slow_ = came && pace.counts() && !pace.note(worker_.clock.now() - since, request_body_->filled());
    if (!came || slow_) co_return status;
  }
}

// Lets go of what was read for rules: it was sent on, and is not sent again.
void Exchange::release_body() noexcept {
  buffers_->request.body.text = {};
  buffers_->inspected.clear();
}

net::Task<bool> Exchange::await_body() {
  if (buffers_->head.expects_continue) {
    const bool said = co_await say_continue();
    if (!said) co_return false;
  }
  session_.arm(config_.server.body_timeout);
  const auto ec = co_await request_body_->fill();
  co_return !ec;
}

// The client waits for this word before it sends its body, and the upstream, whose word it is, is not asked
// before the decision. So the expectation ends here (RFC 9110 §10.1.1).
net::Task<bool> Exchange::say_continue() {
  auto& head = buffers_->head;
  head.expects_continue = false;
  for (auto& field : head.fields)
    if (field.id == http::FieldId::Expect) field.hop_by_hop = true;
  return write_continue();
}

net::Task<bool> Exchange::write_continue() {
  session_.arm(config_.server.write_timeout);
  const auto ec = co_await session_.client.write("HTTP/1.1 100 Continue\r\n\r\n");
  co_return !ec;
}

// The body did not come whole. Nothing was charged, and what may still come is not waited for.
net::Task<Exchange::Ending> Exchange::give_up_body(BodySource::Status status) {
  auto& counters = worker_.counters;
  const bool stopped = worker_.hard_stop;
  const bool late = session_.late() && !stopped;
  session_.clear_late();
  if (stopped || session_.has_gone()) {
    report_.failure = stopped ? "stopped" : "client_left";
    counters.client_errors(observe::ClientError::Left).add();
    return net::Task<Ending>::ended(Ending::Close);
  }
  if (session_.client.owes_write()) return net::Task<Ending>::ended(give_up_writing(late));
  report_.failure = "bad_body";
  const bool large = status == BodySource::Status::TooLarge;
  if (slow_) report_.failure = "slow_body";
  if (slow_) counters.client_errors(observe::ClientError::SlowBody).add();
  if (late) counters.client_errors(observe::ClientError::BodyTimeout).add();
  if (large) counters.client_errors(observe::ClientError::BodyTooLarge).add();
  const unsigned code = late || slow_ ? 408 : large ? 413 : 400;
  return refuse_unread(code, slow_   ? "the request body comes too slowly"
                             : late  ? "the request body did not come in time"
                             : large ? "the request body is too large"
                                     : "the request body is malformed or incomplete");
}

// Answers a request whose body is not read to its end.
net::Task<Exchange::Ending> Exchange::refuse_unread(unsigned status, std::string_view what) {
  buffers_->text.clear();
  http::append_error_json(buffers_->text, status, what);
  return send({.status = status, .body = buffers_->text, .keep_alive = false});
}

}  // namespace weir::proxy
