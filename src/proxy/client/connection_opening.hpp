// The steps before a connection's first request: the PROXY protocol header and the TLS handshake. Each step
// has the deadline [server] head_timeout. A ConnectionOpening lives in the coroutine frame of
// Session::open().
#pragma once

#include "proxy/client/client_peer.hpp"
#include "proxy/client/client_watch.hpp"

#include "weir/http/proxy_header.hpp"
#include "weir/net/stream.hpp"
#include "weir/net/task.hpp"
#include "weir/proxy/worker.hpp"

#include <string_view>

namespace weir::proxy {

class ConnectionOpening {
 public:
  // All arguments must outlive this object.
  ConnectionOpening(Worker& worker, ClientWatch& watch, net::Stream& client, ClientPeer& peer) noexcept
      : worker_(worker), watch_(watch), client_(client), peer_(peer) {}

  // Reads the PROXY header, and uses its addresses if the peer is a trusted proxy. Returns false if there is
  // no valid header. `inbox` is empty before and after.
  [[nodiscard]] net::Task<bool> read_proxy_header(Inbox& inbox);
  // Performs the TLS handshake. Returns false if the handshake failed or was late.
  [[nodiscard]] net::Task<bool> handshake();
  // Returns why handshake() rejected the client's certificate. Empty if handshake() did not reject it. Static
  // text.
  [[nodiscard]] std::string_view rejection_reason() const noexcept { return rejection_reason_; }

 private:
  [[nodiscard]] bool take(const http::ProxyHeader& proxy_header);
  [[nodiscard]] observe::Handshake kind_of(const net::ErrorCode& ec) const noexcept;

  Worker& worker_;
  ClientWatch& watch_;
  net::Stream& client_;
  ClientPeer& peer_;
  std::string_view rejection_reason_;
};

}  // namespace weir::proxy
