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
// or "http/1.0". A client gets the first certificate for the name that it asks for, of the key types that it
// can verify; the listener's first where none is for the name. Clients are asked for a certificate where
// `client_ca` says whose are good. Tickets are good only as long as `client_ca` holds what it held and
// certificates are required, or not, as before. `tickets`: of the listener; null for keys that OpenSSL makes
// and never changes. An error names the file and what OpenSSL says of it.
[[nodiscard]] base::Result<TlsContext> make_tls_context(const TlsSettings& settings,
                                                        const std::shared_ptr<TicketKeys>& tickets = nullptr);

// One more reference; null of null.
[[nodiscard]] TlsContext share(SSL_CTX* context) noexcept;

// Why no client ever gets a certificate.
struct Hidden {
  // The number of an earlier certificate that has a key of the same type and is shown in its place; absent:
  // it names no host, and is not the first.
  std::optional<std::size_t> behind{};
};

// What a context says of its certificates, in the order of the settings.
struct CertificateState {
  std::chrono::sys_seconds not_after{};
  // Absent: no response, or one of another certificate.
  std::optional<std::chrono::sys_seconds> stapled_until{};
  std::optional<Hidden> hidden{};  // absent: it can be shown
};
[[nodiscard]] std::vector<CertificateState> certificate_states(SSL_CTX* context);

// What is wrong with a file of clients' authorities; nullopt for nothing.
[[nodiscard]] std::optional<base::Error> fault_of_client_ca(const std::string& file);

}  // namespace weir::net
