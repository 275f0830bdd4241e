// The server side of TLS: certificates, versions, ALPN. A context is shared by all workers (OpenSSL counts
// its references atomically). A changed file makes a new context; existing connections keep their own.
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

// Makes the context: TLS 1.2 and 1.3, ECDHE with AEAD only (RFC 9325 §4.2), no compression, no renegotiation,
// ALPN by `settings.protocols`.
//
// A client gets the first certificate that is for the requested name and has a key type that the client can
// verify. If no certificate is for the name, the client gets the listener's first certificate. Clients are
// asked for a certificate if `client_ca` is set. A ticket is valid only while the content of `client_ca` and
// the requirement of a certificate are unchanged.
//
// `tickets`: the listener's keys; null: OpenSSL makes keys that never change. An error names the file and
// OpenSSL's reason.
[[nodiscard]] base::Result<TlsContext> make_tls_context(const TlsSettings& settings,
                                                        const std::shared_ptr<TicketKeys>& tickets = nullptr);

// Returns a new reference to the context; null for null.
[[nodiscard]] TlsContext share(SSL_CTX* context) noexcept;

// The reason why no client ever gets a certificate.
struct Hidden {
  // The index of an earlier certificate with the same key type, which clients get instead. Absent: the
  // certificate names no host and is not the first.
  std::optional<std::size_t> behind{};
};

// The state of one certificate of a context.
struct CertificateState {
  std::chrono::sys_seconds not_after{};
  // Until when weir staples the OCSP response. Absent: there is no response, or it is for another
  // certificate.
  std::optional<std::chrono::sys_seconds> stapled_until{};
  std::optional<Hidden> hidden{};  // absent: clients can get it
};
[[nodiscard]] std::vector<CertificateState> certificate_states(SSL_CTX* context);

// Returns what is wrong with a file of clients' authorities, or nullopt.
[[nodiscard]] std::optional<base::Error> fault_of_client_ca(const std::string& file);

}  // namespace weir::net
