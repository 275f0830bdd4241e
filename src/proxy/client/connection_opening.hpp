// What comes before the first request of a connection: a proxy says for whom it connects (PROXY protocol),
// and TLS begins. Each has [server] head_timeout.
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
  // All outlive it.
  ConnectionOpening(Worker& worker, ClientWatch& watch, net::Stream& client, ClientPeer& peer) noexcept
      : worker_(worker), watch_(watch), client_(client), peer_(peer) {}

  // Reads the preamble, and believes it of trusted proxies. Returns false if there is none. `inbox` is empty
  // before and after.
  [[nodiscard]] net::Task<bool> read_proxy_header(Inbox& inbox);
  // Returns false if the handshake failed, or did not end in time.
  [[nodiscard]] net::Task<bool> handshake();
  // Why handshake() did not trust the client's certificate; empty: it did. Static text.
  [[nodiscard]] std::string_view distrust() const noexcept { return distrust_; }

 private:
  [[nodiscard]] bool take(const http::ProxyHeader& proxy_header);
  [[nodiscard]] observe::Handshake kind_of(const net::ErrorCode& ec) const noexcept;

  Worker& worker_;
  ClientWatch& watch_;
  net::Stream& client_;
  ClientPeer& peer_;
  std::string_view distrust_;
};

}  // namespace weir::proxy
