// Finds which certificate of a listener a client gets for a host, and which certificates no client can get.
//
// A client names a host (SNI) and says which signatures it can verify. For each key type, the first
// certificate for that host is offered. OpenSSL sends the certificate that the client can verify.
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
  int key_type = 0;                      // as of EVP_PKEY_get_base_id(3): RSA, EC, Ed25519, …
  std::vector<std::string> hosts{};      // in lower case; "*.example.com" means all names one label below
  std::vector<std::string> addresses{};  // as octets; no client asks for an address by SNI
};

// Returns the names of a context's first certificate.
[[nodiscard]] CertificateNames names_of(SSL_CTX* context);

// Returns true if a certificate for `pattern` is valid for every host that `name` matches. Both must be in
// lower case.
[[nodiscard]] bool covers(std::string_view pattern, std::string_view name) noexcept;

// Returns the indices of the certificates that are offered together with the first certificate if no
// certificate is for the requested name. For each other key type, the result has the first certificate that
// shares a name or address with the first certificate.
[[nodiscard]] std::vector<std::size_t> stand_ins(const std::vector<CertificateNames>& all);

// Returns for each certificate the reason why no client can get it; nullopt if clients can.
[[nodiscard]] std::vector<std::optional<Hidden>> find_hidden(const std::vector<CertificateNames>& all);

}  // namespace weir::net
