// Signatures of tokens (RFC 7518 §3): keys are parsed once, and a signature is checked by the algorithm and
// the key of the configuration alone. Pure.
#pragma once

#include "weir/base/result.hpp"

#include <memory>
#include <string>
#include <string_view>

#include <openssl/evp.h>

namespace weir::policy {

struct TokenAlgorithm {
  std::string_view word;
  const EVP_MD* (*hash)();
  int key_type;  // of EVP_PKEY; EVP_PKEY_HMAC: a shared secret
  int bits;  // HMAC: of the hash, and so of the shortest secret; EC: of the curve; RSA: of the shortest key
  std::string_view curve;  // of EC, as OpenSSL names it
};

// Null where no algorithm has that name.
[[nodiscard]] const TokenAlgorithm* find_algorithm(std::string_view word) noexcept;

// Null of an algorithm with a shared secret. An error says why the key does not go with the algorithm.
[[nodiscard]] base::Result<std::shared_ptr<EVP_PKEY>> parse_key(const TokenAlgorithm& algorithm,
                                                                const std::string& key);

// Returns true if `signature` (octets) is that of `text`. `secret`: of HS…; `key`: of the others, as
// parse_key() made it. Threads may share the key.
[[nodiscard]] bool is_signature(const TokenAlgorithm& algorithm, std::string_view secret, EVP_PKEY* key,
                                std::string_view text, std::string_view signature);

}  // namespace weir::policy
