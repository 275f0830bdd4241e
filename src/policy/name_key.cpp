// How a client's name in a rule is made. What goes into the digest, in this order, every item with its length
// or of fixed size, so that no two sequences of attributes read the same:
//
//   rule name | 3 where it is the elastic limit | 0, or 1 and the override's number, or 2 and the tier's name
//   then for each part: kind of the attribute | its name, if it has one | its value
//   (of a header: how many lines, then each)
//
// Several weirs share these names in Redis, and a reload keeps them: nothing may go in that is a position in
// the configuration, but for the number of an override, which has no name.
#include "weir/http/percent.hpp"
#include "weir/policy/evaluation.hpp"

#include <algorithm>

namespace weir::policy {

namespace {

using base::SipHash128;

void add_variant(SipHash128& hash, const Rule& rule, const AppliedLimiter& applied) noexcept {
  if (applied.elastic) hash.part(std::uint64_t{3});
  const auto variant = applied.variant;
  if (variant == 0) {
    hash.part(std::uint64_t{0});
  } else if (variant <= rule.overrides.size()) {
    hash.part(std::uint64_t{1});
    hash.part(std::uint64_t{variant});
  } else {
    hash.part(std::uint64_t{2});
    hash.part(rule.tiers[variant - rule.overrides.size() - 1].tier);
  }
}

// Each of these: false, and nothing hashed, when there is no value.
bool add_value(SipHash128& hash, const AttributeRef& attribute, std::string_view value) noexcept {
  if (value.empty()) return false;
  hash.part(static_cast<std::uint64_t>(attribute.kind));
  if (!attribute.name.empty()) hash.part(attribute.name);
  hash.part(value);
  return true;
}

bool add_header(SipHash128& hash, const AttributeRef& attribute, const http::Fields& fields) noexcept {
  const auto wanted = [&](const http::Field& f) {
    return !f.value.empty() && f.name.size() == attribute.name.size() &&
           http::equal_ignoring_case(f.name, attribute.name);
  };
  const auto lines = std::count_if(fields.begin(), fields.end(), wanted);
  if (lines == 0) return false;
  hash.part(static_cast<std::uint64_t>(attribute.kind));
  hash.part(attribute.name);
  hash.part(static_cast<std::uint64_t>(lines));
  for (const auto& field : fields)
    if (wanted(field)) hash.part(field.value);
  return true;
}

// Apart, so that the other attributes do without room for a string.
[[gnu::noinline]] bool add_query(SipHash128& hash, const AttributeRef& attribute, std::string_view query) {
  std::string decoded;
  return add_value(hash, attribute, http::percent_decoded(query_parameter(query, attribute.name), decoded));
}

bool add_attribute(SipHash128& hash, const AttributeRef& attribute, const Request& request) {
  const auto& client = request.client;
  const auto add = [&](std::string_view value) { return add_value(hash, attribute, value); };
  switch (attribute.kind) {
    case Attribute::Ip:
      return add(client.network.view());
    case Attribute::ApiKey:
      return add(client.api_key);
    case Attribute::User:
      return add(client.user);
    case Attribute::Org:
      return add(client.org);
    case Attribute::Tier:
      return add(client.tier);
    case Attribute::Service:
      return add(client.service);
    case Attribute::Device:
      return add(client.device);
    case Attribute::Route:
      return add(request.route);
    case Attribute::Host:
      return add(request.host);
    case Attribute::Method:
      return add(request.head->method);
    case Attribute::Path:
      return add(request.path);
    case Attribute::Header:
      return add_header(hash, attribute, request.head->fields);
    case Attribute::Query:
      return add_query(hash, attribute, request.head->query);
    case Attribute::Cookie:
      return add(cookie(request.head->fields, attribute.name));
    case Attribute::Country:
      return add(client.country);
    case Attribute::Claim:
      return client.claims != nullptr && add(client.claims->find(attribute.name));
    case Attribute::CertSubject:
      return add(client.certificate_subject);
  }
  return false;
}

inline bool has_part(SipHash128& hash, const KeyPart& part, const Request& request) {
  return std::any_of(part.begin(), part.end(),
                     [&](const AttributeRef& attribute) { return add_attribute(hash, attribute, request); });
}

}  // namespace

const KeyPart* missing_part(const Rule& rule, const Request& request) {
  SipHash128 unused({});
  const auto found = std::find_if(rule.key.begin(), rule.key.end(),
                                  [&](const KeyPart& part) { return !has_part(unused, part, request); });
  return found == rule.key.end() ? nullptr : &*found;
}

std::optional<limit::Key> name_key(const Rule& rule, const AppliedLimiter& applied, const Request& request,
                                   base::SipKey key) {
  SipHash128 hash(key);
  hash.part(rule.name);
  add_variant(hash, rule, applied);
  for (const auto& part : rule.key) {
    if (has_part(hash, part, request)) continue;
    if (rule.on_missing != OnMissing::Ip) return std::nullopt;
    add_attribute(hash, AttributeRef{Attribute::Ip, {}}, request);
  }
  return hash.digest();
}

}  // namespace weir::policy
