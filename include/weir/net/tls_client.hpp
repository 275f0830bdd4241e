// The client side of TLS: how weir verifies the certificates of servers, and its own certificate. Contexts
// and sessions are shared by all workers (OpenSSL counts their references atomically).
#pragma once

#include "weir/base/result.hpp"
#include "weir/net/tls_context.hpp"

#include <memory>
#include <string>

#include <openssl/ssl.h>

namespace weir::net {

struct TlsClientSettings {
  std::string ca{};    // PEM: authorities that sign servers' certificates; empty: the system's
  std::string cert{};  // PEM: the certificate that weir shows if the server asks, then its chain; empty: none
  std::string key{};   // PEM: private key of `cert`
  bool verify = true;  // false: any certificate is accepted
  friend bool operator==(const TlsClientSettings&, const TlsClientSettings&) = default;
};

// Makes a context: TLS 1.2 and 1.3, ECDHE with AEAD only, ALPN "http/1.1". A connection that ends without
// close_notify counts as broken. An error names the file and OpenSSL's reason.
[[nodiscard]] base::Result<TlsContext> make_tls_client_context(const TlsClientSettings& settings);

struct FreeSession {
  void operator()(SSL_SESSION* session) const noexcept { SSL_SESSION_free(session); }
};
using TlsSession = std::unique_ptr<SSL_SESSION, FreeSession>;
// Returns a new reference to the session; null for null.
[[nodiscard]] TlsSession share(SSL_SESSION* session) noexcept;

// The parameters of a client's TLS connection.
struct TlsTarget {
  SSL_CTX* context;
  // The host name or IP address that the certificate must be for. A name is sent as SNI too.
  const std::string& name;
  SSL_SESSION* session = nullptr;  // session to resume if the server still knows it; may be null
};

}  // namespace weir::net
