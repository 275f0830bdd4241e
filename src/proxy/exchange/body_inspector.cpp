#include "proxy/exchange/body_inspector.hpp"

#include "weir/http/forwarding.hpp"
#include "weir/policy/inspection.hpp"

#include <algorithm>

namespace weir::proxy {

namespace {

bool is_empty(const http::RequestHead& head) noexcept {
  return head.framing == http::Framing::None ||
         (head.framing == http::Framing::Length && head.content_length == 0);
}

// Returns the state of the body according to the request's head. `wanted`: how many octets the rules read;
// `most`: how many octets fit into memory.
policy::RequestBody::State state_by_head(const http::RequestHead& head, std::uint64_t wanted,
                                         std::uint64_t most) noexcept {
  if (is_empty(head)) return policy::RequestBody::State::Whole;
  if (policy::is_coded(head.fields)) return policy::RequestBody::State::Coded;
  if (head.framing != http::Framing::Length || head.content_length <= most)
    return policy::RequestBody::State::Whole;
  return head.content_length > wanted ? policy::RequestBody::State::TooLong
                                      : policy::RequestBody::State::OverMemory;
}

}  // namespace

// `most_` is at most max_body_memory, because a longer body would never fit into memory.
BodyInspector::BodyInspector(ExchangeContext& context) noexcept
    : context_(context),
      wanted_(policy::wanted_body(context.buffers.rules, context.buffers.request)),
      most_(std::min(wanted_, context.config.server.max_body_memory)) {}

// Returns true if the rules can decide now: the whole body is in memory, or weir cannot read the body (for
// example because it is compressed). In the second case, the rules decide about an unreadable body. Returns
// false if read() must be called first.
bool BodyInspector::show_at_hand() {
  if (most_ == 0) return true;
  auto& body = context_.buffers.request.body;
  const auto& head = context_.buffers.head;
  body.state = state_by_head(head, wanted_, most_);
  if (body.state == policy::RequestBody::State::OverMemory)
    context_.worker.counters.body_memory_refused.add();
  if (body.state != policy::RequestBody::State::Whole) return true;
  if (is_empty(head)) {
    read_values();
    return true;
  }
  const auto at_hand = context_.client.body().at_hand();
  if (head.framing != http::Framing::Length || at_hand.size() < head.content_length) {
    body.state = policy::RequestBody::State::Unread;
    return false;
  }
  body.text = at_hand.substr(0, static_cast<std::size_t>(head.content_length));
  read_values();
  return true;
}

// Finds the values in the body for all rules at once.
void BodyInspector::read_values() {
  auto& body = context_.buffers.request.body;
  context_.buffers.body_values.read(context_.config.body_names, context_.buffers.head, body.text);
  body.values = &context_.buffers.body_values;
}

net::Task<std::optional<Outcome>> BodyInspector::read() {
  auto& body = context_.buffers.request.body;
  const auto status = co_await gather();
  context_.watch.disarm();
  context_.read_clock();
  const auto received = context_.client.body().received();
  if (no_memory_ &&
      received <= policy::body_wanted_to_enforce(context_.buffers.rules, context_.buffers.request)) {
    context_.report.failure = "body_memory";
    co_return Outcome{{503, "too many request bodies are being read; please retry"}};
  }
  if (status != BodySource::Status::End && status != BodySource::Status::Piece) co_return give_up(status);
  const bool too_long = no_memory_ || received > wanted_;
  body.state = status == BodySource::Status::End ? policy::RequestBody::State::Whole
               : too_long                        ? policy::RequestBody::State::TooLong
                                                 : policy::RequestBody::State::OverMemory;
  if (body.state == policy::RequestBody::State::OverMemory)
    context_.worker.counters.body_memory_refused.add();
  body.text = context_.buffers.inspected.view();
  if (body.state == policy::RequestBody::State::Whole) read_values();
  context_.client.body().put_back(body.text, rest_of_body_);
  co_return std::nullopt;
}

// Reads the body into memory. Returns End if the body is complete. Returns Piece if the body exceeds `most_`,
// or if the last piece did not fit into memory; `rest_of_body_` is then that piece. Returns NeedBytes if the
// rest did not arrive, or arrived too slowly. Returns the status of the source for any other fault.
net::Task<BodySource::Status> BodyInspector::gather() {
  const auto& head = context_.buffers.head;
  const auto& server = context_.config.server;
  auto& source = context_.client.body();
  auto& inspected = context_.buffers.inspected;
  const auto whole = head.framing == http::Framing::Length ? head.content_length : most_;
  std::string_view piece;
  MinRateCheck pace(server.min_rate);
  for (;;) {
    const auto status = source.take(piece);
    if (status == BodySource::Status::Piece) {
      const bool fits = inspected.size() + piece.size() <= server.max_body_memory;
      no_memory_ = fits && !inspected.append(piece, whole);
      if (!fits || no_memory_) rest_of_body_ = piece;
      if (rest_of_body_.empty() && inspected.size() <= most_) continue;
    }
    if (status != BodySource::Status::NeedBytes) co_return status;
    const auto since = context_.worker.clock.now();
    const bool arrived = co_await wait_for_more();
    slow_ = arrived && pace.counts() && !pace.note(context_.worker.clock.now() - since, source.filled());
    if (!arrived || slow_) co_return status;
  }
}

net::Task<bool> BodyInspector::wait_for_more() {
  if (context_.buffers.head.expects_continue) {
    const bool sent = co_await send_continue();
    if (!sent) co_return false;
  }
  context_.watch.arm(context_.config.server.body_timeout);
  const auto ec = co_await context_.client.body().fill();
  co_return !ec;
}

// Sends 100 Continue, because weir contacts the server only after the decision, and the decision needs the
// body.
net::Task<bool> BodyInspector::send_continue() {
  http::remove_expectation(context_.buffers.head);
  return context_.send_continue();
}

// Returns the outcome for a request whose body did not arrive completely.
Outcome BodyInspector::give_up(BodySource::Status status) {
  using observe::ClientError;
  auto& watch = context_.watch;
  const bool stopped = context_.worker.hard_stop;
  const bool late = watch.late() && !stopped;
  watch.clear_late();
  if (stopped || watch.has_disconnected()) {
    context_.note_client_error(ClientError::Left, stopped ? "stopped" : "client_left");
    return {.ending = Ending::Close};
  }
  if (!context_.client.can_answer()) return {.ending = context_.give_up_writing(late)};
  auto& counters = context_.worker.counters;
  const bool large = status == BodySource::Status::TooLarge;
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
