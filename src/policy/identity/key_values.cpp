#include "weir/policy/key_values.hpp"

#include "weir/http/head.hpp"
#include "weir/http/target.hpp"
#include "weir/policy/api_keys.hpp"
#include "weir/policy/octet_text.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace weir::policy {

namespace {

std::string digest_of(std::string_view secret) {
  return ApiKeys::id_of(ApiKeys::digest(secret));
}

bool is_secret(const AttributeRef& attribute) {
  switch (attribute.kind) {
    case Attribute::ApiKey:
    case Attribute::Cookie:
      return true;
    case Attribute::Header:
    case Attribute::Query:
    case Attribute::Json:
    case Attribute::Form:
    case Attribute::Descriptor:
      return is_called_secret(attribute.name);
    default:
      return false;
  }
}

std::string address_text(std::string_view octets) {
  std::array<std::uint8_t, 16> bytes{};
  std::copy_n(octets.begin(), std::min(octets.size(), bytes.size()), bytes.begin());
  return base::IpAddress(bytes).to_string();
}

std::string counted(std::size_t parts) {
  if (parts == 0) return "no part";
  return std::to_string(parts) + (parts == 1 ? " part" : " parts");
}

std::string what_is_needed(const Rule& rule) {
  if (rule.key.empty()) return "its key has no part; write only the rule";
  return "its key has " + counted(rule.key.size()) + ", " + describe(rule.key);
}

// Returns the attribute of the part that `text` names at its front ("user:"), and removes the name from
// `text`. If `text` names no attribute, returns `ip` if `text` is an address and the key may use addresses.
// Otherwise returns the part's first attribute. `falls_back_on_ip`: the rule's on_missing is "ip".
AttributeRef take_attribute(const KeyPart& part, bool falls_back_on_ip, std::string_view& text) {
  const auto names = [&](const AttributeRef& attribute) {
    const auto prefix = describe(attribute) + ":";
    if (!http::equal_ignoring_case(text.substr(0, prefix.size()), prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
  };
  const auto named = std::find_if(part.begin(), part.end(), names);
  if (named != part.end()) return *named;
  const AttributeRef ip{Attribute::Ip, {}};
  if (falls_back_on_ip && names(ip)) return ip;
  const bool may_be_ip = falls_back_on_ip || std::any_of(part.begin(), part.end(), [](const auto& attribute) {
                           return attribute.kind == Attribute::Ip;
                         });
  return may_be_ip && base::IpAddress::parse(text) ? ip : part.front();
}

// Returns the value in the form that weir stores after parsing a request. Returns nullopt if no request can
// have this value.
std::optional<std::string> value_of(const AttributeRef& attribute, const ClientSettings& settings,
                                    std::string_view text) {
  std::string scratch;
  if (text.empty()) return std::nullopt;
  if (attribute.kind == Attribute::Path) return std::string(http::normalise_path(text, scratch));
  if (attribute.kind == Attribute::PathSegment) {
    const auto path = http::normalise_path("/" + std::string(text), scratch);
    const auto segment = path.substr(1);
    return segment.empty() || segment.find('/') != std::string_view::npos
               ? std::nullopt
               : std::optional(std::string(segment));
  }
  if (attribute.kind == Attribute::Host) return std::string(http::normalise_host(text, scratch));
  if (attribute.kind != Attribute::Ip) return octets_of(text);
  const auto address = base::IpAddress::parse(text);
  if (!address) return std::nullopt;
  return std::string(network_of(settings, *address).view());
}

}  // namespace

bool is_called_secret(std::string_view name) noexcept {
  if (name == "generic_key") return false;  // Envoy's name for a constant in Envoy's configuration
  constexpr std::array<std::string_view, 6> kWords{"auth", "key", "token", "secret", "session", "password"};
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
    return std::search(name.begin(), name.end(), word.begin(), word.end(),
                       [&](char one, char other) { return lower(one) == other; }) != name.end();
  });
}

base::Result<std::vector<KeyValue>> read_key_values(const Rule& rule, const ClientSettings& settings,
                                                    std::span<const std::string> texts) {
  if (texts.size() != rule.key.size())
    return base::Error{"found " + counted(texts.size()) + " of a key for rule " + rule.name + ", but " +
                       what_is_needed(rule)};
  std::vector<KeyValue> values;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::string_view text = texts[i];
    auto attribute = take_attribute(rule.key[i], rule.on_missing == OnMissing::Ip, text);
    auto value = value_of(attribute, settings, text);
    if (!value)
      return base::Error{"\"" + octet_text(texts[i]) + "\" is not a valid " + describe(attribute) +
                         " of rule " + rule.name + ": " + what_is_needed(rule)};
    values.push_back({std::move(attribute), std::move(*value)});
  }
  return values;
}

std::vector<AppliedLimiter> limiters_of(const Rule& rule) {
  std::vector<AppliedLimiter> all;
  const auto add = [&](const auto& numbers) {
    const auto variant = static_cast<std::uint16_t>(all.empty() ? 0 : all.back().variant + 1);
    const bool paired = numbers.elastic.has_value();
    all.push_back({numbers.soft ? numbers.soft->get() : numbers.limiter.get(), numbers.limiter.get(), variant,
                   false, paired});
    if (paired)
      all.push_back({numbers.elastic->limiter.get(), numbers.elastic->limiter.get(), variant, true, paired});
  };
  add(rule);
  for (const auto& variant : rule.overrides) add(variant);
  for (const auto& variant : rule.tiers) add(variant);
  return all;
}

std::string describe(const KeyValue& value) {
  const auto& [attribute, text] = value;
  const auto shown = [&, &attribute = attribute, &text = text] {
    if (attribute.kind == Attribute::Ip) return address_text(text);
    if (is_secret(attribute)) return digest_of(text);
    // A path in normal form is readable already, so it is shown as it is.
    const bool of_path = attribute.kind == Attribute::Path || attribute.kind == Attribute::PathSegment;
    return of_path ? text : octet_text(text);
  };
  return describe(attribute) + ":" + shown();
}

}  // namespace weir::policy
