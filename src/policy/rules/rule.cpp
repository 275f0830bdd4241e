#include "weir/policy/rule.hpp"

#include "policy/rules/pieces.hpp"

#include "weir/base/edit_distance.hpp"

#include <algorithm>
#include <array>

namespace weir::policy {

namespace {

struct Word {
  std::string_view text;
  Attribute kind;
  bool named;
};

constexpr std::array kWords = {
    Word{"ip", Attribute::Ip, false},
    Word{"api_key", Attribute::ApiKey, false},
    Word{"user", Attribute::User, false},
    Word{"org", Attribute::Org, false},
    Word{"tier", Attribute::Tier, false},
    Word{"service", Attribute::Service, false},
    Word{"device", Attribute::Device, false},
    Word{"route", Attribute::Route, false},
    Word{"host", Attribute::Host, false},
    Word{"method", Attribute::Method, false},
    Word{"path", Attribute::Path, false},
    Word{"path", Attribute::PathSegment, true},
    Word{"header", Attribute::Header, true},
    Word{"query", Attribute::Query, true},
    Word{"cookie", Attribute::Cookie, true},
    Word{"country", Attribute::Country, false},
    Word{"claim", Attribute::Claim, true},
    Word{"cert:subject", Attribute::CertSubject, false},
    Word{"upstream", Attribute::Upstream, false},
    Word{"json", Attribute::Json, true},
    Word{"form", Attribute::Form, true},
    Word{"city", Attribute::City, false},
    Word{"region", Attribute::Region, false},
    Word{"asn", Attribute::Asn, false},
    Word{"descriptor", Attribute::Descriptor, true},
    Word{"domain", Attribute::Domain, false},
};

std::string_view nearest(std::string_view word) {
  const auto closer = [&](const Word& a, const Word& b) {
    return base::edit_distance(word, a.text) < base::edit_distance(word, b.text);
  };
  return std::min_element(kWords.begin(), kWords.end(), closer)->text;
}

const Word& word_of(Attribute kind) {
  return *std::find_if(kWords.begin(), kWords.end(), [&](const Word& w) { return w.kind == kind; });
}

// Returns true if the text is a token (RFC 9110 §5.6.2).
bool is_token(std::string_view text) {
  constexpr std::string_view kSigns = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kSigns.find(c) != std::string_view::npos;
  });
}

// Returns true if a Cookie field can contain a cookie with this name. Accepts more names than RFC 6265 §4.2.1
// allows.
bool may_name_cookie(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return c <= ' ' || c == '=' || c == ';' || c == 0x7f; });
}

// Returns the text in lower case. Field names ignore case, so "X-Tenant" and "x-tenant" must name the same
// key in Redis.
std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return out;
}

// Returns true for the number of a path segment: 1 to 999, without leading zeros.
bool is_segment_number(std::string_view text) noexcept {
  return !text.empty() && text.size() <= 3 && text.front() != '0' &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Returns what is wrong with the name after the colon of an attribute ("header:NAME"); empty if the name is
// valid.
std::string fault_of_name(Attribute kind, std::string_view name) {
  switch (kind) {
    case Attribute::Cookie:
      return may_name_cookie(name) ? ""
                                   : "is not a valid cookie name; write a name without blanks, '=' and ';'";
    case Attribute::Header:
      return is_token(name) ? "" : "is not a valid header name";
    case Attribute::PathSegment:
      return is_segment_number(name)
                 ? ""
                 : "has no number from 1 to 999; write \"path:1\" for the first segment, or \"path\" for all";
    case Attribute::Json:
      return is_json_pointer(name) ? ""
                                   : "has no JSON pointer (RFC 6901); write such as \"json:/email\" or "
                                     "\"json:/items/0/id\"";
    default:
      return "";
  }
}

base::Result<AttributeRef> parse_attribute(std::string_view text) {
  const auto wrong = [&](const std::string& why) {
    return base::Error{"\"" + std::string(text) + "\" " + why};
  };
  if (text == "cert:subject")
    return AttributeRef{Attribute::CertSubject, {}};  // no name follows the colon in "cert:subject"
  const auto colon = text.find(':');
  const auto kind = text.substr(0, colon);
  const auto name = colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  if (kind == "cert") return wrong("is not an attribute of a certificate; write \"cert:subject\"");
  const bool segment = kind == "path" && colon != std::string_view::npos;
  const auto word = std::find_if(kWords.begin(), kWords.end(), [&](const Word& w) {
    return w.text == kind && (!segment || w.kind == Attribute::PathSegment);
  });
  if (word == kWords.end())
    return wrong("is not an attribute; the nearest is \"" + std::string(nearest(kind)) + "\"");
  if (!word->named && colon != std::string_view::npos)
    return wrong("takes no name; write \"" + std::string(kind) + "\"");
  if (!word->named) return AttributeRef{word->kind, {}};
  if (name.empty()) return wrong("needs a name, as \"" + std::string(kind) + ":NAME\"");
  if (const auto fault = fault_of_name(word->kind, name); !fault.empty()) return wrong(fault);
  return AttributeRef{word->kind, word->kind == Attribute::Header ? lower(name) : std::string(name)};
}

std::string describe(const KeyPart& part) {
  std::string text;
  for (const auto& attribute : part) text += (text.empty() ? "" : "|") + policy::describe(attribute);
  return text;
}

// Returns the factor, but at least the `floor` of the rule. Returns kWholeFactor if the rule does not adapt.
limit::Factor factor_within(const Rule& rule, limit::Factor factor) {
  return rule.adapt ? std::clamp(factor, rule.adapt->terms.floor, limit::kWholeFactor) : limit::kWholeFactor;
}

limit::Factor factor_for(const Rule& rule, const Request& request) {
  if (!rule.adapt || request.factors == nullptr) return limit::kWholeFactor;
  return factor_within(rule, request.factors->of(rule.index));
}

// In the following templates, `Numbers` is Rule or Variant: both have the members that this code reads.
template <class Numbers>
AppliedLimiter own_limiter(const Numbers& numbers, std::uint16_t variant,
                           limit::Factor factor = limit::kWholeFactor) {
  if (factor != limit::kWholeFactor) {
    const auto* scaled = numbers.scaled[factor - 1U].get();
    return {.limiter = scaled, .advertised = scaled, .variant = variant, .factor = factor};
  }
  return {numbers.soft ? numbers.soft->get() : numbers.limiter.get(), numbers.limiter.get(), variant};
}

AppliedLimiter elastic_limiter(const Elastic& elastic, std::uint16_t variant) {
  return {elastic.limiter.get(), elastic.limiter.get(), variant, true, true};
}

template <class Numbers>
AppliedLimiter applied(const Numbers& numbers, std::size_t variant, double load, limit::Factor factor) {
  const auto number = static_cast<std::uint16_t>(variant);
  auto own = own_limiter(numbers, number, factor);
  if (!numbers.elastic) return own;
  if (load < numbers.elastic->while_load_below) return elastic_limiter(*numbers.elastic, number);
  own.paired = true;
  return own;
}

// Calls `ask` with the rule itself if `variant` is 0, otherwise with the override or tier of this number.
template <class Ask>
AppliedLimiter ask_variant(const Rule& rule, std::uint16_t variant, Ask ask) {
  if (variant == 0) return ask(rule);
  const std::size_t place = variant - 1U;
  if (place < rule.overrides.size()) return ask(rule.overrides[place]);
  return ask(rule.tiers[place - rule.overrides.size()]);
}

template <class Numbers>
AppliedLimiter local_share(const Numbers& numbers, AppliedLimiter applied) {
  if (applied.elastic) {
    const auto& share = numbers.elastic->local_share;
    if (share) applied.limiter = applied.advertised = share->get();
  } else if (numbers.local_share && applied.factor != limit::kWholeFactor) {
    applied.limiter = applied.advertised = numbers.scaled_share[applied.factor - 1U].get();
  } else if (numbers.local_share) {
    applied.advertised = numbers.local_share->get();
    applied.limiter = numbers.soft_share ? numbers.soft_share->get() : applied.advertised;
  }
  return applied;
}

}  // namespace

base::Result<KeyPart> parse_key_part(std::string_view text) {
  KeyPart part;
  std::string_view rest = text;
  do {
    const bool more = rest.find('|') != std::string_view::npos;
    const auto attribute = parse_attribute(take_piece(rest, '|'));
    if (!attribute) return attribute.error();
    part.push_back(*attribute);
    if (more && rest.empty())
      return base::Error{"\"" + std::string(text) + "\" ends with '|'; write the fallback after it"};
  } while (!rest.empty());
  return part;
}

std::string describe(const AttributeRef& attribute) {
  return std::string(word_of(attribute.kind).text) + (attribute.name.empty() ? "" : ":" + attribute.name);
}

std::string describe(const KeyPattern& pattern) {
  std::string text;
  for (const auto& part : pattern) text += (text.empty() ? "" : ", ") + describe(part);
  return "[" + text + "]";
}

bool names_nobody(const KeyPattern& pattern) noexcept {
  return std::all_of(pattern.begin(), pattern.end(), [](const KeyPart& part) {
    return std::all_of(part.begin(), part.end(), [](const AttributeRef& attribute) {
      return attribute.kind == Attribute::Route || attribute.kind == Attribute::Upstream;
    });
  });
}

bool reads_body(const KeyPattern& pattern) noexcept {
  return std::any_of(pattern.begin(), pattern.end(), [](const KeyPart& part) {
    return std::any_of(part.begin(), part.end(),
                       [](const AttributeRef& attribute) { return is_in_body(attribute.kind); });
  });
}

bool is_json_pointer(std::string_view text) noexcept {
  constexpr std::size_t kLongest = 128;
  if (!text.starts_with('/') || text.size() > kLongest) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7f || c == '"' || c == '\\') return false;
    if (c == '~' && text.substr(i, 2) != "~0" && text.substr(i, 2) != "~1") return false;
  }
  return true;
}

limit::Cost units_of(const Lease& lease, const limit::Limiter& limiter) noexcept {
  const auto quota = limit::quota(limiter);
  return std::min(lease.percent != 0 ? quota * lease.percent / 100 : lease.units, quota / 4);
}

namespace {

template <class Matches>
AppliedLimiter applied_limiter_where(const Rule& rule, const Request& request, Matches matches) {
  const auto factor = factor_for(rule, request);
  for (std::size_t i = 0; i < rule.overrides.size(); ++i)
    if (matches(rule.overrides[i].match)) return applied(rule.overrides[i], 1 + i, request.load, factor);
  if (!request.client.tier.empty())
    for (std::size_t i = 0; i < rule.tiers.size(); ++i)
      if (rule.tiers[i].tier == request.client.tier)
        return applied(rule.tiers[i], 1 + rule.overrides.size() + i, request.load, factor);
  return applied(rule, 0, request.load, factor);
}

}  // namespace

AppliedLimiter applied_limiter(const Rule& rule, const Request& request) {
  return applied_limiter_where(rule, request, [&](const Match& match) { return match.holds(request); });
}

AppliedLimiter applied_limiter_of_client(const Rule& rule, const Request& request) {
  return applied_limiter_where(
      rule, request, [&](const Match& match) { return match.is_about_clients() && match.holds(request); });
}

AppliedLimiter limiter_of(const Rule& rule, std::uint16_t variant, bool elastic, limit::Factor factor) {
  return ask_variant(rule, variant, [&](const auto& numbers) {
    if (numbers.elastic && elastic) return elastic_limiter(*numbers.elastic, variant);
    auto own = own_limiter(numbers, variant, factor_within(rule, factor));
    own.paired = numbers.elastic.has_value();
    return own;
  });
}

AppliedLimiter counted_limiter(const Rule& rule, const AppliedLimiter& applied) {
  auto other = ask_variant(rule, applied.variant, [&](const auto& numbers) {
    return applied.elastic ? own_limiter(numbers, applied.variant)
                           : elastic_limiter(*numbers.elastic, applied.variant);
  });
  other.paired = other.counted = true;
  return other;
}

AppliedLimiter local_limiter(const Rule& rule, const AppliedLimiter& applied) {
  return ask_variant(rule, applied.variant,
                     [&](const auto& numbers) { return local_share(numbers, applied); });
}

// Hashes the text descriptions of the rule's conditions, key and cost, so that every weir process with the
// same configuration gets the same digest.
std::uint32_t digest_of_asks(const Rule& rule) {
  base::SipHash128 hash({});
  hash.part(rule.match.describe());
  hash.part(describe(rule.key));
  hash.part(static_cast<std::uint64_t>(rule.on_missing));
  hash.part(static_cast<std::uint64_t>(rule.store));
  hash.part(describe(rule.cost_from));
  hash.part(std::uint64_t{rule.cost_from.scale});
  if (rule.cost_from.kind != CostSource::Kind::None) hash.part(std::uint64_t{rule.cost});
  hash.part(rule.max_body);
  for (const auto& variant : rule.overrides) hash.part(variant.match.describe());
  for (const auto& variant : rule.tiers) hash.part(variant.tier);
  if (rule.settlement) {
    hash.part(describe_charge(*rule.settlement));
    hash.part(describe_cost(*rule.settlement));
    hash.part(std::uint64_t{rule.settlement->scale});
    hash.part(rule.settlement->max_body);
  }
  return static_cast<std::uint32_t>(hash.digest().lo);
}

}  // namespace weir::policy
