// The signature is libjwt's business, everything else is checked here: libjwt 1.10 goes by the algorithm that
// the token names, and does not look at times.
#include "weir/policy/token.hpp"

#include "weir/base/plain_number.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include <boost/json.hpp>
#include <jwt.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

namespace weir::policy {

namespace {

struct Algorithm {
  std::string_view word;
  jwt_alg_t number;
  int key_type;  // of EVP_PKEY; EVP_PKEY_HMAC: a shared secret
  int bits;  // HMAC: of the hash, and so of the shortest secret; EC: of the curve; RSA: of the shortest key
};
constexpr std::array kAlgorithms = {
    Algorithm{"HS256", JWT_ALG_HS256, EVP_PKEY_HMAC, 256},
    Algorithm{"HS384", JWT_ALG_HS384, EVP_PKEY_HMAC, 384},
    Algorithm{"HS512", JWT_ALG_HS512, EVP_PKEY_HMAC, 512},
    Algorithm{"RS256", JWT_ALG_RS256, EVP_PKEY_RSA, 2048},
    Algorithm{"RS384", JWT_ALG_RS384, EVP_PKEY_RSA, 2048},
    Algorithm{"RS512", JWT_ALG_RS512, EVP_PKEY_RSA, 2048},
    Algorithm{"ES256", JWT_ALG_ES256, EVP_PKEY_EC, 256},
    Algorithm{"ES384", JWT_ALG_ES384, EVP_PKEY_EC, 384},
    Algorithm{"ES512", JWT_ALG_ES512, EVP_PKEY_EC, 521},
};

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* resource) const noexcept {
    Free(resource);
  }
};
using Token = std::unique_ptr<jwt_t, Freed<jwt_free>>;
using CText = std::unique_ptr<char, Freed<std::free>>;
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using PublicKey = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

// Why the key does not go with the algorithm; empty: it does.
std::string fault_in_key(const Algorithm& algorithm, const std::string& key) {
  const auto bits = std::to_string(algorithm.bits);
  const std::string word(algorithm.word);
  if (algorithm.key_type == EVP_PKEY_HMAC)
    return static_cast<int>(key.size()) * 8 >= algorithm.bits
               ? ""
               : "is shorter than the hash of " + word + ": it takes " + std::to_string(algorithm.bits / 8) +
                     " octets (RFC 7518 §3.2)";
  const Bio bio(BIO_new_mem_buf(key.data(), static_cast<int>(key.size())));
  const PublicKey parsed(PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr));
  if (!parsed) return "is no public key in PEM";
  if (EVP_PKEY_get_base_id(parsed.get()) != algorithm.key_type) return "is no key for " + word;
  const int size = EVP_PKEY_get_bits(parsed.get());
  if (algorithm.key_type == EVP_PKEY_EC && size != algorithm.bits)
    return "is on a curve of " + std::to_string(size) + " bits, and " + word + " is on one of " + bits;
  return size >= algorithm.bits
             ? ""
             : "has " + std::to_string(size) + " bits; " + word + " takes " + bits + " or more";
}

std::string text_of(const boost::json::value& value) {
  if (const auto* text = value.if_string()) return {text->data(), text->size()};
  if (const auto* number = value.if_double()) return base::plain_number(*number);
  return value.is_number() || value.is_bool() ? boost::json::serialize(value) : std::string();
}

// The second of an instant that a claim names; nullopt where the claim is no number.
std::optional<double> seconds_of(const boost::json::value& value) {
  boost::system::error_code no_number;
  const auto seconds = value.to_number<double>(no_number);
  return no_number ? std::nullopt : std::optional(seconds);
}

bool in_force(const boost::json::object& claims, base::TimePoint now, base::Duration leeway) {
  const auto in_seconds = [](base::TimePoint at) {
    return static_cast<double>(at.time_since_epoch().count()) / 1e6;
  };
  if (const auto* expiry = claims.if_contains("exp")) {
    const auto end = seconds_of(*expiry);
    if (!end || in_seconds(now - leeway) >= *end) return false;
  }
  if (const auto* not_before = claims.if_contains("nbf")) {
    const auto begin = seconds_of(*not_before);
    if (!begin || in_seconds(now + leeway) < *begin) return false;
  }
  return true;
}

bool is_text(const boost::json::value& value, const std::string& wanted) {
  const auto* text = value.if_string();
  return text != nullptr && std::string_view(text->data(), text->size()) == wanted;
}

bool for_us(const boost::json::object& claims, const TokenSettings& settings) {
  if (!settings.issuer.empty()) {
    const auto* issuer = claims.if_contains("iss");
    if (issuer == nullptr || !is_text(*issuer, settings.issuer)) return false;
  }
  if (settings.audience.empty()) return true;
  const auto* audience = claims.if_contains("aud");
  if (audience == nullptr) return false;
  const auto* list = audience->if_array();
  if (list == nullptr) return is_text(*audience, settings.audience);
  return std::any_of(list->begin(), list->end(),
                     [&](const boost::json::value& one) { return is_text(one, settings.audience); });
}

// The claims of a token whose signature is good; nullopt where it is not. Extensions that a token calls
// critical are not understood here (RFC 7515 §4.1.11).
std::optional<boost::json::object> genuine_claims(const std::string& token, const std::string& key,
                                                  jwt_alg_t algorithm) {
  jwt_t* decoded = nullptr;
  const auto* octets = reinterpret_cast<const unsigned char*>(key.data());
  const int failed = jwt_decode(&decoded, token.c_str(), octets, static_cast<int>(key.size()));
  const Token owner(decoded);
  if (failed != 0 || decoded == nullptr || jwt_get_alg(decoded) != algorithm) return std::nullopt;
  const CText critical(jwt_get_headers_json(decoded, "crit"));
  const CText text(jwt_get_grants_json(decoded, nullptr));
  if (critical || !text) return std::nullopt;
  boost::system::error_code malformed;
  auto claims = boost::json::parse(text.get(), malformed);
  if (malformed || !claims.is_object()) return std::nullopt;
  return std::move(claims.get_object());
}

}  // namespace

std::string_view Claims::find(std::string_view name) const noexcept {
  const auto found =
      std::find_if(claims_.begin(), claims_.end(), [&](const auto& claim) { return claim.first == name; });
  return found == claims_.end() ? std::string_view{} : found->second;
}

base::Result<TokenVerifier> TokenVerifier::make(TokenSettings settings) {
  const auto found = std::find_if(kAlgorithms.begin(), kAlgorithms.end(),
                                  [&](const Algorithm& a) { return a.word == settings.algorithm; });
  if (found == kAlgorithms.end())
    return base::Error{"\"" + settings.algorithm +
                       "\" is no algorithm of signatures: write one such as \"ES256\""};
  if (auto fault = fault_in_key(*found, settings.key); !fault.empty()) return base::Error{std::move(fault)};
  return TokenVerifier(std::move(settings), found->number);
}

bool TokenVerifier::verify(std::string_view token, base::TimePoint now, Claims& claims) const {
  claims.clear();
  if (token.empty()) return false;
  const auto found = genuine_claims(std::string(token), settings_.key, static_cast<jwt_alg_t>(algorithm_));
  if (!found || !in_force(*found, now, settings_.leeway) || !for_us(*found, settings_)) return false;
  for (const auto& [name, value] : *found)
    if (auto text = text_of(value); !text.empty()) claims.add(std::string(name), std::move(text));
  return true;
}

}  // namespace weir::policy
