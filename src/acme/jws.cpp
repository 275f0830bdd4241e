#include "weir/acme/jws.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <boost/json.hpp>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/sha.h>

namespace weir::acme {

namespace json = boost::json;

namespace {

constexpr int kHalf = 32;  // octets of a coordinate, or of one half of a signature, on P-256

using Memory = std::unique_ptr<BIO, decltype([](BIO* bio) { BIO_free(bio); })>;
using Number = std::unique_ptr<BIGNUM, decltype([](BIGNUM* number) { BN_free(number); })>;
using Digest = std::unique_ptr<EVP_MD_CTX, decltype([](EVP_MD_CTX* digest) { EVP_MD_CTX_free(digest); })>;
using Signature =
    std::unique_ptr<ECDSA_SIG, decltype([](ECDSA_SIG* signature) { ECDSA_SIG_free(signature); })>;

const unsigned char* octets(std::string_view text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string fixed(const BIGNUM* number) {
  std::array<unsigned char, kHalf> bytes{};
  BN_bn2binpad(number, bytes.data(), kHalf);
  return {bytes.begin(), bytes.end()};
}

std::string coordinate(const Key& key, const char* name) {
  BIGNUM* number = nullptr;
  EVP_PKEY_get_bn_param(key.get(), name, &number);
  const Number owned(number);
  return owned ? base64url(fixed(owned.get())) : std::string();
}

bool is_p256(const Key& key) {
  std::array<char, 32> group{};
  std::size_t size = 0;
  return EVP_PKEY_get_group_name(key.get(), group.data(), group.size(), &size) == 1 &&
         std::string_view(group.data(), size) == SN_X9_62_prime256v1;
}

base::Error cannot(const char* what) {
  ERR_clear_error();
  return {std::string("OpenSSL cannot ") + what};
}

// Signs by ES256. OpenSSL returns the two halves of the signature as DER, but JWS needs them side by side
// (RFC 7518 §3.4).
base::Result<std::string> signature_of(const Key& key, std::string_view input) {
  const Digest digest(EVP_MD_CTX_new());
  std::array<unsigned char, 128> der{};
  std::size_t size = der.size();
  if (!digest || EVP_DigestSignInit(digest.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1 ||
      EVP_DigestSign(digest.get(), der.data(), &size, octets(input), input.size()) != 1)
    return cannot("sign a request");
  const unsigned char* at = der.data();
  const Signature halves(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(size)));
  if (!halves) return cannot("read its own signature");
  return {boost::system::in_place_value,
          fixed(ECDSA_SIG_get0_r(halves.get())) + fixed(ECDSA_SIG_get0_s(halves.get()))};
}

}  // namespace

std::string base64url(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // EVP_EncodeBlock(3) adds a NUL
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), octets(bytes),
                  static_cast<int>(bytes.size()));
  text.resize((4 * bytes.size() + 2) / 3);
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

std::optional<std::string> from_base64url(std::string_view text) {
  std::string padded(text.substr(0, text.find_last_not_of('=') + 1));
  constexpr std::string_view kPlain = "+/";  // letters of base64 that base64url does not have
  if (padded.find_first_of(kPlain) != std::string::npos || padded.size() % 4 == 1) return std::nullopt;
  std::replace(padded.begin(), padded.end(), '-', '+');
  std::replace(padded.begin(), padded.end(), '_', '/');
  const auto missing = (4 - padded.size() % 4) % 4;
  padded.append(missing, '=');
  std::string bytes(padded.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()), octets(padded),
                                   static_cast<int>(padded.size()));
  if (size < 0) return std::nullopt;
  return bytes.substr(0, bytes.size() - missing);
}

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(octets(bytes), bytes.size(), digest.data());
  return {digest.begin(), digest.end()};
}

base::Result<Key> make_key() {
  Key key(EVP_EC_gen("P-256"));
  if (!key) return cannot("make a key");
  return key;
}

base::Result<Key> key_of_pem(std::string_view pem) {
  const Memory source(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const auto no_question = [](char*, int, int, void*) { return -1; };
  Key key(PEM_read_bio_PrivateKey(source.get(), nullptr, no_question, nullptr));
  ERR_clear_error();
  if (!key || !is_p256(key))
    return base::Error{"expected a private key on the curve P-256, without a pass phrase"};
  return key;
}

std::string to_pem(const Key& key) {
  const Memory sink(BIO_new(BIO_s_mem()));
  if (!sink || PEM_write_bio_PrivateKey(sink.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    throw std::bad_alloc();
  char* text = nullptr;
  const auto size = BIO_get_mem_data(sink.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string jwk_of(const Key& key) {
  return R"({"crv":"P-256","kty":"EC","x":")" + coordinate(key, OSSL_PKEY_PARAM_EC_PUB_X) + R"(","y":")" +
         coordinate(key, OSSL_PKEY_PARAM_EC_PUB_Y) + "\"}";
}

std::string key_authorization(const Key& account, std::string_view token) {
  return std::string(token) + "." + base64url(sha256(jwk_of(account)));
}

base::Result<std::string> sign(const Key& account, const JwsHeader& header, std::string_view payload) {
  json::object head{{"alg", "ES256"}, {"nonce", header.nonce}, {"url", header.url}};
  if (header.account.empty())
    head["jwk"] = json::parse(jwk_of(account));
  else
    head["kid"] = header.account;
  const auto first = base64url(json::serialize(head)), second = base64url(payload);
  const auto signature = signature_of(account, first + "." + second);
  if (!signature) return signature.error();
  auto text = json::serialize(
      json::object{{"protected", first}, {"payload", second}, {"signature", base64url(*signature)}});
  return {boost::system::in_place_value, std::move(text)};
}

std::string bind_account(const Key& account, const ExternalAccount& external, std::string_view url) {
  const auto first =
      base64url(json::serialize(json::object{{"alg", "HS256"}, {"kid", external.kid}, {"url", url}}));
  const auto second = base64url(jwk_of(account));
  const auto input = first + "." + second;
  std::array<unsigned char, SHA256_DIGEST_LENGTH> mac{};
  HMAC(EVP_sha256(), external.hmac_key.data(), static_cast<int>(external.hmac_key.size()), octets(input),
       input.size(), mac.data(), nullptr);
  return json::serialize(json::object{{"protected", first},
                                      {"payload", second},
                                      {"signature", base64url(std::string(mac.begin(), mac.end()))}});
}

}  // namespace weir::acme
