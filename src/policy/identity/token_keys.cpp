#include "policy/identity/token_keys.hpp"

#include "policy/identity/base64url.hpp"

#include <algorithm>
#include <array>

#include <boost/json.hpp>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>

namespace weir::policy {

namespace {

namespace json = boost::json;

using SharedKey = std::shared_ptr<EVP_PKEY>;
using Integer = std::unique_ptr<BIGNUM, decltype([](BIGNUM* number) { BN_free(number); })>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, decltype([](OSSL_PARAM_BLD* b) { OSSL_PARAM_BLD_free(b); })>;
using Parameters = std::unique_ptr<OSSL_PARAM, decltype([](OSSL_PARAM* p) { OSSL_PARAM_free(p); })>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, decltype([](EVP_PKEY_CTX* c) { EVP_PKEY_CTX_free(c); })>;

struct Curve {
  std::string_view name;    // the curve's name in a JWK (RFC 7518 §6.2.1.1)
  const char* group;        // the curve's name in OpenSSL
  std::size_t coordinates;  // octets of each coordinate
};
constexpr std::array kCurves = {Curve{"P-256", "prime256v1", 32}, Curve{"P-384", "secp384r1", 48},
                                Curve{"P-521", "secp521r1", 66}};

const unsigned char* octets(const std::string& text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}

SharedKey owned(EVP_PKEY* key) {
  return {key, [](EVP_PKEY* owned) { EVP_PKEY_free(owned); }};
}

std::string_view text_in(const json::object& jwk, std::string_view name) {
  const auto* value = jwk.if_contains(name);
  const auto* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string_view() : std::string_view(text->data(), text->size());
}

// Decodes a member in base64url. Returns nullopt if the member is missing, no text, or faulty.
std::optional<std::string> octets_in(const json::object& jwk, std::string_view name) {
  const auto text = text_in(jwk, name);
  if (text.empty()) return std::nullopt;
  return decode_base64url(text);
}

// Makes a public key of an OpenSSL type from its parameters. Returns null if OpenSSL rejects them.
SharedKey make_key(const char* type, OSSL_PARAM_BLD* builder) {
  const Parameters parameters(OSSL_PARAM_BLD_to_param(builder));
  const KeyContext maker(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (!parameters || !maker || EVP_PKEY_fromdata_init(maker.get()) != 1 ||
      EVP_PKEY_fromdata(maker.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get()) != 1)
    return nullptr;
  return owned(key);
}

// Makes an RSA key from its members in a JWK (RFC 7518 §6.3.1). Returns null if the members are faulty.
SharedKey rsa_key(const json::object& jwk) {
  const auto modulus = octets_in(jwk, "n"), exponent = octets_in(jwk, "e");
  const Builder builder(OSSL_PARAM_BLD_new());
  if (!modulus || !exponent || !builder) return nullptr;
  const Integer n(BN_bin2bn(octets(*modulus), static_cast<int>(modulus->size()), nullptr));
  const Integer e(BN_bin2bn(octets(*exponent), static_cast<int>(exponent->size()), nullptr));
  if (!n || !e || OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get()) != 1)
    return nullptr;
  return make_key("RSA", builder.get());
}

// Makes a key of an elliptic curve from its members in a JWK (RFC 7518 §6.2.1). Returns null if the members
// are faulty. OpenSSL rejects a point that is not on the curve.
SharedKey ec_key(const json::object& jwk) {
  const auto* curve = std::find_if(kCurves.begin(), kCurves.end(),
                                   [&](const Curve& each) { return each.name == text_in(jwk, "crv"); });
  const auto x = octets_in(jwk, "x"), y = octets_in(jwk, "y");
  const Builder builder(OSSL_PARAM_BLD_new());
  if (curve == kCurves.end() || !x || !y || !builder || x->size() != curve->coordinates ||
      y->size() != curve->coordinates)
    return nullptr;
  std::string point(1, '\x04');  // the form without compression (SEC 1 §2.3.3)
  point.append(*x).append(*y);
  if (OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, curve->group, 0) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()) !=
          1)
    return nullptr;
  return make_key("EC", builder.get());
}

// Makes an Ed25519 key from its members in a JWK (RFC 8037 §2). Returns null if the members are faulty.
SharedKey ed25519_key(const json::object& jwk) {
  const auto x = octets_in(jwk, "x");
  if (text_in(jwk, "crv") != "Ed25519" || !x) return nullptr;
  return owned(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, octets(*x), x->size()));
}

SharedKey key_in(const json::object& jwk) {
  const auto type = text_in(jwk, "kty");
  if (type == "RSA") return rsa_key(jwk);
  if (type == "EC") return ec_key(jwk);
  return type == "OKP" ? ed25519_key(jwk) : nullptr;
}

// Returns true if the key may verify signatures (RFC 7517 §4.2, §4.3).
bool is_for_signatures(const json::object& jwk) {
  if (jwk.contains("use") && text_in(jwk, "use") != "sig") return false;
  const auto* operations = jwk.if_contains("key_ops");
  if (operations == nullptr) return true;
  const auto* list = operations->if_array();
  return list != nullptr && std::any_of(list->begin(), list->end(), [](const json::value& operation) {
           const auto* text = operation.if_string();
           return text != nullptr && *text == "verify";
         });
}

// Adds the key to `keys` once for each algorithm that it permits. `only`: the only algorithm to add; empty:
// adds all algorithms.
void add_key(const json::object& jwk, std::string_view only, std::vector<TokenKey>& keys) {
  if (!is_for_signatures(jwk)) return;
  const auto key = key_in(jwk);
  if (!key) return ERR_clear_error();
  for (const auto& algorithm : token_algorithms()) {
    const bool named = !jwk.contains("alg") || text_in(jwk, "alg") == algorithm.word;
    const bool wanted = only.empty() || only == algorithm.word;
    if (!named || !wanted || algorithm.key_type == EVP_PKEY_HMAC) continue;
    if (!fault_in_public_key(algorithm, key.get()).empty()) continue;
    keys.push_back({std::string(text_in(jwk, "kid")), &algorithm, key});
  }
}

}  // namespace

base::Result<std::vector<TokenKey>> read_jwk_set(std::string_view text, std::string_view only) {
  boost::system::error_code malformed;
  const auto value = json::parse(json::string_view(text.data(), text.size()), malformed);
  const auto* set = malformed ? nullptr : value.if_object();
  const auto* member = set == nullptr ? nullptr : set->if_contains("keys");
  const auto* list = member == nullptr ? nullptr : member->if_array();
  if (list == nullptr) return base::Error{"is not a JWK set; expected {\"keys\": [ … ]} (RFC 7517 §5)"};
  if (list->size() > kMostJwks)
    return base::Error{"has " + std::to_string(list->size()) + " keys; expected at most " +
                       std::to_string(kMostJwks)};
  std::vector<TokenKey> keys;
  for (const auto& jwk : *list)
    if (jwk.is_object()) add_key(jwk.get_object(), only, keys);
  if (keys.empty())
    return base::Error{"has no public key for " +
                       (only.empty() ? std::string("signatures that weir knows: RSA of 2048 bits or more, "
                                                   "P-256, P-384, P-521 or Ed25519")
                                     : std::string(only))};
  return keys;
}

// A key that permits several algorithms has several entries, which follow one another. They count as one key.
std::size_t count_keys(const std::vector<TokenKey>& keys) noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (i == 0 || keys[i].key != keys[i - 1].key) ++count;
  return count;
}

std::variant<const TokenKey*, TokenFault> choose_key(const std::vector<TokenKey>& keys,
                                                     std::string_view algorithm,
                                                     std::optional<std::string_view> kid) {
  // The last key that may fit: its algorithm fits, and the key or the token has no `kid`.
  const TokenKey* unnamed = nullptr;
  std::size_t fitting = 0, possible = 0;
  for (const auto& key : keys) {
    if (key.algorithm->word != algorithm) continue;
    ++fitting;
    if (kid && !key.id.empty() && key.id == *kid) return &key;
    if (kid && !key.id.empty()) continue;
    unnamed = &key;
    ++possible;
  }
  if (fitting == 0) return TokenFault::Algorithm;
  if (possible != 1) return TokenFault::Key;
  return unnamed;
}

}  // namespace weir::policy
