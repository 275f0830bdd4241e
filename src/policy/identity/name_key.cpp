// A client's name in a rule is the xor of two digests: the digest of the client, and the digest of the
// limiter (its *mark*). Both digests hash the items below in this order. Each item has a fixed size or is
// hashed with its length, so no two sequences are equal.
// * The client's digest uses the secret key. For each part of the rule's key it hashes the kind of the
//   attribute, the attribute's name if it has one, and the value. For a header, it hashes a 1 before the
//   value.
// * The mark uses no secret key. It hashes the rule's name. If the state is in Redis in another form than 0,
//   it then hashes 4 and the form (see form_of()). For the elastic limit it hashes 3. Last, it hashes 0 for
//   the rule, 1 and the identity for an override, or 2 and the name for a tier.
//
// So weir digests the client once for all rules with the same key, and knows the marks before any request.
// Two names are equal only if the xor of the clients' digests equals the xor of the marks. A client without
// the secret key cannot cause this. So names are as safe as one digest of 128 bits.
//
// Several weirs share these names in Redis, and names stay the same after a reload. So names must not depend
// on positions in the configuration. An override has no name and is identified by what it matches
// (override_identity.hpp).
#include "policy/identity/consistent_value.hpp"
#include "policy/identity/override_identity.hpp"
#include "policy/rules/descriptors.hpp"

#include "weir/policy/body_values.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/policy/key_values.hpp"
#include "weir/policy/rules/applied_limiter.hpp"

#include <algorithm>
#include <iterator>

namespace weir::policy {

namespace {

using base::SipHash128;

// Returns a number for the form in which Redis scripts store the state of this limiter. Weirs may use
// different forms for a rule, because of another algorithm or another version of the scripts. Weirs with
// different forms count separately; otherwise each would read the other's state as missing. A changed form
// must get a new number. Older versions used the numbers 2 and 3 (windows without their start) and 4 (logs
// without sums).
std::uint64_t form_of(const limit::Limiter& limiter) noexcept {
  if (limit::gcra_core(limiter) != nullptr) return 0;
  if (std::holds_alternative<limit::SteppedBucket>(limiter)) return 1;
  if (std::holds_alternative<limit::FixedWindow>(limiter)) return 7;
  if (std::holds_alternative<limit::SlidingWindow>(limiter)) return 8;
  return std::holds_alternative<limit::SlidingLog>(limiter) ? 5 : 6;
}

const limit::Limiter& limiter_of_variant(const Rule& rule, std::uint16_t variant) noexcept {
  if (variant == 0) return *rule.limiter;
  const auto at = variant - std::size_t{1};
  const auto overrides = rule.overrides.size();
  return *(at < overrides ? rule.overrides[at] : rule.tiers[at - overrides]).limiter;
}

// Returns the mark of a limiter: a digest that is part of all names under the limiter. `overrides`: the
// result of override_identities(rule).
base::Digest128 mark_of(const Rule& rule, std::span<const std::uint64_t> overrides, std::uint16_t variant,
                        bool elastic) noexcept {
  SipHash128 hash({});
  hash.part(rule.name);
  const auto form = rule.store == Store::Redis ? form_of(limiter_of_variant(rule, variant)) : 0;
  if (form != 0) {
    hash.part(std::uint64_t{4});
    hash.part(form);
  }
  if (elastic) hash.part(std::uint64_t{3});
  if (variant == 0) {
    hash.part(std::uint64_t{0});
  } else if (variant <= rule.overrides.size()) {
    hash.part(std::uint64_t{1});
    hash.part(overrides[variant - std::size_t{1}]);
  } else {
    hash.part(std::uint64_t{2});
    hash.part(rule.tiers[variant - rule.overrides.size() - 1].tier);
  }
  return hash.digest();
}

limit::Key marked(const base::Digest128& who, const Rule& rule, const AppliedLimiter& applied) {
  const auto mark = rule.marks.empty()
                        ? mark_of(rule, override_identities(rule), applied.variant, applied.elastic)
                        : rule.marks[limiter_id_of(applied.variant, applied.elastic)];
  return {who.lo ^ mark.lo, who.hi ^ mark.hi};
}

// Hashes the attribute's value. Returns false and hashes nothing if the value is empty. Hashes a 1 before a
// header's value, as older versions of weir did, so that names remain the same.
bool add_value(SipHash128& hash, const AttributeRef& attribute, std::string_view value) noexcept {
  if (value.empty()) return false;
  hash.part(static_cast<std::uint64_t>(attribute.kind));
  if (!attribute.name.empty()) hash.part(attribute.name);
  if (attribute.kind == Attribute::Header) hash.part(std::uint64_t{1});
  hash.part(value);
  return true;
}

// Calls `use` with the value of a query parameter. A separate function, so that attributes of other kinds
// need no string on the stack.
template <class Use>
[[gnu::noinline]] bool use_query(const AttributeRef& attribute, const http::RequestHead& head, Use& use) {
  const auto value = value_in_query(head, attribute.name);
  return use(value.value_or(std::string_view{}));
}

template <class Use>
[[gnu::noinline]] bool use_cookie(const AttributeRef& attribute, const http::RequestHead& head, Use& use) {
  std::string decoded;
  const auto value = value_in_cookies(head, attribute.name, decoded);
  return use(value.value_or(std::string_view{}));
}

// Returns the value of an attribute that is read from the body; empty if the body is not known.
std::string_view value_in_body(const AttributeRef& attribute, const Request& request) noexcept {
  const auto* values = request.body.values;
  if (values == nullptr) return {};
  return attribute.kind == Attribute::Json ? values->json(attribute.name) : values->field(attribute.name);
}

// Calls `use` with the value of the attribute. The value is empty if the request lacks it or has differing
// values. ambiguity_in_key() reports differing values.
template <class Use>
bool use_value(const AttributeRef& attribute, const Request& request, Use use) {
  const auto& client = request.client;
  switch (attribute.kind) {
    case Attribute::Ip:
      return use(client.network.view());
    case Attribute::ApiKey:
      return use(client.api_key);
    case Attribute::User:
      return use(client.user);
    case Attribute::Org:
      return use(client.org);
    case Attribute::Tier:
      return use(client.tier);
    case Attribute::Service:
      return use(client.service);
    case Attribute::Device:
      return use(client.device);
    case Attribute::Route:
      return use(request.route);
    case Attribute::Upstream:
      return use(request.upstream);
    case Attribute::Host:
      return use(request.host);
    case Attribute::Method:
      return use(request.head->method);
    case Attribute::Path:
      return use(request.path);
    case Attribute::Header:
      return use(value_in_header(*request.head, attribute.name).value_or(std::string_view{}));
    case Attribute::Query:
      return use_query(attribute, *request.head, use);
    case Attribute::Cookie:
      return use_cookie(attribute, *request.head, use);
    case Attribute::Country:
      return use(client.country);
    case Attribute::Claim:
      return client.claims != nullptr && use(client.claims->find(attribute.name));
    case Attribute::CertSubject:
      return use(client.certificate_subject);
    case Attribute::PathSegment:
      return use(path_segment(request.path, attribute.name));
    case Attribute::Json:
    case Attribute::Form:
      return use(value_in_body(attribute, request));
    case Attribute::City:
      return use(client.city);
    case Attribute::Region:
      return use(client.region);
    case Attribute::Asn:
      return use(client.asn);
    case Attribute::Descriptor:
      return use(value_in_descriptors(attribute.name, request));
    case Attribute::Domain:
      return use(request.domain);
  }
  return false;
}

bool add_attribute(SipHash128& hash, const AttributeRef& attribute, const Request& request) {
  return use_value(attribute, request,
                   [&](std::string_view value) { return add_value(hash, attribute, value); });
}

inline bool has_part(SipHash128& hash, const KeyPart& part, const Request& request) {
  return std::any_of(part.begin(), part.end(),
                     [&](const AttributeRef& attribute) { return add_attribute(hash, attribute, request); });
}

}  // namespace

bool has_value(const AttributeRef& attribute, const Request& request) {
  return use_value(attribute, request, [](std::string_view value) { return !value.empty(); });
}

std::optional<base::Digest128> name_api_key(const ClientIdentity& client, const NamingKeys& keys) {
  if (client.api_key.empty()) return std::nullopt;
  SipHash128 hash(keys.shared);
  add_value(hash, AttributeRef{Attribute::ApiKey, {}}, client.api_key);
  return hash.digest();
}

base::Digest128 name_descriptor_value(std::string_view key, std::string_view value, const NamingKeys& keys) {
  SipHash128 hash(keys.shared);
  add_value(hash, AttributeRef{Attribute::Descriptor, std::string(key)}, value);
  return hash.digest();
}

const KeyPart* missing_part(const Rule& rule, const Request& request) {
  SipHash128 unused({});
  const auto found = std::find_if(rule.key.begin(), rule.key.end(),
                                  [&](const KeyPart& part) { return !has_part(unused, part, request); });
  return found == rule.key.end() ? nullptr : &*found;
}

std::vector<base::Digest128> marks_of(const Rule& rule) {
  std::vector<base::Digest128> marks;
  const auto variants = 1 + rule.overrides.size() + rule.tiers.size();
  marks.reserve(2 * variants);
  const auto overrides = override_identities(rule);
  for (std::size_t variant = 0; variant < variants; ++variant)
    for (const bool elastic : {false, true})
      marks.push_back(mark_of(rule, overrides, static_cast<std::uint16_t>(variant), elastic));
  return marks;
}

namespace {

std::optional<base::Digest128> digest_of_client(const Rule& rule, const Request& request, base::SipKey key) {
  SipHash128 hash(key);
  for (const auto& part : rule.key) {
    if (has_part(hash, part, request)) continue;
    if (rule.on_missing != OnMissing::Ip) return std::nullopt;
    add_attribute(hash, AttributeRef{Attribute::Ip, {}}, request);
  }
  return hash.digest();
}

bool is_by_address(const Rule& rule) noexcept {
  return rule.key.size() == 1 && rule.key.front().size() == 1 &&
         rule.key.front().front().kind == Attribute::Ip;
}

// Returns the same as digest_of_client(). If the rule's key is the client's address, keeps the digest in
// request.address_digest, and computes it again only for another address or another secret key.
std::optional<base::Digest128> remembered_digest(const Rule& rule, const Request& request, base::SipKey key) {
  auto* const memory = request.address_digest;
  if (memory == nullptr || !is_by_address(rule)) return digest_of_client(rule, request, key);
  const auto& network = request.client.network;
  if (!memory->known || memory->key != key || memory->network != network)
    *memory = {true, key, network, *digest_of_client(rule, request, key)};
  return memory->digest;
}

}  // namespace

std::optional<limit::Key> Namer::name(const Rule& rule, const AppliedLimiter& applied, base::SipKey key) {
  const bool same = last_ != nullptr && key == key_ && last_->on_missing == rule.on_missing &&
                    (last_ == &rule || last_->key == rule.key);
  if (!same) {
    who_ = remembered_digest(rule, request_, key);
    last_ = &rule;
    key_ = key;
  }
  if (!who_) return std::nullopt;
  return marked(*who_, rule, applied);
}

std::optional<limit::Key> name_key(const Rule& rule, const AppliedLimiter& applied, const Request& request,
                                   base::SipKey key) {
  return Namer(request).name(rule, applied, key);
}

std::vector<KeyValue> key_values(const Rule& rule, const Request& request) {
  std::vector<KeyValue> values;
  const auto add = [&](const AttributeRef& attribute) {
    return use_value(attribute, request, [&](std::string_view value) {
      if (!value.empty()) values.push_back({attribute, std::string(value)});
      return !value.empty();
    });
  };
  for (const auto& part : rule.key)
    if (std::none_of(part.begin(), part.end(), add)) add({Attribute::Ip, {}});
  return values;
}

limit::Key name_values(const Rule& rule, const AppliedLimiter& applied, std::span<const KeyValue> values,
                       base::SipKey key) {
  SipHash128 hash(key);
  for (const auto& [attribute, value] : values) add_value(hash, attribute, value);
  return marked(hash.digest(), rule, applied);
}

// Converts a client's name under `from` into its name under `to`. A name is the xor of the client's digest
// and the limiter's mark. So the xor of the name with both marks replaces the mark of `from` by the mark of
// `to`.
limit::Key name_under(const Rule& rule, const AppliedLimiter& from, const AppliedLimiter& to,
                      const limit::Key& name) {
  return marked(marked(name, rule, from), rule, to);
}

namespace {

// Returns the rank of a part of a key. A part with a lower rank identifies a client better: a client has one
// API key, for example, but requests many paths.
unsigned vagueness(const KeyPart& part) noexcept {
  constexpr Attribute kByWorth[] = {
      Attribute::ApiKey,  Attribute::User,   Attribute::Claim,   Attribute::CertSubject,
      Attribute::Org,     Attribute::Device, Attribute::Service, Attribute::Descriptor,
      Attribute::Ip,      Attribute::Header, Attribute::Cookie,  Attribute::Query,
      Attribute::Json,    Attribute::Form,   Attribute::Tier,    Attribute::City,
      Attribute::Region,  Attribute::Asn,    Attribute::Country, Attribute::Domain,
      Attribute::Host,    Attribute::Route,  Attribute::Path,    Attribute::PathSegment,
      Attribute::Upstream};
  const auto* found = std::find(std::begin(kByWorth), std::end(kByWorth), part.front().kind);
  return static_cast<unsigned>(found - std::begin(kByWorth));
}

// Returns the part that identifies the client best; null if the key has no part.
const KeyPart* most_telling(const Rule& rule) noexcept {
  const KeyPart* telling = nullptr;
  for (const auto& part : rule.key)
    if (telling == nullptr || vagueness(part) < vagueness(*telling)) telling = &part;
  return telling;
}

}  // namespace

// Hashes only the value for the part that identifies the client best, and not the rule's name. A rule without
// key parts hashes nothing, so all such rules get the same slot hash.
limit::SlotHash slot_hash_of_values(const Rule& rule, std::span<const KeyValue> values, base::SipKey key) {
  SipHash128 hash(key);
  const KeyPart* const telling = most_telling(rule);
  if (telling != nullptr) {
    const auto& [attribute, value] = values[static_cast<std::size_t>(telling - rule.key.data())];
    add_value(hash, attribute, value);
  }
  return static_cast<limit::SlotHash>(hash.digest().lo);
}

limit::SlotHash slot_hash_of_client(const Rule& rule, const Request& request, base::SipKey key) {
  SipHash128 hash(key);
  const KeyPart* const telling = most_telling(rule);
  if (telling != nullptr && !has_part(hash, *telling, request))
    add_attribute(hash, AttributeRef{Attribute::Ip, {}}, request);
  return static_cast<limit::SlotHash>(hash.digest().lo);
}

std::optional<limit::Key> Namer::name_in_redis(const Rule& rule, const AppliedLimiter& applied,
                                               const NamingKeys& keys) {
  const auto key = name(rule, applied, keys.shared);
  if (!key || !keys.slot_hashes) return key;
  return limit::with_slot_hash(*key, slot_hash_of_client(rule, request_, keys.shared));
}

std::optional<limit::Key> name_in_redis(const Rule& rule, const AppliedLimiter& applied,
                                        const Request& request, const NamingKeys& keys) {
  return Namer(request).name_in_redis(rule, applied, keys);
}

base::Digest128 name_client(const KeyPattern& pattern, const Request& request, base::SipKey key) {
  SipHash128 hash(key);
  for (const auto& part : pattern)
    if (!has_part(hash, part, request)) add_attribute(hash, AttributeRef{Attribute::Ip, {}}, request);
  return hash.digest();
}

}  // namespace weir::policy
