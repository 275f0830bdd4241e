// The client side of TLS: how weir verifies the certificates of servers, and which certificate weir shows to
// them. All workers share contexts and sessions (OpenSSL counts references atomically).
#pragma once

#include "weir/base/result.hpp"
#include "weir/net/tls_context.hpp"

#include <memory>
#include <string>

#include <openssl/ssl.h>

namespace weir::net {

struct TlsClientSettings {
  std::string ca{};  // PEM file: authorities that sign servers' certificates; empty: the system's authorities
  std::string cert{};  // PEM file: the certificate that weir shows on request, then its chain; empty: none
  std::string key{};   // PEM file: private key of `cert`
  bool verify = true;  // false: any certificate is accepted
  bool http1 = true;   // true: weir offers HTTP/1.1 by ALPN (RFC 7301)
  bool h2 = false;     // true: weir offers HTTP/2 by ALPN, as its first choice
  friend bool operator==(const TlsClientSettings&, const TlsClientSettings&) = default;
};

// Makes a context: TLS 1.2 and 1.3, ECDHE with AEAD only, ALPN. A connection that ends without
// close_notify is treated as broken. An error names the file and OpenSSL's reason.
[[nodiscard]] base::Result<TlsContext> make_tls_client_context(const TlsClientSettings& settings);

struct FreeSession {
  void operator()(SSL_SESSION* session) const noexcept { SSL_SESSION_free(session); }
};
using TlsSession = std::unique_ptr<SSL_SESSION, FreeSession>;
// Returns another reference to the same session; null if `session` is null.
[[nodiscard]] TlsSession share(SSL_SESSION* session) noexcept;

// The TLS parameters of one connection to a server.
struct TlsTarget {
  SSL_CTX* context;
  // The host name or IP address that the server's certificate must contain. A host name is also sent as SNI.
  const std::string& name;
  SSL_SESSION* session = nullptr;  // the session to resume if the server still accepts it; may be null
};

}  // namespace weir::net
