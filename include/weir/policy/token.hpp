// Verifies signed JSON Web Tokens (RFC 7519) and reads their claims.
//
// Only the configuration and the keys in it say which algorithms a token may have (RFC 8725 §3.1). A token
// that names another algorithm is rejected, including "none" and an HMAC made with a public key. Pure: the
// time is an argument.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/policy/identity/fetched_keys.hpp"
#include "weir/policy/identity/token_fault.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::policy {

// The claims of a verified token, converted to text. Includes only claims that are text, numbers or booleans,
// and list elements of these types. Belongs to one exchange. Views live until the claims are filled again.
class Claims {
 public:
  // Returns the claim as text. Returns an empty text if the claim is missing, or is a list, an object or
  // null.
  [[nodiscard]] std::string_view find(std::string_view name) const noexcept;
  // Returns true if `test` returns true for the claim, or for an element if the claim is a list.
  template <class Test>
  [[nodiscard]] bool any(std::string_view name, Test test) const {
    const auto holds = [&](const Named& one) {
      return one.first == name && test(std::string_view(one.second));
    };
    return std::any_of(claims_.begin(), claims_.end(), holds) ||
           std::any_of(elements_.begin(), elements_.end(), holds);
  }
  void add(std::string name, std::string value) { claims_.emplace_back(std::move(name), std::move(value)); }
  // Adds an element of a list.
  void add_element(std::string name, std::string value) {
    elements_.emplace_back(std::move(name), std::move(value));
  }
  void clear() noexcept {
    claims_.clear();
    elements_.clear();
  }

 private:
  using Named = std::pair<std::string, std::string>;
  std::vector<Named> claims_;
  std::vector<Named> elements_;
};

// How weir verifies the tokens of one issuer.
struct TokenSettings {
  std::string algorithm;  // HS256, RS256, PS256, ES256, EdDSA, …; empty: all that the keys of `jwks` permit
  std::string key;        // the secret for HS…, otherwise the public key as PEM; empty if `jwks` is set
  std::string issuer;     // required `iss`; empty: any issuer
  std::string audience;   // required `aud`, or a required member of the `aud` list; empty: any audience
  base::Duration leeway{0};  // tolerated difference between the clocks of the issuer and this machine
  bool require_exp = false;  // reject a token without `exp`
  std::string jwks{};        // the text of a JWK set (RFC 7517 §5); empty: `key` is the only key
  std::optional<KeyFetchSettings>
      fetch{};  // set if weir fetches the JWK set; `key` and `jwks` are then empty
};

struct TokenIssuer;

// Verifies tokens. Any thread may use it. Immutable, apart from the fetched keys. make() parses configured
// keys once.
class TokenVerifier {
 public:
  // Makes a verifier for one issuer. The error says what is wrong with the settings. Examples: the algorithm
  // is unknown, the key or the JWK set is invalid, the key does not fit the algorithm, the secret is shorter
  // than the hash (RFC 7518 §3.2).
  [[nodiscard]] static base::Result<TokenVerifier> make(TokenSettings settings);
  // Adds the issuers of `other`. If there are several issuers, their values of `issuer` must differ, because
  // weir chooses the issuer of a token by its `iss`.
  void add(const TokenVerifier& other);

  // Verifies the token. Returns nullopt and fills `claims` if the token is genuine and valid at `now`, by the
  // machine's clock. Otherwise returns the reason and clears `claims`.
  // * A token is valid from `nbf` − leeway (included) to `exp` + leeway (excluded; RFC 7519 §4.1.4, §4.1.5).
  //   A missing claim sets no bound.
  // * Before the signature is verified, weir reads only the algorithm and `kid`, and `iss` if there are
  //   several issuers or fetched keys.
  // * `keys_current`: true if weir has fetched the keys of the issuer since the token arrived. If this is
  //   false, a token with an unknown key gets Unavailable, because the issuer may have added the key since
  //   the last fetch.
  [[nodiscard]] std::optional<TokenFault> verify(std::string_view token, base::TimePoint now, Claims& claims,
                                                 bool keys_current = false) const;

  // The fetched keys of an issuer. The verifier must outlive the object.
  struct KeySource {
    FetchedKeys* keys;
    const KeyFetchSettings* settings;
  };
  // Returns the fetched keys of the token's issuer if the key for the token is not among them, so that the
  // caller can fetch the keys. Returns nullopt if a fetch would not help.
  [[nodiscard]] std::optional<KeySource> lacking(std::string_view token) const;

  [[nodiscard]] std::vector<TokenSettings> settings() const;
  // Returns the longest `cooldown` of the issuers; 0 if weir fetches no keys.
  [[nodiscard]] base::Duration cooldown() const noexcept;

  using KeysByUrl = std::map<std::string, std::pair<KeyFetchSettings, std::shared_ptr<FetchedKeys>>>;
  // Returns the URLs of fetched keys, with their settings and the keys that the issuers share.
  [[nodiscard]] KeysByUrl fetched() const;
  // Uses these keys instead of the verifier's own, for issuers with the same URL.
  void share_keys(const KeysByUrl& others);

 private:
  explicit TokenVerifier(std::shared_ptr<const TokenIssuer> issuer) : issuers_{std::move(issuer)} {}

  std::vector<std::shared_ptr<const TokenIssuer>> issuers_;  // immutable, so copies share them
};

}  // namespace weir::policy
