#include "proxy/upstream/tunnel.hpp"

#include "weir/net/use_task.hpp"
#include "weir/proxy/relay.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace weir::proxy {

using http::FrameScanner;
using observe::TunnelEnd;

namespace {

// How long the server may take to end its current frame. weir sends its Close frame after that frame.
constexpr base::Duration kFarewell{2'000'000};

}  // namespace

Tunnel::Tunnel(Worker& worker, ClientWatch& watch, net::DuplexStream& client, Inbox& inbox,
               net::DuplexStream& server, Inbox& early, base::Duration idle, MessageLimits* limits)
    : worker_(worker),
      watch_(watch),
      idle_(idle),
      linger_(idle),
      up_{client, server, inbox},
      down_{server, client, early},
      limits_(limits),
      pause_(worker.executor),
      finished_(worker.executor) {
  if (limits_ != nullptr) up_.scanner.emplace(FrameScanner::Sender::Client);
  if (limits_ != nullptr) down_.scanner.emplace(FrameScanner::Sender::Server);
  worker_.counters.tunnels_open.add();
}

Tunnel::~Tunnel() {
  worker_.counters.tunnels_open.remove();
}

net::Task<TunnelEnd> Tunnel::run() {
  watch_.arm(idle_);
  net::spawn(worker_.executor, pump(up_), [this](const std::exception_ptr& thrown) {
    if (thrown) thrown_ = thrown;
    if (thrown) stop(TunnelEnd::Stopped);
    finished_.raise();
  });
  try {
    co_await pump(down_);
  } catch (...) {
    thrown_ = std::current_exception();
    stop(TunnelEnd::Stopped);
  }
  co_await finished_.wait();
  watch_.disarm();
  worker_.counters.tunnels(end_).add();
  if (thrown_) std::rethrow_exception(thrown_);
  if (end_ == TunnelEnd::Stopped)
    for (auto* way : {&up_, &down_})
      if (at_boundary(*way)) say_close(*way, http::kGoingAway);
  co_return end_;
}

// Relays one direction until its source closes its sending side or the tunnel ends.
net::Task<void> Tunnel::pump(Way& way) {
  for (unsigned pieces = 1; !over_; ++pieces) {
    if (pieces % Relay::kPiecesInTurn == 0) {
      co_await net::Pause(worker_.executor);
      if (watch_.late()) stop(broken(way, true));
      if (over_) co_return;
    }
    scan(way);
    const bool reading = way.ready == 0;
    if (reading && &way == &up_ && refusal_ != 0) co_return refuse(refusal_);
    if (&way == &down_ && farewell_ != 0 && at_boundary(way)) co_return refuse(farewell_);
    if (reading && way.held > 0) {
      co_await hold(way);
      continue;
    }
    if (reading && way.ended) {
      co_await pass_end(way);
      co_return;
    }
    if (!reading && way.pace != nullptr && way.pace->admit(way.ready) == 0) {
      co_await wait_for_pace(way);
      continue;
    }
    auto ec = reading ? receive(way) : send(way);
    if (ec == net::asio::error::eof) {
      way.scanner.reset();  // from now on, forwards the rest of the partial frame unchanged
      way.ended = true;
      continue;
    }
    if (ec == net::asio::error::would_block) ec = co_await await(way, reading);
    if (ec) stop(broken(way, reading));
  }
}

// Ends the sending side of `way.to`, because `way.from` has closed its own. With HTTP/2, waits until the last
// octets and the end are sent.
net::Task<void> Tunnel::pass_end(Way& way) {
  way.to.shutdown_send();
  if (&way == &down_) idle_ = linger_;
  moved();
  while (!over_ && way.to.owes_write()) {
    const auto ec = co_await await(way, false);
    if (ec) stop(broken(way, false));
  }
}

net::Task<net::ErrorCode> Tunnel::await(Way& way, bool reading) {
  if (reading) rest(way);
  way.stuck = !reading;
  net::ErrorCode ec;
  if (reading)
    ec = co_await way.from.wait_readable();
  else
    ec = co_await way.to.wait_writable();
  way.stuck = false;
  co_return ec;
}

// Sets way.ready to the number of received octets that may be forwarded.
void Tunnel::scan(Way& way) {
  const auto unread = way.inbox.unread();
  if (!way.scanner) way.ready = unread.size();
  while (way.ready < unread.size() && way.held == 0 && (&way == &down_ || refusal_ == 0)) {
    if (farewell_ != 0 && way.scanner->between_frames()) return;
    const auto piece = way.scanner->next(unread.substr(way.ready));
    if (piece.kind == FrameScanner::Kind::NeedMore || !pass(way, piece)) return;
    way.ready += piece.size;
  }
}

// Returns true if the piece may be forwarded now. Otherwise delays it, or ends the tunnel.
bool Tunnel::pass(Way& way, const FrameScanner::Piece& piece) {
  using Kind = FrameScanner::Kind;
  if (piece.kind == Kind::Faulty) {
    if (&way == &up_ && limits_->enforced())
      refusal_ = http::kProtocolError;
    else
      way.scanner.reset();
    if (!way.scanner) way.ready = way.inbox.unread().size();
    return false;
  }
  const bool counts = piece.kind == Kind::Message || piece.kind == Kind::Ping || piece.kind == Kind::Pong;
  if (&way != &up_ || !counts) return true;
  const auto verdict = limits_->ask();
  if (verdict.admitted) return true;
  if (verdict.closes) refusal_ = http::kPolicyViolation;
  wait_ = verdict.wait;
  way.held = piece.size;
  return false;
}

// Delays the next message, then asks the limits again.
net::Task<void> Tunnel::hold(Way& way) {
  if (!down_.stuck) watch_.arm(idle_ + wait_);
  way.stuck = true;
  pause_.expires_after(wait_);
  // During the wait, a client that closes its sending side counts as disconnected. Otherwise a long delay
  // would keep the tunnel open after its client has disconnected.
  watch_.end_at_half_close(true);
  watch_.begin_cancellable_wait();
  net::ErrorCode ended;
  co_await pause_.async_wait(net::use_task(ended));
  watch_.end_cancellable_wait();
  watch_.end_at_half_close(false);
  way.stuck = false;
  if (ended || watch_.late() || watch_.left()) co_return stop(broken(way, true));
  const auto verdict = limits_->ask();
  wait_ = verdict.wait;
  if (verdict.closes) refusal_ = http::kPolicyViolation;
  if (!verdict.admitted) co_return;
  way.ready = std::exchange(way.held, 0);
}

// Waits until weir may forward the next octets of a direction. Renews the deadline first if both sides accept
// octets, because weir alone then causes the wait.
net::Task<void> Tunnel::wait_for_pace(Way& way) {
  const auto most = std::max(idle_ / 2, base::Duration{1});
  if (!up_.stuck && !down_.stuck && farewell_ == 0) watch_.arm(idle_);
  co_await way.pace->hold(most);
  if (!over_ && (watch_.late() || watch_.left() || worker_.hard_stop)) stop(broken(way, true));
}

void Tunnel::cancel() noexcept {
  pause_.cancel();
  for (auto* way : {&up_, &down_})
    if (way->pace != nullptr) way->pace->cancel();
}

// Sends the Close frames and ends the tunnel. The coroutine that sends to the server calls this function once
// everything before the refused message was sent. If a frame to the client is still incomplete at that time,
// the coroutine that sends to the client calls it again after that frame.
void Tunnel::refuse(std::uint16_t code) {
  if (farewell_ == 0) say_close(up_, code);
  farewell_ = code;
  watch_.arm(kFarewell);
  if (!at_boundary(down_)) {
    if (!down_.scanner) stop(broken(down_, true));
    return;
  }
  say_close(down_, code);
  stop(broken(down_, true));
}

// Returns true if the octets forwarded so far end with a complete frame.
bool Tunnel::at_boundary(const Way& way) const noexcept {
  return way.scanner && way.ready == 0 && (way.held > 0 || way.scanner->between_frames());
}

// Sends a Close frame without waiting. Drops the part of the frame that the peer does not accept at once.
// Sends nothing if a Close frame was already sent.
void Tunnel::say_close(Way& way, std::uint16_t code) {
  if (way.scanner && way.scanner->closed()) return;
  const std::string_view reason = code == http::kPolicyViolation ? "too many messages"
                                  : code == http::kGoingAway     ? "going away"
                                                                 : "not a frame";
  std::string frame;
  if (&way == &up_)
    http::append_close_frame(
        frame, code, reason,
        {0x5a, 0xc3, 0x17, 0x9e});  // any mask is safe, because weir chooses the masked text
  else
    http::append_close_frame(frame, code, reason);
  net::ErrorCode ignored;
  way.bytes += way.to.try_write(frame, {}, ignored);
}

net::ErrorCode Tunnel::receive(Way& way) {
  net::ErrorCode ec;
  char* at = way.inbox.space();
  const auto count = way.from.try_read(at, way.inbox.room(), ec);
  way.inbox.received(count);
  if (&way == &up_) worker_.counters.bytes_in.add(count);
  return ec;
}

// Sends the octets that are ready. Returns would_block if the peer did not accept all of them.
net::ErrorCode Tunnel::send(Way& way) {
  net::ErrorCode ec;
  const auto most = way.pace != nullptr ? way.pace->admit(way.ready) : way.ready;
  const auto bytes = way.inbox.unread().substr(0, most);
  const auto sent = way.begun ? way.to.try_rest(bytes, {}, ec) : way.to.try_write(bytes, {}, ec);
  way.begun = sent < bytes.size();
  way.inbox.use(sent);
  way.ready -= sent;
  if (way.pace != nullptr) way.pace->passed(sent);
  way.bytes += sent;
  if (&way == &down_) worker_.counters.bytes_out.add(sent);
  if (sent > 0) moved();
  if (!ec && sent < bytes.size()) ec = net::asio::error::would_block;
  return ec;
}

void Tunnel::moved() noexcept {
  if (!up_.stuck && !down_.stuck && farewell_ == 0) watch_.arm(idle_);
}

// Releases an empty buffer before a wait.
void Tunnel::rest(Way& way) {
  if (!way.inbox.is_pinned() && way.inbox.empty()) way.inbox.release();
  way.from.trim();
}

// Ends the tunnel. If called again, keeps the first reason.
void Tunnel::stop(TunnelEnd end) noexcept {
  if (over_) return;
  over_ = true;
  end_ = end;
  up_.from.cancel();
  up_.to.cancel();
  cancel();
}

TunnelEnd Tunnel::broken(const Way& way, bool reading) const noexcept {
  if (farewell_ != 0) return farewell_ == http::kPolicyViolation ? TunnelEnd::Refused : TunnelEnd::Faulty;
  if (worker_.hard_stop) return TunnelEnd::Stopped;
  if (watch_.late()) return TunnelEnd::Idle;
  return (&way == &up_) == reading ? TunnelEnd::ClientBroke : TunnelEnd::ServerBroke;
}

}  // namespace weir::proxy
