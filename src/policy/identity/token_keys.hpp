// The keys with which weir verifies the tokens of one issuer. Pure.
#pragma once

#include "policy/identity/signature.hpp"

#include "weir/base/result.hpp"
#include "weir/policy/identity/token_fault.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weir::policy {

// One key for one algorithm. A key of a JWK set that permits several algorithms is listed once for each.
struct TokenKey {
  std::string id;  // `kid` (RFC 7517 §4.5); empty: the key has none and fits tokens with any `kid`
  const TokenAlgorithm* algorithm;
  std::shared_ptr<EVP_PKEY> key;  // null for a shared secret
};

// Reads the public keys for signatures in a JWK set (RFC 7517 §5). Ignores keys that weir cannot use: other
// types and curves, short RSA keys, shared secrets, keys for encryption. `only`: the only algorithm to keep;
// empty: keeps all algorithms. The error says that the text is no JWK set, or why it has no usable key.
[[nodiscard]] base::Result<std::vector<TokenKey>> read_jwk_set(std::string_view text, std::string_view only);

// Returns the number of different keys in the list.
[[nodiscard]] std::size_t count_keys(const std::vector<TokenKey>& keys) noexcept;

inline constexpr std::size_t kMostJwks = 100;  // the largest number of keys in a JWK set

// Chooses the key for a token with this algorithm and `kid` (nullopt: the token has no `kid`). Considers only
// keys that permit the algorithm; returns TokenFault::Algorithm if there is none. Then chooses:
// * if the token has a `kid`: the key with this ID; if there is none, the only key without an ID;
// * otherwise: the only key.
// If several keys remain, or none, returns TokenFault::Key.
[[nodiscard]] std::variant<const TokenKey*, TokenFault> choose_key(const std::vector<TokenKey>& keys,
                                                                   std::string_view algorithm,
                                                                   std::optional<std::string_view> kid);

}  // namespace weir::policy
