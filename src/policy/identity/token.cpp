#include "weir/policy/token.hpp"

#include "policy/identity/base64url.hpp"
#include "policy/identity/signature.hpp"
#include "policy/identity/token_keys.hpp"

#include "weir/base/plain_number.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <boost/json.hpp>

namespace weir::policy {

namespace {

std::string text_of(const boost::json::value& value) {
  if (const auto* text = value.if_string()) return {text->data(), text->size()};
  if (const auto* number = value.if_double()) return base::plain_number(*number);
  return value.is_number() || value.is_bool() ? boost::json::serialize(value) : std::string();
}

// Returns the number in a claim that states a time in seconds; nullopt if the claim is not a finite number.
std::optional<double> seconds_of(const boost::json::value& value) {
  boost::system::error_code no_number;
  const auto seconds = value.to_number<double>(no_number);
  return no_number || !std::isfinite(seconds) ? std::nullopt : std::optional(seconds);
}

std::optional<TokenFault> fault_in_dates(const boost::json::object& claims, base::TimePoint now,
                                         const TokenSettings& settings) {
  const auto in_seconds = [](base::TimePoint at) {
    return static_cast<double>(at.time_since_epoch().count()) / 1e6;
  };
  if (const auto* expiry = claims.if_contains("exp")) {
    const auto end = seconds_of(*expiry);
    if (!end) return TokenFault::Malformed;
    if (in_seconds(now - settings.leeway) >= *end) return TokenFault::Expired;
  } else if (settings.require_exp) {
    return TokenFault::Claim;
  }
  if (const auto* not_before = claims.if_contains("nbf")) {
    const auto begin = seconds_of(*not_before);
    if (!begin) return TokenFault::Malformed;
    if (in_seconds(now + settings.leeway) < *begin) return TokenFault::NotYet;
  }
  return std::nullopt;
}

bool is_text(const boost::json::value& value, std::string_view wanted) {
  const auto* text = value.if_string();
  return text != nullptr && std::string_view(text->data(), text->size()) == wanted;
}

bool is_for(const boost::json::value& audience, const std::string& wanted) {
  const auto* list = audience.if_array();
  if (list == nullptr) return is_text(audience, wanted);
  return std::any_of(list->begin(), list->end(),
                     [&](const boost::json::value& one) { return is_text(one, wanted); });
}

std::optional<TokenFault> fault_in_parties(const boost::json::object& claims, const TokenSettings& settings) {
  const auto* issuer = claims.if_contains("iss");
  if (!settings.issuer.empty() && (issuer == nullptr || !is_text(*issuer, settings.issuer)))
    return TokenFault::Issuer;
  const auto* audience = claims.if_contains("aud");
  if (!settings.audience.empty() && (audience == nullptr || !is_for(*audience, settings.audience)))
    return TokenFault::Audience;
  return std::nullopt;
}

// Parses a JSON object in base64url. If a name occurs twice, the last member is used (RFC 7519 §4).
std::optional<boost::json::object> object_in(std::string_view part) {
  const auto text = decode_base64url(part);
  if (!text) return std::nullopt;
  boost::system::error_code malformed;
  auto value = boost::json::parse(boost::json::string_view(text->data(), text->size()), malformed);
  if (malformed || !value.is_object()) return std::nullopt;
  return std::move(value.get_object());
}

void add_claims(const boost::json::object& found, Claims& claims) {
  for (const auto& [name, value] : found) {
    if (auto text = text_of(value); !text.empty()) claims.add(std::string(name), std::move(text));
    const auto* list = value.if_array();
    if (list == nullptr) continue;
    for (const auto& element : *list)
      if (auto text = text_of(element); !text.empty()) claims.add_element(std::string(name), std::move(text));
  }
}

// The members of a token's header that weir uses (RFC 7515 §4.1).
struct Header {
  std::string algorithm;           // empty: missing, or not a text
  std::optional<std::string> kid;  // the name of the key
  bool is_critical = false;        // the token requires an extension; weir supports none (§4.1.11)
};

// Reads the header of a token. Returns nullopt if `part` is no JSON object, or if `kid` is not a text, which
// RFC 7515 §4.1.4 requires.
std::optional<Header> read_header(std::string_view part) {
  const auto found = object_in(part);
  const auto* kid = found ? found->if_contains("kid") : nullptr;
  if (!found || (kid != nullptr && !kid->is_string())) return std::nullopt;
  Header header{.algorithm = {}, .kid = {}, .is_critical = found->contains("crit")};
  const auto text = [&](std::string_view name) -> std::optional<std::string> {
    const auto* value = found->if_contains(name);
    if (value == nullptr || !value->is_string()) return std::nullopt;
    return std::string(value->get_string());
  };
  header.algorithm = text("alg").value_or("");
  header.kid = text("kid");
  return header;
}

// The three parts of a token, and the signed text: the first two parts with the dot between them.
struct Parts {
  std::string_view header, payload, signature, signed_text;
};

std::optional<Parts> split(std::string_view token) {
  const auto first = token.find('.');
  const auto second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos)
    return std::nullopt;
  return Parts{token.substr(0, first), token.substr(first + 1, second - first - 1), token.substr(second + 1),
               token.substr(0, second)};
}

}  // namespace

using TokenKeys = std::shared_ptr<const std::vector<TokenKey>>;

// One issuer of tokens: its settings and keys.
struct TokenIssuer {
  TokenSettings settings;
  TokenKeys configured{};                  // at least one key; null if weir fetches the keys
  std::shared_ptr<FetchedKeys> fetched{};  // null if the keys are configured

  [[nodiscard]] TokenKeys keys() const { return fetched ? fetched->keys() : configured; }
};

namespace {

bool permits(const TokenSettings& settings, const std::string& algorithm) {
  return settings.algorithm.empty() || settings.algorithm == algorithm;
}

// Returns true if another fetch may bring the key of the token. `keys`: the keys of the issuer.
bool lacks_key(const TokenIssuer& issuer, const TokenKeys& keys, const Header& header) {
  const auto* algorithm = find_algorithm(header.algorithm);
  if (!issuer.fetched || algorithm == nullptr || algorithm->key_type == EVP_PKEY_HMAC ||
      !permits(issuer.settings, header.algorithm))
    return false;
  if (!keys) return true;
  const auto has_name = [&](const TokenKey& key) { return key.id == *header.kid; };
  if (!header.kid || std::any_of(keys->begin(), keys->end(), has_name)) return false;
  return std::holds_alternative<TokenFault>(choose_key(*keys, header.algorithm, header.kid));
}

// Checks the header and the signature. `keys_current`: see TokenVerifier::verify().
std::optional<TokenFault> fault_in_signature(const Parts& parts, const TokenIssuer& issuer,
                                             bool keys_current) {
  const auto header = read_header(parts.header);
  if (!header) return TokenFault::Malformed;
  const auto keys = issuer.keys();
  if ((!keys || !keys_current) && lacks_key(issuer, keys, *header)) return TokenFault::Unavailable;
  if (!keys || !permits(issuer.settings, header->algorithm)) return TokenFault::Algorithm;
  const auto chosen = choose_key(*keys, header->algorithm, header->kid);
  if (const auto* fault = std::get_if<TokenFault>(&chosen); fault && *fault == TokenFault::Algorithm)
    return *fault;
  if (header->is_critical) return TokenFault::Extension;
  if (const auto* fault = std::get_if<TokenFault>(&chosen)) return *fault;
  const auto& key = *std::get<const TokenKey*>(chosen);
  const auto signature = decode_base64url(parts.signature);
  if (!signature) return TokenFault::Malformed;
  const auto signs = [&](const TokenKey& each) {
    return is_signature(*each.algorithm, issuer.settings.key, each.key.get(), parts.signed_text, *signature);
  };
  // Several keys may have the same `kid`, for example after a key was replaced under its old name.
  const bool good = std::any_of(keys->begin(), keys->end(), [&](const TokenKey& each) {
    const bool same_name = each.algorithm == key.algorithm && !key.id.empty() && each.id == key.id;
    return (&each == &key || same_name) && signs(each);
  });
  return good ? std::nullopt : std::optional(TokenFault::Signature);
}

using Issuers = std::vector<std::shared_ptr<const TokenIssuer>>;

// Returns the issuer that the unverified claim `iss` names; null if none has this name.
const TokenIssuer* find_issuer(const Issuers& issuers, const boost::json::object& claims) {
  const auto* name = claims.if_contains("iss");
  const auto found = std::find_if(issuers.begin(), issuers.end(), [&](const auto& each) {
    return name != nullptr && is_text(*name, each->settings.issuer);
  });
  return found == issuers.end() ? nullptr : found->get();
}

// Chooses the issuer of a token by the unverified claim `iss`. A single issuer is chosen without reading
// `iss`, which is checked later with the other claims. But if weir fetches the keys of this issuer, `iss` is
// checked at once, because a token of another issuer must not cause a fetch. Stores the claims in `claims` if
// they were read. Returns a fault if no issuer fits.
std::variant<const TokenIssuer*, TokenFault> choose_issuer(const Issuers& issuers, const Parts& parts,
                                                           std::optional<boost::json::object>& claims) {
  const auto& first = *issuers.front();
  if (issuers.size() == 1 && (!first.fetched || first.settings.issuer.empty())) return &first;
  claims = object_in(parts.payload);
  if (!claims) return TokenFault::Malformed;
  const auto* issuer = find_issuer(issuers, *claims);
  if (issuer == nullptr) return TokenFault::Issuer;
  return issuer;
}

base::Result<std::vector<TokenKey>> read_keys(const TokenSettings& settings) {
  const auto* algorithm = find_algorithm(settings.algorithm);
  if (algorithm == nullptr && (settings.jwks.empty() || !settings.algorithm.empty()))
    return base::Error{"\"" + settings.algorithm +
                       "\" is not a signature algorithm; write one such as \"ES256\""};
  if (!settings.jwks.empty()) return read_jwk_set(settings.jwks, settings.algorithm);
  auto key = parse_key(*algorithm, settings.key);
  if (!key) return key.error();
  return std::vector<TokenKey>{{.id = {}, .algorithm = algorithm, .key = std::move(*key)}};
}

}  // namespace

std::string_view Claims::find(std::string_view name) const noexcept {
  const auto found =
      std::find_if(claims_.begin(), claims_.end(), [&](const auto& claim) { return claim.first == name; });
  return found == claims_.end() ? std::string_view{} : found->second;
}

base::Result<TokenVerifier> TokenVerifier::make(TokenSettings settings) {
  if (settings.fetch)
    return TokenVerifier(std::make_shared<const TokenIssuer>(
        TokenIssuer{.settings = std::move(settings), .fetched = std::make_shared<FetchedKeys>()}));
  auto keys = read_keys(settings);
  if (!keys) return keys.error();
  return TokenVerifier(std::make_shared<const TokenIssuer>(
      TokenIssuer{.settings = std::move(settings),
                  .configured = std::make_shared<const std::vector<TokenKey>>(std::move(*keys))}));
}

void TokenVerifier::add(const TokenVerifier& other) {
  auto added = other;
  added.share_keys(fetched());
  issuers_.insert(issuers_.end(), added.issuers_.begin(), added.issuers_.end());
}

base::Duration TokenVerifier::cooldown() const noexcept {
  base::Duration longest{0};
  for (const auto& issuer : issuers_)
    if (issuer->fetched) longest = std::max(longest, issuer->settings.fetch->cooldown);
  return longest;
}

TokenVerifier::KeysByUrl TokenVerifier::fetched() const {
  KeysByUrl all;
  for (const auto& issuer : issuers_)
    if (issuer->fetched)
      all.emplace(issuer->settings.fetch->url, std::pair(*issuer->settings.fetch, issuer->fetched));
  return all;
}

void TokenVerifier::share_keys(const KeysByUrl& others) {
  for (auto& issuer : issuers_) {
    const auto found = issuer->fetched ? others.find(issuer->settings.fetch->url) : others.end();
    if (found == others.end()) continue;
    auto sharing = *issuer;
    sharing.fetched = found->second.second;
    issuer = std::make_shared<const TokenIssuer>(std::move(sharing));
  }
}

std::optional<TokenVerifier::KeySource> TokenVerifier::lacking(std::string_view token) const {
  const auto parts = split(token);
  std::optional<boost::json::object> claims;
  if (!parts ||
      std::none_of(issuers_.begin(), issuers_.end(), [](const auto& each) { return each->fetched; }))
    return std::nullopt;
  const auto chosen = choose_issuer(issuers_, *parts, claims);
  const auto* const* issuer = std::get_if<const TokenIssuer*>(&chosen);
  const auto header = read_header(parts->header);
  if (issuer == nullptr || !header || !lacks_key(**issuer, (*issuer)->keys(), *header)) return std::nullopt;
  return KeySource{(*issuer)->fetched.get(), &*(*issuer)->settings.fetch};
}

std::vector<TokenSettings> TokenVerifier::settings() const {
  std::vector<TokenSettings> all;
  for (const auto& issuer : issuers_) all.push_back(issuer->settings);
  return all;
}

std::optional<TokenFault> TokenVerifier::verify(std::string_view token, base::TimePoint now, Claims& claims,
                                                bool keys_current) const {
  claims.clear();
  const auto parts = split(token);
  if (!parts) return TokenFault::Malformed;
  std::optional<boost::json::object> found;
  const auto chosen = choose_issuer(issuers_, *parts, found);
  if (const auto* fault = std::get_if<TokenFault>(&chosen)) return *fault;
  const auto* issuer = std::get<const TokenIssuer*>(chosen);
  if (const auto fault = fault_in_signature(*parts, *issuer, keys_current)) return fault;
  if (!found) found = object_in(parts->payload);
  if (!found) return TokenFault::Malformed;
  if (const auto fault = fault_in_dates(*found, now, issuer->settings)) return fault;
  if (const auto fault = fault_in_parties(*found, issuer->settings)) return fault;
  add_claims(*found, claims);
  return std::nullopt;
}

}  // namespace weir::policy
