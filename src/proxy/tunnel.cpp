#include "proxy/tunnel.hpp"

#include "weir/proxy/relay.hpp"

namespace weir::proxy {

using observe::TunnelEnd;

Tunnel::Tunnel(Session& session, net::Stream& server, Inbox& early, base::Duration idle)
    : session_(session),
      idle_(idle),
      up_{session.client, server, session.inbox, true},
      down_{server, session.client, early},
      finished_(session.worker.executor) {
  session_.worker.counters.tunnels_open.add();
}

Tunnel::~Tunnel() {
  session_.worker.counters.tunnels_open.remove();
}

net::Task<TunnelEnd> Tunnel::run() {
  session_.arm(idle_);
  net::spawn(session_.worker.executor, pump(up_), [this](const std::exception_ptr& thrown) {
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
  session_.disarm();
  session_.worker.counters.tunnels(end_).add();
  if (thrown_) std::rethrow_exception(thrown_);
  co_return end_;
}

// One way, until its source ends its sending or the tunnel is over.
net::Task<void> Tunnel::pump(Way& way) {
  for (unsigned pieces = 1; !over_; ++pieces) {
    if (pieces % Relay::kPiecesInTurn == 0) {
      co_await net::Pause(session_.worker.executor);
      if (session_.late()) stop(broken(way, true));
      if (over_) co_return;
    }
    const bool reading = way.inbox.empty();
    auto ec = reading ? receive(way) : send(way);
    if (ec == net::asio::error::eof) {
      way.to.shutdown_send();
      co_return;
    }
    if (ec == net::asio::error::would_block) {
      if (reading) rest(way);
      way.stuck = !reading;
      if (reading)
        ec = co_await way.from.wait_readable();
      else
        ec = co_await way.to.wait_writable();
      way.stuck = false;
    }
    if (ec) stop(broken(way, reading));
  }
}

net::ErrorCode Tunnel::receive(Way& way) {
  net::ErrorCode ec;
  char* at = way.inbox.space();
  const auto count = way.from.try_read(at, way.inbox.room(), ec);
  way.inbox.received(count);
  if (&way == &up_) session_.worker.counters.bytes_in.add(count);
  return ec;
}

// Sends what is at hand: would_block when not all of it was taken.
net::ErrorCode Tunnel::send(Way& way) {
  net::ErrorCode ec;
  const auto sent = way.to.try_write(way.inbox.unread(), {}, ec);
  way.inbox.use(sent);
  way.bytes += sent;
  if (&way == &down_) session_.worker.counters.bytes_out.add(sent);
  if (sent > 0) moved();
  if (!ec && !way.inbox.empty()) ec = net::asio::error::would_block;
  return ec;
}

void Tunnel::moved() noexcept {
  if (!up_.stuck && !down_.stuck) session_.arm(idle_);
}

// Nothing is at hand: who waits needs no memory for it.
void Tunnel::rest(Way& way) {
  if (!way.pinned) way.inbox.release();
  way.from.trim();
}

// The first reason counts.
void Tunnel::stop(TunnelEnd end) noexcept {
  if (over_) return;
  over_ = true;
  end_ = end;
  up_.from.cancel();
  up_.to.cancel();
}

TunnelEnd Tunnel::broken(const Way& way, bool reading) const noexcept {
  if (session_.worker.hard_stop) return TunnelEnd::Stopped;
  if (session_.late()) return TunnelEnd::Idle;
  return (&way == &up_) == reading ? TunnelEnd::ClientBroke : TunnelEnd::ServerBroke;
}

}  // namespace weir::proxy
