// The server side of TLS as configured: certificates, versions, ALPN. Made once at start and shared by all
// workers (OpenSSL counts references to it atomically).
#pragma once

#include "weir/base/result.hpp"
#include "weir/net/listener_settings.hpp"

#include <memory>
#include <optional>
#include <string>

#include <openssl/ssl.h>

namespace weir::net {

struct FreeContext {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
};
using TlsContext = std::unique_ptr<SSL_CTX, FreeContext>;

// TLS 1.2 and 1.3, ECDHE with AEAD alone (RFC 9325 §4.2), no compression, no renegotiation, ALPN "http/1.1".
// Clients are asked for a certificate where `client_ca` says whose are good.
// An error names the file and what OpenSSL says of it.
[[nodiscard]] base::Result<TlsContext> make_tls_context(const TlsSettings& settings);

// What is wrong with a file of clients' authorities; nullopt for nothing.
[[nodiscard]] std::optional<base::Error> fault_of_client_ca(const std::string& file);

}  // namespace weir::net
