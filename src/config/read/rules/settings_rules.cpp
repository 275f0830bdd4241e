// Reads [[rule]] and [state].
#include "config/errors/other_spellings.hpp"
#include "config/read/rules/limiter_reader.hpp"
#include "config/read/settings_sections.hpp"
#include "config/warn/capacity.hpp"

#include "weir/base/units.hpp"
#include "weir/config/snapshot_path.hpp"
#include "weir/policy/rules/applied_limiter.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

namespace weir::config {

namespace {

constexpr std::size_t kMostRules = 1000;

// Returns a message if no request can have the attribute because a setting is missing. Returns an empty text
// otherwise.
std::string lacking_for(const policy::AttributeRef& attribute, const ReadContext& context) {
  switch (attribute.kind) {
    case policy::Attribute::CertSubject:
      return context.certificates ? ""
                                  : "no listener requests client certificates; expected [[listener]] tls = { "
                                    "client_ca = \"ca.crt\" }";
    case policy::Attribute::Claim:
      return context.tokens ? ""
                            : "found without [client] jwt, which says how weir verifies tokens; expected "
                              "[client] jwt = { … }";
    case policy::Attribute::Country:
    case policy::Attribute::City:
    case policy::Attribute::Region:
    case policy::Attribute::Asn:
      return context.geo ? "" : no_geo(attribute.kind);
    default:
      return "";
  }
}

void read_cost_source(const TableReader& table, policy::Rule& rule) {
  if (is_cost_in_bytes(table)) return read_cost_in_bytes(table, rule);
  if (is_settled_cost(table)) return read_settled_cost(table, rule);
  using Kind = policy::CostSource::Kind;
  auto& source = rule.cost_from;
  rule.cost = static_cast<limit::Cost>(table.whole("default"));
  if (table.has("scale")) source.scale = static_cast<std::uint32_t>(table.whole("scale"));
  const int places = int{table.has("header")} + int{table.has("query")} + int{table.has("json")};
  if (places != 1) {
    if (!table.flawed())
      table.mistake("", "found " + std::string(places == 0 ? "no place" : "several places") +
                            "; expected one: { header = \"…\" }, { query = \"…\" } or { json = \"/…\" }");
    return;
  }
  if (table.has("json")) return read_json_cost(table, rule);
  if (table.mentions("max_body"))
    table.mistake("max_body", "found without json; only a cost that is read from the body has max_body");
  const bool header = table.has("header");
  source.kind = header ? Kind::Header : Kind::Query;
  source.name = table.text(header ? "header" : "query");
  if (header ? !is_token(source.name) : !is_plain_name(source.name))
    table.mistake(header ? "header" : "query", "found " + in_quotes(source.name) +
                                                   "; expected a name such as \"" +
                                                   (header ? "X-Cost" : "cost") + "\"");
}

void read_cost(const TableReader& table, policy::Rule& rule) {
  const auto* node = table.node("cost");
  if (node == nullptr) return;
  if (node->table() != nullptr)
    return read_cost_source({node, node->line, table.path() + ".cost", schema::kCost, table.source_file()},
                            rule);
  const auto* cost = std::get_if<std::int64_t>(&node->value);
  const bool fits = cost != nullptr && *cost >= 1 && *cost <= static_cast<std::int64_t>(limit::kMaxCost);
  if (!fits)
    return table.mistake(
        "cost", "found " + (cost != nullptr ? std::to_string(*cost) : std::string(type_name(*node))) +
                    "; expected a whole number from 1 to " + std::to_string(limit::kMaxCost));
  rule.cost = static_cast<limit::Cost>(*cost);
}

// Settings of the rule that determine how the limits of the rule, its tiers and its overrides are read.
struct Terms {
  const Method& method;
  unsigned replicas;
};

double read_load(const TableReader& table, std::string_view key) {
  const auto* node = table.node(key);
  // The missing key was reported already.
  if (node == nullptr) return 0;
  const auto* fraction = std::get_if<Fraction>(&node->value);
  const auto* whole = std::get_if<std::int64_t>(&node->value);
  const double load = fraction != nullptr ? fraction->value
                      : whole != nullptr  ? static_cast<double>(*whole)
                                          : 0;
  if (load >= 0.01 && load <= 1) return load;
  const bool number = fraction != nullptr || whole != nullptr;
  table.mistake(key, "found " + (number ? "a number out of range" : std::string(type_name(*node))) +
                         "; expected a share of the load from 0.01 to 1, such as 0.7");
  return 0;
}

// Reports a mistake if a number of the elastic limit is lower than the same number of the rule's own limit.
// At low load, such an elastic limit would refuse requests that the own limit admits.
void refuse_less(const TableReader& table, const limit::Limiter& own, const limit::Limiter& elastic) {
  const auto mistake = [&](std::string_view key, const std::string& raised) {
    table.mistake(key,
                  "found less than the limit that elastic raises, " + raised + "; expected that or more");
  };
  const auto* adaptive = std::get_if<limit::AdaptiveConcurrency>(&own);
  const bool counts = limit::holds(own);
  if (limit::quota(elastic) < limit::quota(own))
    mistake(adaptive != nullptr ? "max" : "limit",
            std::to_string(limit::quota(own)) + (counts ? "" : " in a period, however long"));
  if (adaptive != nullptr && std::get<limit::AdaptiveConcurrency>(elastic).min() < adaptive->min())
    mistake("min", std::to_string(adaptive->min()));
  if (limit::longest_wait(elastic) < limit::longest_wait(own))
    mistake("max_wait", limit::longest_wait(own) == base::kForever
                            ? "no limit"
                            : base::to_string(limit::longest_wait(own)));
}

// Reads the table `elastic`. `base`: the rule's own limit, which the elastic limit raises at low load.
policy::Elastic read_elastic(const TableReader& table, const Terms& terms, const Limiters& base) {
  auto limiters = read_limiters(table, terms.method, terms.replicas, base.burst_or_queue);
  const auto& own = base.rate;
  const auto rate = limiters.rate;
  const bool less_burst_or_queue = limiters.rate && limiters.burst_or_queue < base.burst_or_queue;
  if (less_burst_or_queue)
    table.mistake(key_of_burst_or_queue(terms.method),
                  "found less than the limit that elastic raises, " + std::to_string(base.burst_or_queue));
  __extension__ using Product = unsigned __int128;
  const auto product = [](const limit::Rate& a, const limit::Rate& b) {
    return Product{a.count} * static_cast<std::uint64_t>(b.period.count());
  };
  if (own && rate && product(*rate, *own) < product(*own, *rate))
    table.mistake("limit",
                  "found a lower rate than the limit that elastic raises, " + limit::to_string(*own));
  else if (own && rate && !less_burst_or_queue)
    refuse_less(table, base.limiter, limiters.limiter);
  return {std::move(limiters.limiter), std::move(limiters.local_share), read_load(table, "while_load_below")};
}

// Reads the limits of a rule, a tier or an override. `Numbers`: policy::Rule, or the type of the tier or
// override.
template <class Numbers>
void read_numbers(const TableReader& table, const Terms& terms, Numbers& numbers) {
  auto limiters = read_limiters(table, terms.method, terms.replicas);
  numbers.limiter = std::move(limiters.limiter);
  numbers.local_share = std::move(limiters.local_share);
  numbers.soft = std::move(limiters.soft);
  numbers.soft_share = std::move(limiters.soft_share);
  if (!table.has("elastic")) return;
  if (table.has("soft")) table.mistake("elastic", "found beside soft; expected one of them");
  numbers.elastic = read_elastic(table.table("elastic", schema::kElastic), terms, limiters);
}

// Reads the priority of a tier. Reports a mistake if another rule sets another priority for the same tier.
void read_tier_priority(const TableReader& tier, const std::string& name,
                        policy::TierPriorities& priorities) {
  if (!tier.has("priority")) return;
  const auto priority = static_cast<policy::Priority>(tier.whole("priority"));
  const auto known = priorities.emplace(name, priority).first->second;
  if (known != priority)
    tier.mistake("priority", "found " + std::to_string(priority) + ", but another rule gives this tier " +
                                 std::to_string(known) + "; expected one priority for a tier");
}

void read_queue_per_client(const TableReader& table, Algorithm algorithm, policy::Rule& rule) {
  if (!table.has("queue_per_client")) return;
  if (algorithm != Algorithm::LeakyBucket)
    table.mistake("queue_per_client", "only leaky_bucket uses this; expected algorithm = \"leaky_bucket\"");
  rule.queue_per_client = static_cast<std::uint64_t>(table.whole("queue_per_client"));
}

void read_hold(const TableReader& table, Algorithm algorithm, policy::Rule& rule) {
  rule.hold = table.choice<policy::Hold>("hold");
  const bool counts = algorithm == Algorithm::Concurrency || algorithm == Algorithm::AdaptiveConcurrency;
  if (rule.hold == policy::Hold::Answer && !counts)
    table.mistake(
        "hold",
        "only rules that count requests in flight use this; expected algorithm = \"concurrency\" or "
        "\"adaptive_concurrency\"");
}

void read_tiers(const TableReader& table, const Terms& terms, policy::Rule& rule,
                policy::TierPriorities& priorities) {
  for (const auto& entry : table.named("tiers")) {
    const auto path = table.path() + ".tiers." + entry.key;
    if (entry.table() == nullptr) {
      table.mistake_at(
          entry.line, path,
          "found " + std::string(type_name(entry)) + "; expected a table such as { limit = \"10/s\" }");
      continue;
    }
    const TableReader tier(&entry, entry.line, path, schema::kTier, table.source_file());
    rule.tiers.push_back({.tier = entry.key, .limiter = any_limiter()});
    read_numbers(tier, terms, rule.tiers.back());
    read_tier_priority(tier, entry.key, priorities);
  }
}

void read_overrides(const TableReader& table, const ReadContext& context, const Terms& terms,
                    policy::Rule& rule) {
  for (const auto& entry : table.tables("overrides", schema::kOverride)) {
    if (const auto* conditions = entry.node("match"); conditions && conditions->table()->entries.empty())
      entry.mistake("match",
                    "found no condition, so the override would replace the rule's limit, its tiers and all "
                    "later overrides; expected at least one");
    auto match = read_match(entry.table("match", schema::kMatch), context);
    rule.overrides.push_back({.tier = {}, .match = std::move(match), .limiter = any_limiter()});
    read_numbers(entry, terms, rule.overrides.back());
  }
}

// Returns a rule with an arbitrary limit. Rule has no default constructor, because its limiter needs a limit.
policy::Rule blank_rule() {
  return {.name = {},
          .match = {},
          .key = {},
          .limiter = any_limiter(),
          .overrides = {},
          .tiers = {},
          .refusal_body = {}};
}

void read_name(const TableReader& table, std::set<std::string>& taken, policy::Rule& rule) {
  if (!table.has("name")) return;
  rule.name = table.text("name");
  if (!is_plain_name(rule.name))
    table.mistake("name", "found " + in_quotes(rule.name) +
                              "; expected 1 to 128 printable ASCII characters but \" and \\");
  else if (!taken.insert(rule.name).second)
    table.mistake("name", "found " + in_quotes(rule.name) + " a second time; expected a unique name");
}

void read_store(const TableReader& table, const Settings& settings, const ReadContext& context,
                policy::Rule& rule) {
  rule.store = table.has("store") ? table.choice<policy::Store>("store") : context.store;
  rule.on_store_failure = table.choice<policy::OnStoreFailure>("on_store_failure");
  if (table.has("store") && rule.store == policy::Store::Redis && !settings.state.redis)
    table.mistake("store",
                  "found \"redis\" without a Redis; expected [state] redis = { url = \"redis://…\" }");
  const bool store_is_wrong = table.mentions("store") && !table.has("store");
  if (rule.on_store_failure != policy::OnStoreFailure::Local && rule.store == policy::Store::Memory &&
      !store_is_wrong)
    table.mistake("on_store_failure",
                  "only a rule kept in Redis uses this; expected store = \"redis\" beside it");
}

policy::Rule read_rule(const TableReader& table, const Settings& settings, ReadContext& context,
                       std::set<std::string>& taken) {
  auto rule = blank_rule();
  read_name(table, taken, rule);
  if (table.mentions("bandwidth")) {
    read_bandwidth(table, context, rule);
    return rule;
  }
  read_store(table, settings, context, rule);
  const bool falls_back =
      rule.store == policy::Store::Redis && rule.on_store_failure == policy::OnStoreFailure::Local;
  const auto method = read_method(table);
  if (const auto why = not_in_redis(method); rule.store == policy::Store::Redis && !why.empty())
    table.mistake("algorithm", why);
  const Terms terms{method, falls_back ? settings.state.replicas : 0};
  const ConfigErrors& mistakes = *table.source_file().mistakes;
  const auto before = mistakes.count();
  read_numbers(table, terms, rule);
  const bool numbers_are_sound = mistakes.count() == before;
  rule.match = read_match(table.table("match", schema::kMatch), context);
  rule.key = read_key(table, "key", context);
  rule.on_missing = table.choice<policy::OnMissing>("on_missing");
  read_queue_per_client(table, method.algorithm, rule);
  read_hold(table, method.algorithm, rule);
  read_tiers(table, terms, rule, context.tier_priorities);
  read_overrides(table, context, terms, rule);
  if (const auto variants = rule.overrides.size() + rule.tiers.size(); variants > policy::kMostVariants)
    table.mistake(rule.overrides.empty() ? "tiers" : "overrides",
                  "found " + std::to_string(variants) + " tiers and overrides; expected at most " +
                      std::to_string(policy::kMostVariants) + " in a rule");
  read_charge(table, rule);
  read_cost(table, rule);
  read_body_of_key(table, rule);
  read_messages(table, rule);
  rule.max_body = most_body(rule);
  check_settlement(table, rule);
  rule.mode = table.choice<policy::Mode>("mode");
  read_penalty(table, rule);
  read_adapt(table, settings, mistakes.count() == before, rule);
  read_lease(table, numbers_are_sound, rule);
  read_refusal(table, settings.server, rule);
  if (mistakes.count() == before) check_capacity(table, method, rule);
  return rule;
}

bool is_same_file(const std::string& one, const std::string& other) {
  std::error_code unknown;
  return one == other || std::filesystem::equivalent(one, other, unknown);
}

void read_memory(const TableReader& table, const ReadContext& context, StateSettings& state) {
  state.max_keys = static_cast<std::size_t>(table.whole("max_keys"));
  if (!table.has("snapshot")) return;
  const auto others = context.files;
  state.snapshot = resolve(context, table.text("snapshot"));
  if (std::any_of(others.begin(), others.end(),
                  [&](const auto& file) { return is_same_file(file, state.snapshot); }))
    return table.mistake("snapshot", "found " + in_quotes(state.snapshot) +
                                         ", which is the configuration or a file that it names; expected a "
                                         "separate file, because weir overwrites it");
  if (const auto obstacle = obstacle_to_snapshot(state.snapshot))
    table.mistake("snapshot", "found " + *obstacle + "; expected a file that weir may write");
}

}  // namespace

StateSettings read_state(const TableReader& table, ReadContext& context) {
  StateSettings state;
  read_memory(table.table("memory", schema::kMemory), context, state);
  state.key_secret = table.text("key_secret");
  state.replicas = static_cast<unsigned>(table.whole("replicas"));
  if (table.has("redis")) {
    const auto redis = table.table("redis", schema::kRedis);
    state.redis = read_redis(redis, context);
    context.lines["[state.redis]"] = redis.line();
  }
  context.store = table.choice<policy::Store>("store");
  context.store_is_set = table.has("store");
  if (context.store == policy::Store::Redis && !table.mentions("redis"))
    table.mistake("store",
                  "found \"redis\" without a Redis; expected redis = { url = \"redis://…\" } beside it");
  return state;
}

policy::KeyPattern read_key(const TableReader& table, std::string_view key, const ReadContext& context) {
  policy::KeyPattern pattern;
  const auto texts = table.texts(key);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto part = policy::parse_key_part(texts[i]);
    if (!part) {
      const auto ours = attribute_for(texts[i]);
      table.mistake_in(key, i,
                       ours.empty() ? part.error().message
                                    : in_quotes(texts[i]) + " is not an attribute; write " + in_quotes(ours));
      continue;
    }
    for (const auto& attribute : *part)
      if (const auto lacking = lacking_for(attribute, context); !lacking.empty())
        table.mistake_in(key, i, lacking);
    pattern.push_back(std::move(*part));
  }
  return pattern;
}

std::vector<policy::Rule> read_rules(const TableReader& root, const Settings& settings,
                                     ReadContext& context) {
  std::vector<policy::Rule> rules;
  std::set<std::string> taken;
  context.in_rules = true;
  const auto tables = root.tables("rule", schema::kRule);
  for (const auto& table : tables) {
    auto rule = read_rule(table, settings, context, taken);
    rule.index = rule.rule_number = static_cast<limit::RuleIndex>(rules.size());
    rule.descriptor_keys = policy::descriptor_keys_of(rule);
    check_questions(table, rule);
    read_overdraft(table, rule);
    rule.asks = policy::digest_of_asks(rule);
    rule.marks = policy::marks_of(rule);
    context.lines["rule " + in_quotes(rule.name)] = table.line();
    if (rules.size() == kMostRules)
      table.mistake("", "found rule number " + std::to_string(kMostRules + 1) + "; expected at most " +
                            std::to_string(kMostRules) + " rules");
    rules.push_back(std::move(rule));
  }
  check_bounds(tables, rules);
  return rules;
}

}  // namespace weir::config
