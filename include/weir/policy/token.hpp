// JSON Web Tokens (RFC 7519), signed ones: whether one is genuine and in force, and what it claims.
//
// The algorithm is the configuration's, never the token's: a token that names another one is not genuine,
// "none" and an HMAC made with a public key among them (RFC 8725 §3.1). Pure but for the time a signature
// takes: the instant is an argument.
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

// What a verified token says: its claims that are text, a number or true and false, each as text. Belongs to
// one exchange; views of it live until it is filled again.
class Claims {
 public:
  // Empty: not claimed, or no text (a list, an object, null).
  [[nodiscard]] std::string_view find(std::string_view name) const noexcept;
  void add(std::string name, std::string value) { claims_.emplace_back(std::move(name), std::move(value)); }
  void clear() noexcept { claims_.clear(); }

 private:
  std::vector<std::pair<std::string, std::string>> claims_;
};

struct TokenSettings {
  std::string algorithm;     // HS256, HS384, HS512, RS256, … or ES512
  std::string key;           // of HS…: the secret; else the public key as PEM
  std::string issuer;        // what `iss` has to be; empty: anything
  std::string audience;      // what `aud` has to be or to hold; empty: anything
  base::Duration leeway{0};  // by which the issuer's clock may differ from this machine's
  bool require_exp = false;  // a token without `exp` is refused
};

struct TokenAlgorithm;

// Immutable; any thread may ask. The key is parsed once, by make().
class TokenVerifier {
 public:
  // An error names what is wrong: an unknown algorithm, a key that is none or of another kind, a secret
  // shorter than the hash (RFC 7518 §3.2).
  [[nodiscard]] static base::Result<TokenVerifier> make(TokenSettings settings);

  // Returns nullopt and fills `claims` if the token is genuine and in force at `now`, by the machine's clock:
  // from `nbf` − leeway, included, to `exp` + leeway, not included (RFC 7519 §4.1.4, §4.1.5). A token without
  // one of the two has no such bound. Otherwise returns why not, and `claims` is empty. Nothing of what the
  // token says but its algorithm is looked at before its signature is found good.
  [[nodiscard]] std::optional<TokenFault> verify(std::string_view token, base::TimePoint now,
                                                 Claims& claims) const;

  [[nodiscard]] const TokenSettings& settings() const noexcept { return settings_; }

 private:
  TokenVerifier(TokenSettings settings, const TokenAlgorithm& algorithm, std::shared_ptr<evp_pkey_st> key)
      : settings_(std::move(settings)), algorithm_(&algorithm), key_(std::move(key)) {}

  TokenSettings settings_;
  const TokenAlgorithm* algorithm_;
  std::shared_ptr<evp_pkey_st> key_;  // null of HS…; shared by the copies of a verifier, and never changed
};

}  // namespace weir::policy
