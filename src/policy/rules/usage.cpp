#include "weir/policy/usage.hpp"

#include "weir/limit/limiter.hpp"
#include "weir/policy/claims.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/policy/explanation.hpp"

#include <algorithm>

namespace weir::policy {

namespace {

// Says what an attribute of a key describes: the client, or its request.
enum class Meaning : std::uint8_t {
  Who,      // who the client is
  Group,    // the client's group, the site that it requests, or a name that it may choose freely
  Request,  // what the client requests from the site
};

Meaning meaning_of(const AttributeRef& attribute) noexcept {
  switch (attribute.kind) {
    case Attribute::Ip:
    case Attribute::ApiKey:
    case Attribute::User:
    case Attribute::Org:
    case Attribute::Service:
    case Attribute::Cookie:
    case Attribute::Claim:
    case Attribute::CertSubject:
      return Meaning::Who;
    case Attribute::Tier:
    case Attribute::Country:
    case Attribute::City:
    case Attribute::Region:
    case Attribute::Asn:
    case Attribute::Host:
    case Attribute::Device:
    case Attribute::Header:
    case Attribute::Query:
    case Attribute::Domain:
      return Meaning::Group;
    default:
      return Meaning::Request;
  }
}

// Returns true if the rule has one key for each client, whatever the client requests. For this, one part of
// the key must always identify the client. The part "host|ip" does not, because its first alternative is the
// host.
bool counts_clients(const KeyPattern& key) noexcept {
  const auto says_who = [](const AttributeRef& one) { return meaning_of(one) == Meaning::Who; };
  const auto depends = [](const AttributeRef& one) { return meaning_of(one) == Meaning::Request; };
  return std::any_of(key.begin(), key.end(),
                     [&](const KeyPart& part) { return std::all_of(part.begin(), part.end(), says_who); }) &&
         std::none_of(key.begin(), key.end(),
                      [&](const KeyPart& part) { return std::any_of(part.begin(), part.end(), depends); });
}

bool tells_clients(const Rule& rule) noexcept {
  return rule.mode == Mode::Enforce && rule.bandwidth.empty() && rule.descriptor_keys.empty() &&
         counts_clients(rule.key);
}

bool may_show(const Rule& rule, const Request& request) {
  return tells_clients(rule) && rule.match.holds_for_client(request);
}

bool has_ambiguous_key(const Rule& rule, const Request& request) {
  return ambiguity_in_key(rule, request) ||
         std::any_of(rule.overrides.begin(), rule.overrides.end(), [&](const Variant& variant) {
           return variant.match.is_about_clients() && variant.match.ambiguity(request);
         });
}

// Returns the duration in seconds, rounded up.
std::string whole_seconds(base::Duration duration) {
  return std::to_string(base::ceil_seconds(duration));
}

void append_line(std::string& out, const ClientLimit& line) {
  const auto state = state_of(*line.rule, line.applied, line.charge.key, line.outcome);
  const auto& limiter = *line.applied.advertised;
  out += R"({"rule":")" + line.rule->name + R"(","limit":)" + std::to_string(state.limit);
  if (line.known) {
    out += ",\"used\":" + std::to_string(state.limit - state.remaining);
    out += ",\"remaining\":" + std::to_string(state.remaining);
  }
  if (!limit::holds(limiter)) {
    if (line.known) out += ",\"reset_after_seconds\":" + whole_seconds(line.outcome.reset_after);
    out += ",\"window_seconds\":" + whole_seconds(limit::window(limiter));
  }
  if (const auto left = line.outcome.penalty_left; left.count() > 0)
    out += ",\"penalty_seconds\":" + whole_seconds(left);
  out += "}";
}

}  // namespace

std::vector<ClientLimit> limits_of_client(std::span<const Rule> rules, const Request& request,
                                          const NamingKeys& keys) {
  std::vector<ClientLimit> lines;
  Namer namer(request);
  for (const Rule& rule : rules) {
    if (lines.size() == limit::kMaxCharges) break;
    if (!may_show(rule, request) || has_ambiguous_key(rule, request)) continue;
    const auto applied = applied_limiter_of_client(rule, request);
    const auto key = rule.store == Store::Memory ? namer.name(rule, applied, keys.table)
                                                 : namer.name_in_redis(rule, applied, keys);
    if (!key) continue;
    lines.push_back({&rule,
                     applied,
                     {.key = *key,
                      .limiter = applied.limiter,
                      .cost = 0,
                      .rule = rule.rule_number,
                      .limiter_id = limiter_id_of(applied.variant, applied.elastic),
                      .penalty = rule.penalty ? &*rule.penalty : nullptr}});
  }
  return lines;
}

bool needs_claims_for_usage(std::span<const Rule> rules, const Request& request) {
  if (request.client.token.empty()) return false;
  return std::any_of(rules.begin(), rules.end(), [&](const Rule& rule) {
    return tells_clients(rule) && (depends_on_token(rule, request) ||
                                   (needs_claims(rule.key, request) && rule.match.holds_for_client(request)));
  });
}

void append_usage_json(std::string& out, std::span<const ClientLimit> lines) {
  out += R"({"limits":[)";
  for (const auto& line : lines) {
    if (&line != lines.data()) out += ",";
    append_line(out, line);
  }
  out += "]}\n";
}

}  // namespace weir::policy
