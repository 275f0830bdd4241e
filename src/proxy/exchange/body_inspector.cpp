#include "proxy/exchange/body_inspector.hpp"

#include "weir/policy/inspection.hpp"

#include <algorithm>

namespace weir::proxy {

namespace {

using State = policy::RequestBody::State;
using Status = BodySource::Status;

bool is_empty(const http::RequestHead& head) noexcept {
  return head.framing == http::Framing::None ||
         (head.framing == http::Framing::Length && head.content_length == 0);
}

// What the head says of the body, if rules look at `most` octets.
State state_by_head(const http::RequestHead& head, std::uint64_t most) noexcept {
  if (is_empty(head)) return State::Whole;
  if (policy::is_coded(head.fields)) return State::Coded;
  return head.framing == http::Framing::Length && head.content_length > most ? State::TooLong : State::Whole;
}

// The client waits for 100 Continue before it sends its body, and the server, whose word that is, is not
// asked before the decision. So the expectation ends here (RFC 9110 §10.1.1).
void end_expectation(http::RequestHead& head) noexcept {
  head.expects_continue = false;
  for (auto& field : head.fields)
    if (field.id == http::FieldId::Expect) field.hop_by_hop = true;
}

}  // namespace

// A body that all memory could not hold is too long, whatever a rule says: it would never find room.
BodyInspector::BodyInspector(ExchangeContext& context) noexcept
    : context_(context),
      most_(std::min(policy::wanted_body(context.config.rules, context.buffers.request),
                     context.config.server.max_body_memory)) {}

// A body that cannot be read is not waited for: the rules say whether that matters.
bool BodyInspector::show_at_hand() {
  if (most_ == 0) return true;
  auto& body = context_.buffers.request.body;
  const auto& head = context_.buffers.head;
  body.state = state_by_head(head, most_);
  if (is_empty(head) || body.state != State::Whole) return true;
  const auto unread = context_.session.inbox.unread();
  if (head.framing != http::Framing::Length || unread.size() < head.content_length) return false;
  body.text = unread.substr(0, static_cast<std::size_t>(head.content_length));
  return true;
}

net::Task<std::optional<Outcome>> BodyInspector::read() {
  auto& body = context_.buffers.request.body;
  const auto status = co_await gather();
  context_.watch.disarm();
  context_.read_clock();
  if (no_memory_) {
    context_.report.failure = "body_memory";
    co_return Outcome{{503, "too many request bodies are being read; please retry"}};
  }
  if (status != Status::End && status != Status::Piece) co_return give_up(status);
  body.state = status == Status::End ? State::Whole : State::TooLong;
  body.text = context_.buffers.inspected.view();
  context_.request_body->put_back(body.text);
  co_return std::nullopt;
}

// Takes the body into memory. Returns End; Piece if one made it longer than `most_`; or what is wrong with
// it: NeedBytes if the rest did not come. If there is no memory for it, `no_memory_` says so.
net::Task<Status> BodyInspector::gather() {
  const auto& head = context_.buffers.head;
  const auto& server = context_.config.server;
  auto& source = *context_.request_body;
  auto& inspected = context_.buffers.inspected;
  const auto whole = head.framing == http::Framing::Length ? head.content_length : most_;
  std::string_view piece;
  MinRateCheck pace(server.min_rate);
  for (;;) {
    const auto status = source.take(piece);
    if (status == Status::Piece) {
      if (inspected.size() + piece.size() > server.max_body_memory) co_return Status::TooLarge;
      no_memory_ = !inspected.append(piece, whole);
      if (!no_memory_ && inspected.size() <= most_) continue;
    }
    if (status != Status::NeedBytes) co_return status;
    const auto since = context_.worker.clock.now();
    const bool came = co_await wait_for_more();
    slow_ = came && pace.counts() && !pace.note(context_.worker.clock.now() - since, source.filled());
    if (!came || slow_) co_return status;
  }
}

net::Task<bool> BodyInspector::wait_for_more() {
  if (context_.buffers.head.expects_continue) {
    const bool said = co_await send_continue();
    if (!said) co_return false;
  }
  context_.watch.arm(context_.config.server.body_timeout);
  const auto ec = co_await context_.request_body->fill();
  co_return !ec;
}

net::Task<bool> BodyInspector::send_continue() {
  end_expectation(context_.buffers.head);
  return context_.send_continue();
}

// The body did not come whole.
Outcome BodyInspector::give_up(Status status) {
  using observe::ClientError;
  auto& watch = context_.watch;
  const bool stopped = context_.worker.hard_stop;
  const bool late = watch.late() && !stopped;
  watch.clear_late();
  if (stopped || watch.has_gone()) {
    context_.note_client_error(ClientError::Left, stopped ? "stopped" : "client_left");
    return {.ending = Ending::Close};
  }
  if (context_.session.client.owes_write()) return {.ending = context_.give_up_writing(late)};
  auto& counters = context_.worker.counters;
  const bool large = status == Status::TooLarge;
  context_.report.failure = slow_ ? "slow_body" : "bad_body";
  if (slow_) counters.client_errors(ClientError::SlowBody).add();
  if (late) counters.client_errors(ClientError::BodyTimeout).add();
  if (large) counters.client_errors(ClientError::BodyTooLarge).add();
  if (slow_) return {{408, "the request body comes too slowly"}};
  if (late) return {{408, "the request body did not come in time"}};
  if (large) return {{413, "the request body is too large"}};
  return {{400, "the request body is malformed or incomplete"}};
}

void release_body(ExchangeBuffers& buffers) noexcept {
  buffers.request.body.text = {};
  buffers.inspected.clear();
}

}  // namespace weir::proxy
