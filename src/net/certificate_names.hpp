// Finds which certificate of a listener a client gets for a host name, and which certificates no client can
// get.
//
// A client sends a host name (SNI) and the signature algorithms that it can verify. For each key type, weir
// offers to OpenSSL the first certificate that is valid for the host name. OpenSSL sends the certificate that
// the client can verify.
#pragma once

#include "weir/net/tls_context.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/ssl.h>

namespace weir::net {

struct CertificateNames {
  int key_type = 0;  // the result of EVP_PKEY_get_base_id(3): RSA, EC, Ed25519, …
  // host names in lower case; "*.example.com" stands for all names with exactly one label before
  // "example.com"
  std::vector<std::string> hosts{};
  std::vector<std::string> addresses{};  // IP addresses in binary form; clients cannot request them by SNI
};

// Returns the names in the context's first certificate.
[[nodiscard]] CertificateNames names_of(SSL_CTX* context);

// Returns true if `pattern`, a name in a certificate, matches every host name that `name` (a host name or a
// pattern) matches. `pattern` and `name` must be in lower case.
[[nodiscard]] bool covers(std::string_view pattern, std::string_view name) noexcept;

// Returns the indices of the first certificate's stand-ins, at most one for each other key type. The stand-in
// of a key type is the first certificate of that type that shares a name or address with the first
// certificate. If no certificate is valid for the requested name, weir offers the first certificate and its
// stand-ins.
[[nodiscard]] std::vector<std::size_t> fallback_certificates(const std::vector<CertificateNames>& all);

// Returns for each certificate the reason why no client can get it; nullopt if clients can get it.
[[nodiscard]] std::vector<std::optional<HiddenReason>> find_hidden(const std::vector<CertificateNames>& all);

}  // namespace weir::net
