// The client side of TLS as configured: whom weir believes to be the server that it means to reach. Shared by
// all workers (OpenSSL counts references to contexts and sessions atomically).
#pragma once

#include "weir/base/result.hpp"
#include "weir/net/tls_context.hpp"

#include <memory>
#include <string>

#include <openssl/ssl.h>

namespace weir::net {

struct TlsClientSettings {
  std::string ca{};  // PEM: the authorities of servers' certificates; empty: the system's
  std::string
      cert{};  // PEM: the certificate that weir shows where it is asked for one, then its chain; empty: none
  std::string key{};   // PEM, of cert
  bool verify = true;  // false: any certificate will do
  friend bool operator==(const TlsClientSettings&, const TlsClientSettings&) = default;
};

// TLS 1.2 and 1.3, ECDHE with AEAD alone, ALPN "http/1.1". A connection that ends without a word is a broken
// one. An error names the file and what OpenSSL says of it.
[[nodiscard]] base::Result<TlsContext> make_tls_client_context(const TlsClientSettings& settings);

struct FreeSession {
  void operator()(SSL_SESSION* session) const noexcept { SSL_SESSION_free(session); }
};
using TlsSession = std::unique_ptr<SSL_SESSION, FreeSession>;
// One more reference; null of null.
[[nodiscard]] TlsSession share(SSL_SESSION* session) noexcept;

// What a stream needs to become a client's.
struct TlsTarget {
  SSL_CTX* context;
  // The host name, or the address, that the certificate has to be for; the name is asked for by SNI as well.
  const std::string& name;
  SSL_SESSION* session = nullptr;  // to be resumed, if the server still has it
};

}  // namespace weir::net
