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

// How long the server may take to end its current frame. weir sends the client a Close frame after that
// frame.
constexpr base::Duration kFrameEndTimeout{2'000'000};

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
    for (auto* direction : {&up_, &down_})
      if (at_boundary(*direction)) send_close_frame(*direction, http::kGoingAway);
  co_return end_;
}

// Relays one direction until its source closes its sending side or the tunnel ends.
net::Task<void> Tunnel::pump(Direction& direction) {
  for (unsigned pieces = 1; !over_; ++pieces) {
    if (pieces % Relay::kPiecesInTurn == 0) {
      co_await net::Pause(worker_.executor);
      if (watch_.late()) stop(broken(direction, true));
      if (over_) co_return;
    }
    scan(direction);
    const bool reading = direction.ready == 0;
    if (reading && &direction == &up_ && refusal_ != 0) co_return refuse(refusal_);
    if (&direction == &down_ && sent_close_code_ != 0 && at_boundary(direction))
      co_return refuse(sent_close_code_);
    if (reading && direction.held > 0) {
      co_await hold(direction);
      continue;
    }
    if (reading && direction.ended) {
      co_await pass_end(direction);
      co_return;
    }
    if (!reading && direction.pace != nullptr && direction.pace->admit(direction.ready) == 0) {
      co_await wait_for_pace(direction);
      continue;
    }
    auto ec = reading ? receive(direction) : send(direction);
    if (ec == net::asio::error::eof) {
      direction.scanner.reset();  // from now on, forwards the rest of the partial frame unchanged
      direction.ended = true;
      continue;
    }
    if (ec == net::asio::error::would_block) ec = co_await await(direction, reading);
    if (ec) stop(broken(direction, reading));
  }
}

// Ends the sending side of `direction.to`, because `direction.from` has closed its own. With HTTP/2, waits
// until the last octets and the end are sent.
net::Task<void> Tunnel::pass_end(Direction& direction) {
  direction.to.shutdown_send();
  if (&direction == &down_) idle_ = linger_;
  moved();
  while (!over_ && direction.to.owes_write()) {
    const auto ec = co_await await(direction, false);
    if (ec) stop(broken(direction, false));
  }
}

net::Task<net::ErrorCode> Tunnel::await(Direction& direction, bool reading) {
  if (reading) rest(direction);
  direction.stuck = !reading;
  net::ErrorCode ec;
  if (reading)
    ec = co_await direction.from.wait_readable();
  else
    ec = co_await direction.to.wait_writable();
  direction.stuck = false;
  co_return ec;
}

// Sets direction.ready to the number of received octets that may be forwarded.
void Tunnel::scan(Direction& direction) {
  const auto unread = direction.inbox.unread();
  if (!direction.scanner) direction.ready = unread.size();
  while (direction.ready < unread.size() && direction.held == 0 && (&direction == &down_ || refusal_ == 0)) {
    if (sent_close_code_ != 0 && direction.scanner->between_frames()) return;
    const auto piece = direction.scanner->next(unread.substr(direction.ready));
    if (piece.kind == FrameScanner::Kind::NeedMore || !pass(direction, piece)) return;
    direction.ready += piece.size;
  }
}

// Returns true if the piece may be forwarded now. Otherwise holds a message back, or sets refusal_ so that
// the tunnel ends. After a malformed frame, if no enforced rule limits this direction, forwards all
// further octets unparsed.
bool Tunnel::pass(Direction& direction, const FrameScanner::Piece& piece) {
  using Kind = FrameScanner::Kind;
  if (piece.kind == Kind::Faulty) {
    if (&direction == &up_ && limits_->enforced())
      refusal_ = http::kProtocolError;
    else
      direction.scanner.reset();
    if (!direction.scanner) direction.ready = direction.inbox.unread().size();
    return false;
  }
  const bool counts = piece.kind == Kind::Message || piece.kind == Kind::Ping || piece.kind == Kind::Pong;
  if (&direction != &up_ || !counts) return true;
  const auto verdict = limits_->ask();
  if (verdict.admitted) return true;
  if (verdict.closes) refusal_ = http::kPolicyViolation;
  wait_ = verdict.wait;
  direction.held = piece.size;
  return false;
}

// Delays the next message, then asks the limits again.
net::Task<void> Tunnel::hold(Direction& direction) {
  if (!down_.stuck) watch_.arm(idle_ + wait_);
  direction.stuck = true;
  pause_.expires_after(wait_);
  // During the wait, a client that closes its sending side counts as disconnected. Otherwise a long delay
  // would keep the tunnel open after its client has disconnected.
  watch_.end_at_half_close(true);
  watch_.begin_cancellable_wait();
  net::ErrorCode ended;
  co_await pause_.async_wait(net::use_task(ended));
  watch_.end_cancellable_wait();
  watch_.end_at_half_close(false);
  direction.stuck = false;
  if (ended || watch_.late() || watch_.left()) co_return stop(broken(direction, true));
  const auto verdict = limits_->ask();
  wait_ = verdict.wait;
  if (verdict.closes) refusal_ = http::kPolicyViolation;
  if (!verdict.admitted) co_return;
  direction.ready = std::exchange(direction.held, 0);
}

// Waits until weir may forward the next octets of a direction. If both sides accept octets, only the pacing
// causes the wait. Then renews the deadline before the wait.
net::Task<void> Tunnel::wait_for_pace(Direction& direction) {
  const auto most = std::max(idle_ / 2, base::Duration{1});
  if (!up_.stuck && !down_.stuck && sent_close_code_ == 0) watch_.arm(idle_);
  co_await direction.pace->hold(most);
  if (!over_ && (watch_.late() || watch_.left() || worker_.hard_stop)) stop(broken(direction, true));
}

void Tunnel::cancel() noexcept {
  pause_.cancel();
  for (auto* direction : {&up_, &down_})
    if (direction->pace != nullptr) direction->pace->cancel();
}

// Sends the Close frames and ends the tunnel. The coroutine that sends to the server calls this function once
// everything before the refused message was sent. If a frame to the client is still incomplete at that time,
// the coroutine that sends to the client calls this function again after that frame.
void Tunnel::refuse(std::uint16_t code) {
  if (sent_close_code_ == 0) send_close_frame(up_, code);
  sent_close_code_ = code;
  watch_.arm(kFrameEndTimeout);
  if (!at_boundary(down_)) {
    if (!down_.scanner) stop(broken(down_, true));
    return;
  }
  send_close_frame(down_, code);
  stop(broken(down_, true));
}

// Returns true if the octets forwarded so far end with a complete frame.
bool Tunnel::at_boundary(const Direction& direction) const noexcept {
  return direction.scanner && direction.ready == 0 &&
         (direction.held > 0 || direction.scanner->between_frames());
}

// Sends a Close frame without waiting. Drops the part of the frame that the peer does not accept at once.
// Sends nothing if a Close frame was already sent.
void Tunnel::send_close_frame(Direction& direction, std::uint16_t code) {
  if (direction.scanner && direction.scanner->closed()) return;
  const std::string_view reason = code == http::kPolicyViolation ? "too many messages"
                                  : code == http::kGoingAway     ? "going away"
                                                                 : "not a frame";
  std::string frame;
  if (&direction == &up_)
    http::append_close_frame(
        // any mask is safe, because weir chooses the masked text
        frame, code, reason, {0x5a, 0xc3, 0x17, 0x9e});
  else
    http::append_close_frame(frame, code, reason);
  net::ErrorCode ignored;
  direction.bytes += direction.to.try_write(frame, {}, ignored);
}

net::ErrorCode Tunnel::receive(Direction& direction) {
  net::ErrorCode ec;
  char* at = direction.inbox.space();
  const auto count = direction.from.try_read(at, direction.inbox.room(), ec);
  direction.inbox.received(count);
  if (&direction == &up_) worker_.counters.bytes_in.add(count);
  return ec;
}

// Sends the octets that are ready. Returns would_block if the peer did not accept all of them.
net::ErrorCode Tunnel::send(Direction& direction) {
  net::ErrorCode ec;
  const auto most = direction.pace != nullptr ? direction.pace->admit(direction.ready) : direction.ready;
  const auto bytes = direction.inbox.unread().substr(0, most);
  const auto sent =
      direction.begun ? direction.to.try_rest(bytes, {}, ec) : direction.to.try_write(bytes, {}, ec);
  direction.begun = sent < bytes.size();
  direction.inbox.use(sent);
  direction.ready -= sent;
  if (direction.pace != nullptr) direction.pace->passed(sent);
  direction.bytes += sent;
  if (&direction == &down_) worker_.counters.bytes_out.add(sent);
  if (sent > 0) moved();
  if (!ec && sent < bytes.size()) ec = net::asio::error::would_block;
  return ec;
}

void Tunnel::moved() noexcept {
  if (!up_.stuck && !down_.stuck && sent_close_code_ == 0) watch_.arm(idle_);
}

// Releases an empty buffer before a wait.
void Tunnel::rest(Direction& direction) {
  if (!direction.inbox.is_pinned() && direction.inbox.empty()) direction.inbox.release();
  direction.from.trim();
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

TunnelEnd Tunnel::broken(const Direction& direction, bool reading) const noexcept {
  if (sent_close_code_ != 0)
    return sent_close_code_ == http::kPolicyViolation ? TunnelEnd::Refused : TunnelEnd::Faulty;
  if (worker_.hard_stop) return TunnelEnd::Stopped;
  if (watch_.late()) return TunnelEnd::Idle;
  return (&direction == &up_) == reading ? TunnelEnd::ClientBroke : TunnelEnd::ServerBroke;
}

}  // namespace weir::proxy
