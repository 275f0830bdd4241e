// The part of a session that comes before its first request: a proxy says for whom it connects, and TLS
// begins.
#include "proxy/client/session.hpp"

#include "weir/net/listener.hpp"
#include "weir/policy/identity.hpp"

#include <algorithm>

#include <sys/socket.h>

namespace weir::proxy {

// The preamble is looked at where it stands, for what follows it may be TLS's. A place is taken once the
// client is known.
net::Task<bool> Session::read_proxy_protocol() {
  arm(worker.config().server.head_timeout);
  std::size_t seen = 0;
  bool taken = false;
  for (;;) {
    net::ErrorCode ec;
    char* at = inbox.space();
    const auto count = client.peek(at, std::min(inbox.room(), http::kMaxProxyHeader), ec);
    const auto proxy_header = http::read_proxy_header({at, count});
    taken = proxy_header.status == http::ProxyHeader::Status::Whole && take_proxy_header(proxy_header);
    if (proxy_header.status != http::ProxyHeader::Status::NeedMore) break;
    if (ec && ec != net::asio::error::would_block) break;
    if (client.peer_left() && count != 0 && count == seen) break;  // and no more will come
    seen = count;
    ec = co_await client.wait_for_more();
    if (ec) break;
  }
  disarm();
  inbox.release();
  if (!taken) worker.counters.client_errors(observe::ClientError::ProxyHeader).add();
  if (!taken) co_return false;
  const bool placed = static_cast<bool>(slot_);  // as nobody whose word is believed
  co_return placed || count_connection(worker, peer, slot_);
}

// What it says is believed of trusted proxies alone; of anybody else it is read over.
bool Session::take_proxy_header(const http::ProxyHeader& proxy_header) {
  if (!client.skip(proxy_header.size)) return false;
  if (!proxy_header.ends || !policy::is_trusted(worker.config().client, peer)) return true;
  believe(*proxy_header.ends);
  return true;
}

void Session::believe(const http::ConnectionEnds& told) {
  told_ends_ = told;
  peer = told.source;
  peer_port = told.source_port;
  peer_text = peer.to_string();
}

std::optional<http::ConnectionEnds> Session::ends() const {
  if (told_ends_) return told_ends_;
  const auto local = net::local_endpoint(client.native_handle());
  const auto family = local.data()->sa_family;
  if (family != AF_INET && family != AF_INET6) return std::nullopt;
  return http::ConnectionEnds{peer, net::peer_address(local), peer_port, net::peer_port(local)};
}

observe::Handshake Session::handshake_that_ended(const net::ErrorCode& ec) const noexcept {
  using observe::Handshake;
  if (!ec) return client.is_resumed() ? Handshake::Resumed : Handshake::Full;
  if (late_) return Handshake::Late;
  if (ec == net::asio::error::eof || ec == net::asio::error::connection_reset) return Handshake::Left;
  if (!client.distrust(ec).empty()) return Handshake::Untrusted;
  return net::Stream::was_alerted(ec) ? Handshake::Alerted : Handshake::Failed;
}

net::Task<bool> Session::secure() {
  arm(worker.config().server.head_timeout);
  auto ec = co_await client.handshake();
  while (ec == net::asio::error::in_progress) {
    co_await net::Pause(worker.executor);
    if (late_) break;
    ec = co_await client.handshake();
  }
  disarm();
  worker.counters.handshakes(handshake_that_ended(ec)).add();
  if (ec) worker.counters.client_errors(observe::ClientError::Handshake).add();
  if (ec) distrust_ = client.distrust(ec);
  if (!ec) certificate_subject_ = client.peer_subject();
  co_return !ec;
}

}  // namespace weir::proxy
