// Verifies signed JSON Web Tokens (RFC 7519) and reads their claims.
//
// Only the configuration chooses the algorithm; the token cannot choose it (RFC 8725 §3.1). A token that
// names another algorithm is rejected, including "none" and an HMAC made with a public key. Pure: the time is
// an argument.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/policy/token_fault.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct evp_pkey_st;  // OpenSSL's EVP_PKEY

namespace weir::policy {

// The claims of a verified token, converted to text. Includes only claims that are text, numbers or booleans.
// Belongs to one exchange. Views live until the claims are filled again.
class Claims {
 public:
  // Returns the claim as text. Returns an empty text if the claim is missing, or is a list, an object or
  // null.
  [[nodiscard]] std::string_view find(std::string_view name) const noexcept;
  void add(std::string name, std::string value) { claims_.emplace_back(std::move(name), std::move(value)); }
  void clear() noexcept { claims_.clear(); }

 private:
  std::vector<std::pair<std::string, std::string>> claims_;
};

struct TokenSettings {
  std::string algorithm;     // HS256, HS384, HS512, RS256, … or ES512
  std::string key;           // the secret for HS…, otherwise the public key as PEM
  std::string issuer;        // required `iss`; empty: any issuer
  std::string audience;      // required `aud`, or a required member of the `aud` list; empty: any audience
  base::Duration leeway{0};  // tolerated difference between the clocks of the issuer and this machine
  bool require_exp = false;  // reject a token without `exp`
};

struct TokenAlgorithm;

// Immutable; any thread may use it. make() parses the key once.
class TokenVerifier {
 public:
  // Makes a verifier. The error says what is wrong with the settings: an unknown algorithm, an invalid key, a
  // key of another kind, or a secret shorter than the hash (RFC 7518 §3.2).
  [[nodiscard]] static base::Result<TokenVerifier> make(TokenSettings settings);

  // Verifies the token. Returns nullopt and fills `claims` if the token is genuine and valid at `now`, by the
  // machine's clock. A token is valid from `nbf` − leeway (included) to `exp` + leeway (excluded; RFC 7519
  // §4.1.4, §4.1.5). A missing claim sets no bound. If the token is not valid, returns the reason and clears
  // `claims`. Before the signature is verified, weir reads only the algorithm.
  [[nodiscard]] std::optional<TokenFault> verify(std::string_view token, base::TimePoint now,
                                                 Claims& claims) const;

  [[nodiscard]] const TokenSettings& settings() const noexcept { return settings_; }

 private:
  TokenVerifier(TokenSettings settings, const TokenAlgorithm& algorithm, std::shared_ptr<evp_pkey_st> key)
      : settings_(std::move(settings)), algorithm_(&algorithm), key_(std::move(key)) {}

  TokenSettings settings_;
  const TokenAlgorithm* algorithm_;
  std::shared_ptr<evp_pkey_st> key_;  // null for HS…; immutable, so copies of the verifier share it
};

}  // namespace weir::policy
