#include "proxy/client/connection_opening.hpp"

#include "weir/net/signal.hpp"
#include "weir/policy/identity.hpp"

#include <algorithm>
#include <utility>

namespace weir::proxy {

// Reads the PROXY header; returns false if there is none. Leaves the octets after the header in the socket,
// because TLS data may follow.
net::Task<bool> ConnectionOpening::read_proxy_header(Inbox& inbox) {
  watch_.arm(worker_.config().server.head_timeout);
  std::size_t seen = 0;
  bool taken = false;
  for (;;) {
    net::ErrorCode ec;
    char* at = inbox.space();
    const auto count = client_.peek(at, std::min(inbox.room(), http::kMaxProxyHeader), ec);
    const auto proxy_header = http::read_proxy_header({at, count});
    taken = proxy_header.status == http::ProxyHeader::Status::Whole && take(proxy_header);
    if (proxy_header.status != http::ProxyHeader::Status::NeedMore) break;
    if (ec && ec != net::asio::error::would_block) break;
    if (client_.peer_left() && count != 0 && count == seen) break;  // the client has closed its sending side
    seen = count;
    ec = co_await client_.wait_for_more();
    if (ec) break;
  }
  watch_.disarm();
  inbox.release();
  if (!taken) worker_.counters.client_errors(observe::ClientError::ProxyHeader).add();
  co_return taken;
}

// Takes the PROXY header off the socket; returns false if that fails. Uses the addresses in the header only
// if the peer is a trusted proxy.
bool ConnectionOpening::take(const http::ProxyHeader& proxy_header) {
  if (!client_.skip(proxy_header.size)) return false;
  if (!proxy_header.ends || !policy::is_trusted(worker_.config().client, peer_.address)) return true;
  peer_.use_reported(*proxy_header.ends);
  return true;
}

observe::Handshake ConnectionOpening::kind_of(const net::ErrorCode& ec) const noexcept {
  using observe::Handshake;
  if (!ec) return client_.is_resumed() ? Handshake::Resumed : Handshake::Full;
  if (watch_.late()) return Handshake::Late;
  if (ec == net::asio::error::eof || ec == net::asio::error::connection_reset) return Handshake::Left;
  if (!client_.rejection_reason(ec).empty()) return Handshake::Untrusted;
  return net::Stream::was_alerted(ec) ? Handshake::Alerted : Handshake::Failed;
}

net::Task<bool> ConnectionOpening::handshake() {
  watch_.arm(worker_.config().server.head_timeout);
  auto ec = co_await client_.handshake();
  while (ec == net::asio::error::in_progress) {
    co_await net::Pause(worker_.executor);
    if (watch_.late()) break;
    ec = co_await client_.handshake();
  }
  watch_.disarm();
  worker_.counters.handshakes(kind_of(ec)).add();
  if (ec) worker_.counters.client_errors(observe::ClientError::Handshake).add();
  if (ec) rejection_reason_ = client_.rejection_reason(ec);
  if (!ec)
    if (auto subject = client_.peer_subject(); !subject.empty())
      peer_.edit_details().certificate_subject = std::move(subject);
  co_return !ec;
}

}  // namespace weir::proxy
