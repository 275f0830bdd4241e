// The server side of TLS as configured: certificates, versions, ALPN. Shared by all workers (OpenSSL counts
// references to it atomically), and made anew when a file changes: connections keep the one they began with.
#pragma once

#include "weir/base/result.hpp"
#include "weir/net/listener_settings.hpp"
#include "weir/net/ticket_keys.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <openssl/ssl.h>

namespace weir::net {

struct FreeContext {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
};
using TlsContext = std::unique_ptr<SSL_CTX, FreeContext>;

// TLS 1.2 and 1.3, ECDHE with AEAD alone (RFC 9325 §4.2), no compression, no renegotiation, ALPN "http/1.1"
// or "http/1.0". Clients are asked for a certificate where `client_ca` says whose are good. Tickets are good
// only as long as `client_ca` holds what it held and certificates are required, or not, as before. `tickets`:
// of the listener; null for keys that OpenSSL makes and never changes. An error names the file and what
// OpenSSL says of it.
[[nodiscard]] base::Result<TlsContext> make_tls_context(const TlsSettings& settings,
                                                        const std::shared_ptr<TicketKeys>& tickets = nullptr);

// One more reference; null of null.
[[nodiscard]] TlsContext share(SSL_CTX* context) noexcept;

// What a context says of its certificates, in the order of the settings.
struct CertificateTimes {
  std::chrono::sys_seconds not_after;
  std::optional<std::chrono::sys_seconds>
      stapled_until;  // absent: no response, or one of another certificate
};
[[nodiscard]] std::vector<CertificateTimes> certificate_times(SSL_CTX* context);

// What is wrong with a file of clients' authorities; nullopt for nothing.
[[nodiscard]] std::optional<base::Error> fault_of_client_ca(const std::string& file);

}  // namespace weir::net
