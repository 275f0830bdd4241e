// Which certificates of a listener stand in for each other, and which of them no client can ever get.
//
// A client names a host (SNI) and says which signatures it can verify. It gets the first certificate for that
// host of each key type that the listener has; OpenSSL shows the one that the client can verify.
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
  int key_type = 0;                      // as EVP_PKEY_get_base_id(3): RSA, EC, Ed25519, …
  std::vector<std::string> hosts{};      // in lower case; "*.example.com" for all names one label below
  std::vector<std::string> addresses{};  // as octets; no client asks for one by SNI
};

// Of the first certificate that a context has.
[[nodiscard]] CertificateNames names_of(SSL_CTX* context);

// Returns true if a certificate for `pattern` is good for all that `name` stands for. Both in lower case.
[[nodiscard]] bool covers(std::string_view pattern, std::string_view name) noexcept;

// Returns the certificates that stand in for the first, which is shown where none is for the name that the
// client asks for: of each other key type, the first with a name or an address in common with it.
[[nodiscard]] std::vector<std::size_t> stand_ins(const std::vector<CertificateNames>& all);

// Returns for each certificate why it can never be shown; nullopt if it can.
[[nodiscard]] std::vector<std::optional<Hidden>> find_hidden(const std::vector<CertificateNames>& all);

}  // namespace weir::net
