// Verifies signed JSON Web Tokens (RFC 7519) and reads their claims.
//
// Only the configuration and the keys in it say which algorithms a token may have (RFC 8725 §3.1). A token
// that names another algorithm is rejected, including "none" and an HMAC made with a public key. Pure: the
// time is an argument.
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

// How weir verifies the tokens of one issuer.
struct TokenSettings {
  std::string algorithm;  // HS256, RS256, PS256, ES256, EdDSA, …; empty: each that a key of `jwks` permits
  std::string key;        // the secret for HS…, otherwise the public key as PEM; empty if `jwks` is set
  std::string issuer;     // required `iss`; empty: any issuer
  std::string audience;   // required `aud`, or a required member of the `aud` list; empty: any audience
  base::Duration leeway{0};  // tolerated difference between the clocks of the issuer and this machine
  bool require_exp = false;  // reject a token without `exp`
  std::string jwks{};        // the text of a JWK set (RFC 7517 §5); empty: `key` is the only key
};

struct TokenIssuer;

// Immutable; any thread may use it. make() parses the keys once.
class TokenVerifier {
 public:
  // Makes a verifier for one issuer. The error says what is wrong with the settings. Examples: the algorithm
  // is unknown, the key or the JWK set is invalid, the key is of another kind, or the secret is shorter than
  // the hash (RFC 7518 §3.2).
  [[nodiscard]] static base::Result<TokenVerifier> make(TokenSettings settings);
  // Adds the issuers of `other`. If there are several, weir chooses by `iss`, so each must have an issuer of
  // its own.
  void add(const TokenVerifier& other);

  // Verifies the token. Returns nullopt and fills `claims` if the token is genuine and valid at `now`, by the
  // machine's clock. A token is valid from `nbf` − leeway (included) to `exp` + leeway (excluded; RFC 7519
  // §4.1.4, §4.1.5). A missing claim sets no bound. If the token is not valid, returns the reason and clears
  // `claims`. Before the signature is verified, weir reads only the algorithm and `kid`, and `iss` if there
  // are several issuers.
  [[nodiscard]] std::optional<TokenFault> verify(std::string_view token, base::TimePoint now,
                                                 Claims& claims) const;

  [[nodiscard]] std::vector<TokenSettings> settings() const;

 private:
  explicit TokenVerifier(std::shared_ptr<const TokenIssuer> issuer) : issuers_{std::move(issuer)} {}

  std::vector<std::shared_ptr<const TokenIssuer>> issuers_;  // immutable, so copies share them
};

}  // namespace weir::policy
