// Valid and invalid tokens for tests.
#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

namespace weir::policy {

inline const std::string kSecret = "a secret of more than thirty-two octets";

inline std::string base64url(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  text.resize(static_cast<std::size_t>(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                                       reinterpret_cast<const unsigned char*>(bytes.data()),
                                                       static_cast<int>(bytes.size()))));
  while (text.ends_with('=')) text.pop_back();
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return text;
}

// Returns a token with a valid HMAC-SHA256 signature under `key`, whatever its header says.
inline std::string signed_token(std::string_view claims, std::string_view key,
                                std::string_view header = R"({"alg":"HS256","typ":"JWT"})") {
  const auto text = base64url(header) + "." + base64url(claims);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &size);
  return text + "." + base64url({reinterpret_cast<const char*>(digest), size});
}

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

inline std::string pem(EVP_PKEY* key, bool whole) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> bio(BIO_new(BIO_s_mem()), &BIO_free_all);
  whole ? PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr)
        : PEM_write_bio_PUBKEY(bio.get(), key);
  char* text = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

// Converts a signature to the form of RFC 7518 §3.4: r and s, each of `size` octets.
inline std::string as_pair(const std::string& der, int size) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> both(
      d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())), &ECDSA_SIG_free);
  std::string pair(2 * static_cast<std::size_t>(size), '\0');
  auto* out = reinterpret_cast<unsigned char*>(pair.data());
  EXPECT_EQ(BN_bn2binpad(ECDSA_SIG_get0_r(both.get()), out, size), size);
  EXPECT_EQ(BN_bn2binpad(ECDSA_SIG_get0_s(both.get()), out + size, size), size);
  return pair;
}

// A private key and the algorithm with which it signs tokens.
struct Signer {
  const char* name;
  const EVP_MD* hash;  // null for EdDSA
  int size;            // octets of r and of s for ES…; 0 for other algorithms
  Key key;

  [[nodiscard]] std::string signature(const std::string& text) const {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
    std::string made(1024, '\0');
    auto length = made.size();
    EVP_PKEY_CTX* options = nullptr;
    EXPECT_EQ(EVP_DigestSignInit(context.get(), &options, hash, nullptr, key.get()), 1);
    if (*name == 'P') {
      EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING);
      EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST);
    }
    EXPECT_EQ(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(made.data()), &length,
                             reinterpret_cast<const unsigned char*>(text.data()), text.size()),
              1);
    made.resize(length);
    return made;
  }
  // Returns a signed token. `more`: further members of the header, such as ,"kid":"a".
  [[nodiscard]] std::string token(const std::string& claims = R"({"sub":"ann"})",
                                  const std::string& more = {}) const {
    const auto text =
        base64url(std::string(R"({"alg":")") + name + "\"" + more + "}") + "." + base64url(claims);
    const auto made = signature(text);
    return text + "." + base64url(size != 0 ? as_pair(made, size) : made);
  }
  // Returns the public key as a JWK. `more`: further members, such as ,"kid":"a".
  [[nodiscard]] std::string jwk(const std::string& more = {}) const {
    const auto number = [&](const char* parameter, int width) {
      BIGNUM* found = nullptr;
      EXPECT_EQ(EVP_PKEY_get_bn_param(key.get(), parameter, &found), 1);
      std::string octets(static_cast<std::size_t>(width != 0 ? width : BN_num_bytes(found)), '\0');
      BN_bn2binpad(found, reinterpret_cast<unsigned char*>(octets.data()), static_cast<int>(octets.size()));
      BN_free(found);
      return base64url(octets);
    };
    if (size != 0) {
      const auto* curve = size == 32 ? "P-256" : size == 48 ? "P-384" : "P-521";
      return std::string(R"({"kty":"EC","crv":")") + curve + R"(","x":")" + number("qx", size) +
             R"(","y":")" + number("qy", size) + "\"" + more + "}";
    }
    if (hash != nullptr)
      return R"({"kty":"RSA","n":")" + number("n", 0) + R"(","e":")" + number("e", 0) + "\"" + more + "}";
    std::string raw(32, '\0');
    auto length = raw.size();
    EXPECT_EQ(EVP_PKEY_get_raw_public_key(key.get(), reinterpret_cast<unsigned char*>(raw.data()), &length),
              1);
    return R"({"kty":"OKP","crv":"Ed25519","x":")" + base64url(raw) + "\"" + more + "}";
  }
};

// Makes a new key for the algorithm.
inline Signer make_signer(const std::string& algorithm) {
  const std::map<std::string, std::tuple<const char*, const EVP_MD*, int, const char*>> known = {
      {"RS256", {"RS256", EVP_sha256(), 0, "RSA"}},    {"RS384", {"RS384", EVP_sha384(), 0, "RSA"}},
      {"RS512", {"RS512", EVP_sha512(), 0, "RSA"}},    {"PS256", {"PS256", EVP_sha256(), 0, "RSA"}},
      {"PS384", {"PS384", EVP_sha384(), 0, "RSA"}},    {"PS512", {"PS512", EVP_sha512(), 0, "RSA"}},
      {"ES256", {"ES256", EVP_sha256(), 32, "P-256"}}, {"ES384", {"ES384", EVP_sha384(), 48, "P-384"}},
      {"ES512", {"ES512", EVP_sha512(), 66, "P-521"}}, {"EdDSA", {"EdDSA", nullptr, 0, "ED25519"}}};
  const auto& [name, hash, size, type] = known.at(algorithm);
  EVP_PKEY* key = size != 0         ? EVP_EC_gen(type)
                  : hash != nullptr ? EVP_RSA_gen(2048)
                                    : EVP_PKEY_Q_keygen(nullptr, nullptr, type);
  return {name, hash, size, {key, &EVP_PKEY_free}};
}

inline std::vector<Signer> one_signer_of_each_algorithm() {
  std::vector<Signer> signers;
  for (const char* name :
       {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
    signers.push_back(make_signer(name));
  return signers;
}

}  // namespace weir::policy
