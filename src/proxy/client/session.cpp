#include "proxy/client/session.hpp"

#include "proxy/ask/ask_service.hpp"
#include "proxy/client/connection_opening.hpp"
#include "proxy/client/head_refusal.hpp"
#include "proxy/client/head_scanner.hpp"
#include "proxy/exchange/exchange.hpp"
#include "proxy/exchange/scoped_cancel_target.hpp"
#include "proxy/http2/http2_connection.hpp"

#include "weir/http/head_parser.hpp"
#include "weir/net/signal.hpp"

#include <algorithm>

namespace weir::proxy {

namespace {

// A connection that was silent for this long frees its coroutine frames, and takes some again when bytes
// arrive.
constexpr std::uint32_t kQuietAfterTicks = 1'000'000 / net::Watchdog::kTick.count();
// After a refused request, weir reads from the client for a while before it closes the connection: at most
// kLingerTime in total, and at most kLingerPause between two reads. Most clients read the answer only after
// they have sent the whole body.
constexpr base::Duration kLingerPause{5'000'000};
constexpr base::Duration kLingerTime{30'000'000};
// The first line of HTTP/2's preface (RFC 9113 §3.4), which looks like the head of a request.
constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\n";
// The ALPN name of HTTP/2 over TLS (RFC 9113 §3.2).
constexpr std::string_view kHttp2 = "h2";

}  // namespace

Session::Session(Worker& a_worker, net::Stream a_client, const net::RawEndpoint& peer_endpoint,
                 ConnectionsPerIp::Slot slot, const AcceptorSettings& listener, const bool& acceptor_closed)
    : ClientWatch(a_worker.watchdog),
      worker(a_worker),
      client(std::move(a_client)),
      inbox(a_worker.blocks, &a_worker.large_blocks),
      peer(peer_endpoint),
      listener_(listener),
      acceptor_closed_(acceptor_closed),
      slot_(std::move(slot)),
      http2_settings_(listener.http2) {
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
  if (ask_ != nullptr) ask_->cancel();
  if (pause_waiter_ != nullptr) pause_waiter_->wake();
  if (relay_target_ != nullptr) relay_target_->cancel();
}

void Session::on_late() noexcept {
  late_ = true;
  cancel_all();
}

void Session::on_tick() noexcept {
  if (http2_ != nullptr) http2_->on_tick();
  if (is_idle()) ++idle_ticks_;
  if (state_ == State::Begun) ++begun_ticks_;
  const bool idle_in_drain = ends_idle() && is_idle();
  const bool grown_quiet = state_ == State::Idle && idle_ticks_ == kQuietAfterTicks;
  if (makes_room()) return cancel_all();
  if (worker.hard_stop) late_ = true;
  const bool moves = is_handed_off() && is_idle();
  if (worker.hard_stop || idle_in_drain || grown_quiet || moves) return cancel_all();
  if (waits_cancellably_ && !left_ && !waits_without_client_ && has_disconnected()) {
    left_ = true;
    cancel_all();
  }
  if (may_skip_ticks()) skip_ticks();
}

// Returns true if the session needs no ticks of the watchdog for now. The session gets ticks again once it
// arms a deadline or begins a wait, or once all sessions are woken.
bool Session::may_skip_ticks() const noexcept {
  const bool counts = state_ == State::Idle || (state_ == State::Begun && begun_ticks_ < kQuietAfterTicks);
  return !counts && !waits_cancellably_ && !worker.draining && !acceptor_closed_;
}

// Returns true if the idle evictor chose this connection, to make room for new connections. If so, marks the
// connection as evicted.
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

// Records that the connection waits for the rest of a handshake, a PROXY header or a request's head. These
// connections are evicted last.
void Session::note_begun() noexcept {
  state_ = State::Begun;
  begun_ticks_ = 0;
}

// Reads more bytes from the client. Returns would_block if none have arrived.
net::ErrorCode Session::receive() {
  if (client.is_quiet()) return net::asio::error::would_block;  // needs no block
  net::ErrorCode ec;
  char* at = inbox.space();
  const auto count = client.try_read(at, inbox.room(), ec);
  inbox.received(count);
  if (may_be_http2_)
    uncounted_ += count;
  else
    worker.counters.bytes_in.add(count);
  return ec;
}

bool Session::is_quiet() const noexcept {
  return state_ == State::Quiet || (state_ == State::Idle && idle_ticks_ >= kQuietAfterTicks);
}

// Starts the wait for the first byte of a request.
void Session::begin_idling() noexcept {
  state_ = State::Idle;
  idle_ticks_ = 0;
  arm(worker.config().server.idle_timeout);
}

// Starts the wait for the rest of a head.
void Session::begin_head() noexcept {
  note_begun();
  arm(worker.config().server.head_timeout);
}

void Session::become_quiet() {
  state_ = State::Quiet;
  inbox.release();
  client.trim();
}

// Waits for the complete head of the next request. Returns the size of the head. Returns 0 if the connection
// has ended, if another process serves it from now on, or if it has become quiet (State::Quiet).
net::Task<std::size_t> Session::await_head() {
  HeadScanner head;
  bool begun = false;
  for (unsigned pieces = 1;; ++pieces) {
    if (is_upgrading()) {
      const bool gone = co_await hand_over();
      if (gone) co_return 0;
    }
    // read again after each wait, because a reload may change it
    const auto most = worker.config().server.max_head;
    const auto found = head.scan(inbox, most);
    if (found.size != 0) co_return found.size;
    if (found.fault && !(may_be_http2_ && kPreface.starts_with(inbox.unread()))) {
      co_await refuse_head(*found.fault, inbox.unread().substr(0, most));
      co_return 0;
    }
    if (inbox.empty() && ends_idle()) co_return 0;
    // Starts idle_timeout once for each request: neither empty lines nor the end of a quiet wait restart it.
    if (inbox.empty() && pieces == 1 && state_ != State::Idle) begin_idling();
    if (!inbox.empty() && !begun) begin_head();
    begun = !inbox.empty();  // false if the octets were only empty lines
    auto ec = receive();
    while (ec == net::asio::error::would_block) {
      if (client.has_pending()) wait_for_the_rest();
      // All connections that wait share the blocks, so the next request is received into memory that is still
      // in the processor's cache.
      if (inbox.empty()) inbox.release();
      end_turn();
      ec = co_await client.wait_readable();
      if (!ec) ec = receive();
    }
    if (pieces % Relay::kPiecesInTurn == 0) {
      co_await net::Pause(worker.executor);
      if (late_) ec = net::asio::error::operation_aborted;
    }
    if (!ec || outlasts(ec)) continue;
    if (late_ && !inbox.empty())
      co_await refuse_head({408, "the request head did not come in time"}, inbox.unread());
    else if (ec == net::asio::error::operation_aborted && is_quiet() && !late_ && !ends_idle() &&
             inbox.empty() && !client.has_pending())
      become_quiet();
    co_return 0;
  }
}

// Returns true if the connection must continue to wait for a head after a wait that ended with `ec`. While
// the worker retires, the session keeps waiting, because the new process may not be ready to adopt the
// connection.
bool Session::outlasts(const net::ErrorCode& ec) const noexcept {
  return ec == net::asio::error::operation_aborted && worker.retiring && !late_ && !left_ &&
         idle_ticks_ < kQuietAfterTicks;
}

// Must be called when a part of a TLS record has arrived, but no byte of the request can be read yet. Records
// that the connection is not idle.
void Session::wait_for_the_rest() noexcept {
  if (state_ == State::Begun) return;
  note_begun();
  arm(worker.config().server.head_timeout);
}

// Sends an error answer for the fault, and closes the connection. `bytes`: the part of the head that arrived.
net::Task<void> Session::refuse_head(http::Fault fault, std::string_view bytes) {
  co_await proxy::refuse_head(worker, *this, client, peer, fault, bytes);
  if (client.owes_write())
    client.close();
  else
    co_await linger();
}

// Closes weir's sending side first, then drops the octets that still arrive. So the client can read the last
// answer (RFC 9112 §9.6).
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

// Reads and drops the rest of the body of an answered request. Returns true if the next request can follow.
net::Task<bool> Session::drop_rest(BodySource& body) {
  const auto before = body.filled();
  arm(worker.config().server.head_timeout);  // one deadline for the whole rest of the body
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
  // Resets the flags of the wait for this request, which has now arrived.
  late_ = must_serve_request_ = evicted_ = false;
  state_ = State::Busy;
  Http1Stream stream(*this);
  auto next = Http1Stream::Next::Close;
  if (listener_.ask) {
    AskService service(stream, listener_.ask);
    auto& buffers = service.buffers();
    if (const auto fault = stream.read_head(head_size, buffers.head, buffers.out)) {
      co_await refuse_head(*fault, stream.head_bytes());
      co_return false;
    }
    const ScopedCancelTarget cancel_target(ask_, service);
    const auto ending = co_await service.run();
    next = stream.after(ending);
    stream.forget_exchange();
  } else {
    Exchange exchange(stream);
    auto& buffers = exchange.buffers();
    if (const auto fault = stream.read_head(head_size, buffers.head, buffers.out)) {
      co_await refuse_head(*fault, stream.head_bytes());
      co_return false;
    }
    const ScopedCancelTarget cancel_target(exchange_, exchange);
    const auto ending = co_await exchange.run();
    next = stream.after(ending);
    stream.forget_exchange();
  }
  disarm();
  waits_without_client_ = false;
  inbox.unpin();
  if (next == Http1Stream::Next::KeepAlive) co_return true;
  co_return co_await end_request(stream, next);
}

// Performs the rest of a request, as `next` says: drops its body, lets the client read the answer, or aborts.
// Returns true if another request can follow.
net::Task<bool> Session::end_request(Http1Stream& stream, Http1Stream::Next next) {
  if (next == Http1Stream::Next::DropRest) {
    const bool in_step = co_await drop_rest(stream.body());
    next = in_step ? Http1Stream::Next::KeepAlive : Http1Stream::Next::Linger;
  }
  if (next == Http1Stream::Next::Linger) co_await linger();
  if (next == Http1Stream::Next::Abort) client.close();
  co_return next == Http1Stream::Next::KeepAlive;
}

// Performs the steps before the first request (PROXY header, TLS handshake). Returns false if the connection
// must close. Counts the connection for the client's address as soon as the address is known.
net::Task<bool> Session::open() {
  ConnectionOpening opening(worker, *this, client, peer);
  if (proxy_header_expected_) {
    const bool introduced = co_await opening.read_proxy_header(inbox);
    if (!introduced) co_return false;
    if (!slot_ && !count_connection(worker, peer.address, slot_)) co_return false;
  }
  if (!client.is_tls()) co_return true;
  const bool secured = co_await opening.handshake();
  rejection_reason_ = opening.rejection_reason();
  co_return secured;
}

net::Task<void> Session::serve_http2() {
  note_busy();
  {
    Http2Connection connection(*this, *http2_settings_, std::exchange(uncounted_, 0));
    const ScopedCancelTarget cancel_target(http2_, connection);
    co_await connection.run();
    abuse_ = connection.abuse();
    if (connection.has_failed()) client.close();
  }
  inbox.release();
  if (!client.is_open()) co_return;
  if (client.owes_write())
    client.close();
  else
    co_await linger();
}

net::Task<bool> Session::begin() {
  note_begun();
  may_be_http2_ = http2_settings_->prior_knowledge && !http2_settings_->only && !client.is_tls();
  return proxy_header_expected_ || client.is_tls() ? open() : net::Task<bool>::ended(true);
}

net::Task<bool> Session::run() {
  if (client.protocol() == kHttp2 || http2_settings_->only) {
    co_await serve_http2();
    co_return false;
  }
  for (;;) {
    const auto head_size = co_await await_head();
    if (head_size == 0 && state_ == State::Quiet) co_return true;
    if (std::exchange(may_be_http2_, false)) {
      if (inbox.unread().substr(0, head_size) == kPreface) {
        co_await serve_http2();
        co_return false;
      }
      worker.counters.bytes_in.add(std::exchange(uncounted_, 0));
    }
    if (head_size == 0) break;
    const bool go_on = co_await serve_one(head_size);
    if (!go_on) break;
    if (++requests_in_turn_ < kRequestsInTurn && work_in_turn_ < kWorkInTurn) continue;
    end_turn();
    co_await net::Pause(worker.executor);
    if (worker.hard_stop) break;
  }
  end();
  co_return false;
}

// Receives the octets that have arrived, so that run() knows whether a request is waiting. If so, a pause for
// an upgrade does not count as idle time.
bool Session::end_quiet(net::ErrorCode ec) {
  state_ = State::Idle;
  idle_ticks_ = 0;
  if (!ec) ec = receive();
  if (!ec || ec == net::asio::error::would_block) return true;
  if (ec == net::asio::error::operation_aborted && !late_) return true;  // run() handles the cause
  end();
  return false;
}

// Must be called at the end of a connection of HTTP/1.1.
void Session::end() noexcept {
  if (client.had_too_many_records()) worker.counters.client_errors(observe::ClientError::IdleRecords).add();
  if (client.is_open()) client.shutdown_send();
}

}  // namespace weir::proxy
