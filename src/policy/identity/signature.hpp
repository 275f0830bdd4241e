// Verifies the signatures of tokens (RFC 7518 §3, RFC 8037 §3.1). Only the configuration chooses the
// algorithm and the key. Keys are parsed once. Pure.
#pragma once

#include "weir/base/result.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <openssl/evp.h>

namespace weir::policy {

struct TokenAlgorithm {
  std::string_view word;
  const EVP_MD* (*hash)();
  int key_type;  // a type of EVP_PKEY; EVP_PKEY_HMAC for a shared secret
  // For HMAC: the size of the hash, which is also the shortest secret. For EC: the size of the curve. For
  // RSA: the size of the shortest key.
  int bits;
  std::string_view curve;  // for EC: the curve's name in OpenSSL
  bool pss = false;        // for RSA: true for RSASSA-PSS, false for RSASSA-PKCS1-v1_5
};

// Returns all algorithms that weir knows.
[[nodiscard]] std::span<const TokenAlgorithm> token_algorithms() noexcept;

// Returns the algorithm with that name; null if no algorithm has it.
[[nodiscard]] const TokenAlgorithm* find_algorithm(std::string_view word) noexcept;

// Parses the algorithm's key. Returns null if the algorithm uses a shared secret. Returns an error if the key
// does not fit the algorithm.
[[nodiscard]] base::Result<std::shared_ptr<EVP_PKEY>> parse_key(const TokenAlgorithm& algorithm,
                                                                const std::string& key);

// Returns why a public key does not fit an algorithm that has public keys; empty if the key fits.
[[nodiscard]] std::string fault_in_public_key(const TokenAlgorithm& algorithm, EVP_PKEY* key);

// Returns true if `signature` is a valid signature of `text`. Uses `secret` for HS…, otherwise the `key` from
// parse_key(). Threads may share the key.
[[nodiscard]] bool is_signature(const TokenAlgorithm& algorithm, std::string_view secret, EVP_PKEY* key,
                                std::string_view text, std::string_view signature);

}  // namespace weir::policy
