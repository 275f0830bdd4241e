#include "proxy/client/session.hpp"

#include "proxy/exchange/exchange.hpp"
#include "proxy/exchange/scoped_cancel_target.hpp"

#include "weir/http/answer.hpp"
#include "weir/http/head_parser.hpp"
#include "weir/http/rejected_head.hpp"
#include "weir/net/signal.hpp"

#include <algorithm>

namespace weir::proxy {

namespace {

// A connection that was silent for so long gives its buffer back and waits without one.
constexpr std::uint32_t kQuietAfterTicks = 1'000'000 / net::Watchdog::kTick.count();
// How long a client whose request was refused may still send before the connection is closed on it: between
// two reads, and in all. Most read the answer only once they have sent all of their body.
constexpr base::Duration kLingerPause{5'000'000};
constexpr base::Duration kLingerTime{30'000'000};
// After so many requests in a row that were there already, a connection lets others have their turn.
constexpr unsigned kRequestsInTurn = 16;
// Requests differ in what they cost: after so much work the turn ends as well, whatever their number.
constexpr base::Duration kWorkInTurn{500};
// So many are ignored before a request (RFC 9112 §2.2: at least one); more make it malformed.
constexpr unsigned kEmptyLines = 8;
// RFC 9110 §15.5.6: what a 405 says. Any method but CONNECT goes on to upstreams.
constexpr std::string_view kAllow = "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE\r\n";
observe::ClientError kind_of(const http::Fault& fault) noexcept {
  const bool large = fault.status == 431 || fault.status == 414;
  return large ? observe::ClientError::HeadTooLarge : observe::ClientError::BadHead;
}

// Why a head that begins so need not be waited for, or taken. `size`: of all of it; 0: it is not whole.
// `searched`: how much was looked at before.
std::optional<http::Fault> fault_in(std::string_view unread, std::size_t size, std::size_t most,
                                    std::size_t searched) noexcept {
  if (size == 0 && unread.size() < most) return http::find_early_fault(unread, searched);
  const bool line_ended = unread.substr(0, most).find('\n') != std::string_view::npos;
  return line_ended ? http::Fault{431, "the request head is too large"}
                    : http::Fault{414, "the request target is too long"};
}

// Ahead of a request (RFC 9112 §2.2); `skipped` so far.
void skip_empty_lines(Inbox& inbox, unsigned& skipped) {
  for (; skipped < kEmptyLines && inbox.unread().starts_with("\r\n"); ++skipped) inbox.use(2);
}

}  // namespace

Session::Session(Worker& a_worker, net::Stream a_client, const net::RawEndpoint& peer_endpoint,
                 ConnectionsPerIp::Slot slot, const std::string& listener, const bool& acceptor_closed)
    : ClientWatch(a_worker.watchdog),
      worker(a_worker),
      client(std::move(a_client)),
      inbox(a_worker.blocks),
      peer(net::peer_address(peer_endpoint)),
      peer_port(net::peer_port(peer_endpoint)),
      peer_text(peer.to_string()),
      listener_(listener),
      acceptor_closed_(acceptor_closed),
      slot_(std::move(slot)) {
  ++worker.sessions;
  worker.counters.connections_accepted.add();
  worker.counters.connections_open.add();
}

Session::~Session() {
  --worker.sessions;
  worker.counters.connections_open.remove();
}

void Session::cancel_all() noexcept {
  client.cancel();
  if (exchange_ != nullptr) exchange_->cancel();
  if (pause_waiter_ != nullptr) pause_waiter_->wake();
  if (onward_ != nullptr) onward_->cancel();
}

void Session::on_late() noexcept {
  late_ = true;
  cancel_all();
}

void Session::on_tick() noexcept {
  if (is_idle()) ++idle_ticks_;
  if (state_ == State::Begun) ++begun_ticks_;
  const bool idle_in_drain = ends_idle() && is_idle();
  const bool grown_quiet = state_ == State::Idle && idle_ticks_ == kQuietAfterTicks;
  if (makes_room()) return cancel_all();
  if (worker.hard_stop) late_ = true;
  const bool moves = is_handed_off() && is_idle();
  if (worker.hard_stop || idle_in_drain || grown_quiet || moves) return cancel_all();
  if (waits_cancellably_ && !left_ && !waits_without_client_ && has_gone()) {
    left_ = true;
    cancel_all();
  }
  if (may_doze()) doze();
}

// Returns true if ticks find nothing new until a deadline is armed, a wait begins, or all sessions are woken.
bool Session::may_doze() const noexcept {
  const bool counts = state_ == State::Idle || (state_ == State::Begun && begun_ticks_ < kQuietAfterTicks);
  return !counts && !waits_cancellably_ && !worker.draining && !acceptor_closed_;
}

// Whether it has to go, for others who find no room.
bool Session::makes_room() noexcept {
  using Rank = IdleEvictor::Rank;
  const bool half_come = state_ == State::Begun && !lingers_ && begun_ticks_ >= kQuietAfterTicks;
  if (!is_idle() && !lingers_ && !half_come) return false;
  if (!worker.idle_evictor.takes(lingers_ || state_ == State::Quiet ? Rank::Quiet
                                 : half_come                        ? Rank::Begun
                                                                    : Rank::Idle))
    return false;
  worker.counters.evicted(half_come ? observe::Evicted::Begun : observe::Evicted::Idle).add();
  evicted_ = late_ = true;
  return true;
}

// Of a handshake, a preamble or a request's head a part has come, or is waited for.
void Session::note_begun() noexcept {
  state_ = State::Begun;
  begun_ticks_ = 0;
}

// Takes more bytes of the client: would_block when there are none yet.
net::ErrorCode Session::receive() {
  net::ErrorCode ec;
  char* at = inbox.space();
  const auto count = client.try_read(at, inbox.room(), ec);
  inbox.received(count);
  worker.counters.bytes_in.add(count);
  return ec;
}

// There is no byte of a request yet.
void Session::begin_idling() noexcept {
  state_ = State::Idle;
  idle_ticks_ = 0;
  arm(worker.config().server.idle_timeout);
}

// There are some of its head.
void Session::begin_head() noexcept {
  note_begun();
  arm(worker.config().server.head_timeout);
}

// Waits without a buffer.
net::Port::Wait Session::wait_in_quiet() {
  state_ = State::Quiet;
  inbox.release();
  client.trim();
  return client.wait_readable();
}

// Waits for the head of the next request to be whole; its size, or 0 when the connection is over.
net::Task<std::size_t> Session::await_head() {
  std::size_t searched = 0;
  bool begun = false;
  unsigned empty_lines = 0;
  for (unsigned pieces = 1;; ++pieces) {
    if (worker.decision_pause.is_on()) {
      co_await wait_out_pause();
      if (late_) co_return 0;
    }
    if (is_handed_off() && hand_off()) co_return 0;
    if (needs_relay() && !inbox.empty()) {
      const bool relayed = co_await relay_to_successor();
      if (relayed) co_return 0;
    }
    if (searched == 0) skip_empty_lines(inbox, empty_lines);
    const auto& server = worker.config().server;  // until we wait
    const auto unread = inbox.unread();
    const auto size = http::find_head_end(unread, searched);
    if (size != 0 && size <= server.max_head) co_return size;
    if (const auto fault = fault_in(unread, size, server.max_head, searched)) {
      co_await refuse_head(*fault, kind_of(*fault), unread.substr(0, server.max_head));
      co_return 0;
    }
    searched = unread == "\r" ? 0 : unread.size();
    if (unread.empty() && ends_idle()) co_return 0;
    if (unread.empty())
      begin_idling();
    else if (!begun)
      begin_head();
    begun = !unread.empty();  // it may have been an empty line
    auto ec = receive();
    while (ec == net::asio::error::would_block) {
      if (client.has_pending()) wait_for_the_rest();
      end_turn();
      ec = co_await client.wait_readable();
      if (!ec) ec = receive();
    }
    if (pieces % Relay::kPiecesInTurn == 0) {
      co_await net::Pause(worker.executor);
      if (late_) ec = net::asio::error::operation_aborted;
    }
    // Whatever it was woken for there: another process may have been late to take it.
    const bool refs = worker.retiring && !late_ && !left_ && idle_ticks_ < kQuietAfterTicks;
    if (!ec || (refs && ec == net::asio::error::operation_aborted)) continue;
    const bool quiet = state_ == State::Idle && !late_ && !ends_idle() && idle_ticks_ >= kQuietAfterTicks;
    if (quiet && inbox.empty() && !client.has_pending()) {
      ec = co_await wait_in_quiet();
      if (!ec || (worker.retiring && !late_)) continue;
    }
    if (late_ && !inbox.empty())
      co_await refuse_head({408, "the request head did not come in time"}, observe::ClientError::HeadTimeout,
                           inbox.unread());
    co_return 0;
  }
}

// Waits until limits were handed over. A request that has come meanwhile is neither late nor idle for it.
net::Task<void> Session::wait_out_pause() {
  const bool asks = !inbox.empty();
  if (asks) {
    disarm();
    state_ = State::Busy;
  }
  while (worker.decision_pause.is_on() && !late_) {
    DecisionPause::Waiter waiter(worker.decision_pause, worker.executor);
    pause_waiter_ = &waiter;
    co_await waiter.wait();
    pause_waiter_ = nullptr;
  }
  if (!asks) co_return;
  note_begun();
  arm(worker.config().server.head_timeout);
}

// Part of a TLS record has come: no longer idle, though there is no byte of the request yet.
void Session::wait_for_the_rest() noexcept {
  if (state_ == State::Begun) return;
  note_begun();
  arm(worker.config().server.head_timeout);
}

// `bytes`: what came of the head; they stay where they are.
net::Task<void> Session::refuse_head(http::Fault fault, observe::ClientError kind, std::string_view bytes) {
  worker.counters.client_errors(kind).add();
  worker.counters.requests(std::nullopt, fault.status).add();
  std::string body;
  http::append_error_json(body, fault.status, fault.what);
  std::string id, out;
  worker.make_request_id(id);
  http::write_answer(out, {.status = fault.status,
                           .body = body,
                           .fields = fault.status == 405 ? kAllow : std::string_view{},
                           .date = worker.http_date(net::Clock::machine_now()),
                           .request_id = id,
                           .keep_alive = false});
  net::ErrorCode ec;
  auto sent = client.try_write(out, {}, ec);
  late_ = false;
  if (!ec && sent < out.size()) {
    arm(worker.config().server.write_timeout);
    ec = co_await client.write_rest(std::string_view(out).substr(sent));
    disarm();
    if (!ec) sent = out.size();
  }
  worker.counters.bytes_out.add(sent);
  log_refusal(fault, kind, bytes, sent, id);
  late_ = false;
  if (client.owes_write())
    client.close();
  else
    co_await linger();
}

// Of a head that is none the log says who sent it, what was wrong, and as much of it as can be read.
void Session::log_refusal(const http::Fault& fault, observe::ClientError kind, std::string_view bytes,
                          std::size_t sent, std::string_view request_id) {
  if (worker.access_log == nullptr) return;
  const auto head = http::read_rejected_head(bytes);
  std::string redacted;
  observe::AccessRecord record;
  record.method = head.method;
  record.target = worker.config().redaction.redacted(head.target, redacted);
  record.host = head.host;
  record.start = net::Clock::machine_now();
  record.client = peer;
  record.status = fault.status;
  record.bytes_out = sent;
  record.request_id = request_id;
  record.error = kind == observe::ClientError::HeadTimeout    ? "head_timeout"
                 : kind == observe::ClientError::HeadTooLarge ? "head_too_large"
                                                              : "bad_head";
  const observe::ReplayRecord unasked;
  record.replay = &unasked;
  worker.access_log->record(record);
}

// Closes our end first, then drops what still comes, so that the last answer arrives (RFC 9112 §9.6).
net::Task<void> Session::linger() {
  client.shutdown_send();
  lingers_ = true;
  const auto end = worker.clock.now() + kLingerTime;
  for (unsigned pieces = 1; !late_ && !evicted_; ++pieces) {
    if (pieces % Relay::kPiecesInTurn == 0) co_await net::Pause(worker.executor);
    const auto left = end - worker.clock.now();
    if (left <= base::Duration{0}) break;
    arm(std::min(left, kLingerPause));
    inbox.release();
    auto ec = receive();
    if (ec == net::asio::error::would_block) ec = co_await client.wait_readable();
    if (ec) break;
  }
  disarm();
}

// Reads what is still to come of a body whose request was answered. True: the next request can follow.
net::Task<bool> Session::drop_rest(BodySource& body) {
  const auto before = body.filled();
  arm(worker.config().server.head_timeout);  // for all of it
  auto status = BodySource::Status::NeedBytes;
  while (status == BodySource::Status::NeedBytes) {
    const auto ec = co_await body.fill();
    if (ec) break;
    status = body.drop();
  }
  disarm();
  late_ = false;
  worker.counters.bytes_in.add(body.filled() - before);
  co_return status == BodySource::Status::End;
}

net::Task<bool> Session::serve_one(std::size_t head_size) {
  disarm();
  late_ = owed_ = evicted_ = false;  // its request was there before it could go
  state_ = State::Busy;
  auto ending = Ending::Close;
  std::optional<BodySource> rest;
  {
    Exchange exchange(*this);
    if (const auto fault = exchange.read_head(head_size)) {
      co_await refuse_head(*fault, kind_of(*fault), exchange.head_bytes());
      co_return false;
    }
    const ScopedCancelTarget cancel_target(exchange_, exchange);
    ending = co_await exchange.run();
    if (ending == Ending::DropRest) rest.emplace(exchange.rest_of_body());
  }
  disarm();
  waits_without_client_ = false;
  inbox.unpin();
  if (client.owes_write()) ending = Ending::Abort;  // the client would take what follows for the rest
  if (rest) {
    const bool in_step = co_await drop_rest(*rest);
    ending = in_step ? Ending::KeepAlive : Ending::Linger;
  }
  if (ending == Ending::Linger) co_await linger();
  if (ending == Ending::Abort) client.close();
  co_return ending == Ending::KeepAlive;
}

net::Task<void> Session::run() {
  note_begun();
  if (proxy_header_expected_) {
    const bool introduced = co_await read_proxy_protocol();
    if (!introduced) co_return;
  }
  if (client.is_tls()) {
    const bool secured = co_await secure();
    if (!secured) co_return;
  }
  for (;;) {
    const auto head_size = co_await await_head();
    if (head_size == 0) break;
    const bool go_on = co_await serve_one(head_size);
    if (!go_on) break;
    if (++requests_in_turn_ < kRequestsInTurn && work_in_turn_ < kWorkInTurn) continue;
    end_turn();
    co_await net::Pause(worker.executor);
    if (worker.hard_stop) break;
  }
  if (client.had_too_many_records()) worker.counters.client_errors(observe::ClientError::IdleRecords).add();
  if (client.is_open()) client.shutdown_send();
}

}  // namespace weir::proxy
