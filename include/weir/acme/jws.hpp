// The account's key, and how it signs requests to the authority (JWS with ES256, RFC 7515 and RFC 7518).
#pragma once

#include "weir/acme/settings.hpp"
#include "weir/base/result.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <openssl/evp.h>

namespace weir::acme {

// Returns the bytes in base64url, without padding (RFC 7515 §2).
[[nodiscard]] std::string base64url(std::string_view bytes);
// Decodes a text in base64url, with or without padding. Returns nullopt if the text is not base64url.
[[nodiscard]] std::optional<std::string> from_base64url(std::string_view text);
// Returns the SHA-256 digest, 32 bytes.
[[nodiscard]] std::string sha256(std::string_view bytes);

struct FreeKey {
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;  // a private key on the curve P-256

[[nodiscard]] base::Result<Key> make_key();
// Reads a private key. Returns an error if the text has no private key on P-256.
[[nodiscard]] base::Result<Key> key_of_pem(std::string_view pem);
[[nodiscard]] std::string to_pem(const Key& key);

// Returns the public half as a JSON Web Key with its members in the order of RFC 7638.
[[nodiscard]] std::string jwk_of(const Key& key);
// Returns the key authorization of RFC 8555 §8.1: "TOKEN.THUMBPRINT".
[[nodiscard]] std::string key_authorization(const Key& account, std::string_view token);

// The protected header of a request.
struct JwsHeader {
  std::string nonce;
  std::string url;
  std::string account{};  // the account's URL; empty: the header has the public key instead
};
// Returns the signed request as JSON. With an empty `payload`, the request is a POST-as-GET (RFC 8555 §6.3).
[[nodiscard]] base::Result<std::string> sign(const Key& account, const JwsHeader& header,
                                             std::string_view payload);

// Returns the JSON that binds the account to an external account (RFC 8555 §7.3.4). `url`: the URL at which
// the authority creates accounts.
[[nodiscard]] std::string bind_account(const Key& account, const ExternalAccount& external,
                                       std::string_view url);

}  // namespace weir::acme
