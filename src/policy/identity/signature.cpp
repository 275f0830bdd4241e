#include "policy/identity/signature.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

namespace weir::policy {

namespace {

// Returns null, because Ed25519 needs no separate hash function (RFC 8032 §5.1).
const EVP_MD* no_hash() {
  return nullptr;
}

constexpr std::array kAlgorithms = {
    TokenAlgorithm{"HS256", EVP_sha256, EVP_PKEY_HMAC, 256, {}},
    TokenAlgorithm{"HS384", EVP_sha384, EVP_PKEY_HMAC, 384, {}},
    TokenAlgorithm{"HS512", EVP_sha512, EVP_PKEY_HMAC, 512, {}},
    TokenAlgorithm{"RS256", EVP_sha256, EVP_PKEY_RSA, 2048, {}},
    TokenAlgorithm{"RS384", EVP_sha384, EVP_PKEY_RSA, 2048, {}},
    TokenAlgorithm{"RS512", EVP_sha512, EVP_PKEY_RSA, 2048, {}},
    TokenAlgorithm{"ES256", EVP_sha256, EVP_PKEY_EC, 256, "prime256v1"},
    TokenAlgorithm{"ES384", EVP_sha384, EVP_PKEY_EC, 384, "secp384r1"},
    TokenAlgorithm{"ES512", EVP_sha512, EVP_PKEY_EC, 521, "secp521r1"},
    TokenAlgorithm{"PS256", EVP_sha256, EVP_PKEY_RSA, 2048, {}, true},
    TokenAlgorithm{"PS384", EVP_sha384, EVP_PKEY_RSA, 2048, {}, true},
    TokenAlgorithm{"PS512", EVP_sha512, EVP_PKEY_RSA, 2048, {}, true},
    TokenAlgorithm{"EdDSA", no_hash, EVP_PKEY_ED25519, 253, {}},
};

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* resource) const noexcept {
    Free(resource);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Number = std::unique_ptr<BIGNUM, Freed<BN_free>>;
using EcSignature = std::unique_ptr<ECDSA_SIG, Freed<ECDSA_SIG_free>>;
using Context = std::unique_ptr<EVP_MD_CTX, Freed<EVP_MD_CTX_free>>;

const unsigned char* unsigned_octets(std::string_view text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Returns why the key's curve does not fit the algorithm; empty if it fits.
std::string fault_in_curve(const TokenAlgorithm& algorithm, EVP_PKEY* key) {
  const std::string word(algorithm.word);
  if (const int size = EVP_PKEY_get_bits(key); size != algorithm.bits)
    return "is on a curve of " + std::to_string(size) + " bits, but " + word + " needs one of " +
           std::to_string(algorithm.bits);
  std::array<char, 64> name{};
  if (EVP_PKEY_get_group_name(key, name.data(), name.size(), nullptr) == 1 && algorithm.curve == name.data())
    return "";
  return "is on the curve " + std::string(name.data()) + ", but " + word + " needs " +
         std::string(algorithm.curve);
}

bool is_hmac(const TokenAlgorithm& algorithm, std::string_view secret, std::string_view text,
             std::string_view signature) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const auto* made = HMAC(algorithm.hash(), secret.data(), static_cast<int>(secret.size()),
                          unsigned_octets(text), text.size(), digest.data(), &size);
  return made != nullptr && signature.size() == size &&
         CRYPTO_memcmp(digest.data(), signature.data(), size) == 0;
}

// Converts a signature to DER for OpenSSL. In a token, a signature is the number r followed by the number s,
// each as long as the curve requires (RFC 7518 §3.4). Returns an empty text if the signature has another
// size.
std::string in_der(const TokenAlgorithm& algorithm, std::string_view signature) {
  const auto size = (static_cast<std::size_t>(algorithm.bits) + 7) / 8;
  if (signature.size() != 2 * size) return {};
  const auto number = [&](std::size_t from) {
    return Number(BN_bin2bn(unsigned_octets(signature.substr(from)), static_cast<int>(size), nullptr));
  };
  auto r = number(0);
  auto s = number(size);
  const EcSignature both(ECDSA_SIG_new());
  if (!r || !s || !both || ECDSA_SIG_set0(both.get(), r.get(), s.get()) != 1) return {};
  (void)r.release();  // the signature has become the owner of r and s
  (void)s.release();
  unsigned char* der = nullptr;
  const int length = i2d_ECDSA_SIG(both.get(), &der);
  if (length <= 0) return {};
  std::string text(reinterpret_cast<const char*>(der), static_cast<std::size_t>(length));
  OPENSSL_free(der);
  return text;
}

// Chooses RSASSA-PSS with a salt as long as the hash (RFC 7518 §3.5).
bool use_pss(EVP_PKEY_CTX* options) {
  return EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) == 1 &&
         EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) == 1;
}

// Returns true if the exponent of an RSA key is under 3. With the exponent 1, every text is its own
// signature.
bool has_weak_exponent(EVP_PKEY* key) {
  BIGNUM* found = nullptr;
  if (EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &found) != 1) return true;
  const bool weak = BN_get_word(found) < 3;  // BN_get_word() returns the largest word for a larger number
  BN_free(found);
  return weak;
}

}  // namespace

std::span<const TokenAlgorithm> token_algorithms() noexcept {
  return kAlgorithms;
}

const TokenAlgorithm* find_algorithm(std::string_view word) noexcept {
  const auto* found = std::find_if(kAlgorithms.begin(), kAlgorithms.end(),
                                   [&](const TokenAlgorithm& each) { return each.word == word; });
  return found == kAlgorithms.end() ? nullptr : found;
}

std::string fault_in_public_key(const TokenAlgorithm& algorithm, EVP_PKEY* key) {
  if (EVP_PKEY_get_base_id(key) != algorithm.key_type)
    return "is not a key for " + std::string(algorithm.word);
  if (algorithm.key_type == EVP_PKEY_EC) return fault_in_curve(algorithm, key);
  if (algorithm.key_type == EVP_PKEY_RSA && has_weak_exponent(key))
    return "has an exponent under 3, with which anybody can sign";
  const int size = EVP_PKEY_get_bits(key);
  return size >= algorithm.bits ? ""
                                : "has " + std::to_string(size) + " bits; " + std::string(algorithm.word) +
                                      " needs " + std::to_string(algorithm.bits) + " or more";
}

base::Result<std::shared_ptr<EVP_PKEY>> parse_key(const TokenAlgorithm& algorithm, const std::string& key) {
  if (algorithm.key_type == EVP_PKEY_HMAC) {
    if (static_cast<int>(key.size()) * 8 >= algorithm.bits) return std::shared_ptr<EVP_PKEY>();
    return base::Error{"is shorter than the hash of " + std::string(algorithm.word) + ", which needs " +
                       std::to_string(algorithm.bits / 8) + " bytes (RFC 7518 §3.2)"};
  }
  const Bio bio(BIO_new_mem_buf(key.data(), static_cast<int>(key.size())));
  std::shared_ptr<EVP_PKEY> parsed(PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr),
                                   Freed<EVP_PKEY_free>{});
  ERR_clear_error();
  if (!parsed)
    return base::Error{
        "is not a public key in PEM; expected -----BEGIN PUBLIC KEY-----, as openssl pkey -pubout prints it, "
        "or "
        "of a certificate openssl x509 -noout -pubkey"};
  if (auto fault = fault_in_public_key(algorithm, parsed.get()); !fault.empty())
    return base::Error{std::move(fault)};
  return parsed;
}

bool is_signature(const TokenAlgorithm& algorithm, std::string_view secret, EVP_PKEY* key,
                  std::string_view text, std::string_view signature) {
  if (algorithm.key_type == EVP_PKEY_HMAC) return is_hmac(algorithm, secret, text, signature);
  std::string der;
  if (algorithm.key_type == EVP_PKEY_EC) {
    der = in_der(algorithm, signature);
    if (der.empty()) return false;
    signature = der;
  }
  const Context context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* options = nullptr;
  const bool good = context &&
                    EVP_DigestVerifyInit(context.get(), &options, algorithm.hash(), nullptr, key) == 1 &&
                    (!algorithm.pss || use_pss(options)) &&
                    EVP_DigestVerify(context.get(), unsigned_octets(signature), signature.size(),
                                     unsigned_octets(text), text.size()) == 1;
  if (!good) ERR_clear_error();  // TLS connections on this thread use the same error queue
  return good;
}

}  // namespace weir::policy
