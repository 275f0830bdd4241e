// The server side of TLS: certificates, versions, ALPN. All workers share a context (OpenSSL counts
// references atomically). If a file changes, weir makes a new context; existing connections keep the old one.
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
// ALPN as in `settings.protocols`.
//
// A client gets the first certificate that is valid for the requested name and has a key type that the client
// can verify. If no certificate is valid for the name, the client gets the listener's first certificate. If
// `client_ca` is set, weir asks clients for a certificate. A session ticket becomes invalid if the content of
// `client_ca` or `client_crl`, or the value of `client_auth` changes.
//
// `tickets`: the keys for session tickets; null: OpenSSL makes keys that never change. An error names the
// file and OpenSSL's reason.
[[nodiscard]] base::Result<TlsContext> make_tls_context(const TlsSettings& settings,
                                                        const std::shared_ptr<TicketKeys>& tickets = nullptr);

// Returns another reference to the same context; null if `context` is null.
[[nodiscard]] TlsContext share(SSL_CTX* context) noexcept;

// Why no client ever gets a certain certificate of the listener (a hidden certificate).
struct HiddenReason {
  // The index of an earlier certificate with the same key type. Clients get that certificate instead. Absent:
  // the hidden certificate contains no host name and is not the first certificate.
  std::optional<std::size_t> behind{};
};

// The state of one certificate of a context.
struct CertificateState {
  std::chrono::sys_seconds not_after{};
  // The time until which weir staples the OCSP response. Absent: there is no response, or the response is
  // about another certificate.
  std::optional<std::chrono::sys_seconds> stapled_until{};
  std::optional<HiddenReason> hidden{};  // absent: clients can get this certificate
};
[[nodiscard]] std::vector<CertificateState> certificate_states(SSL_CTX* context);

// Returns what is wrong with a file of authorities for client certificates; nullopt if the file is good.
[[nodiscard]] std::optional<base::Error> fault_of_client_ca(const std::string& file);

}  // namespace weir::net
