// [[rule]] and [state].
#include "app/limiter_reader.hpp"
#include "app/settings_sections.hpp"

#include <algorithm>
#include <set>

namespace weir::app {

namespace {

// Attributes of a key that this version lacks; those with a colon are beginnings.
struct LaterAttribute {
  std::string_view word;
  std::string_view lacking;
};
constexpr LaterAttribute kLaterAttributes[] = {{"country", "countries of addresses"},
                                               {"claim:", "claims of JSON Web Tokens"},
                                               {"cert:", "client certificates"}};

// What the alternatives of "api_key|claim:sub" need that is not there yet; empty: nothing.
std::string_view lacking_for(std::string_view part) {
  while (true) {
    const auto bar = std::min(part.find('|'), part.size());
    const auto word = part.substr(0, bar);
    for (const auto& [later, lacking] : kLaterAttributes)
      if (later.ends_with(':') ? word.starts_with(later) : word == later) return lacking;
    if (bar == part.size()) return {};
    part.remove_prefix(bar + 1);
  }
}

policy::KeyPattern read_key(const TableReader& table) {
  policy::KeyPattern pattern;
  for (const auto& text : table.texts("key")) {
    if (const auto lacking = lacking_for(text); !lacking.empty()) {
      table.mistake("key", not_yet(lacking));
    } else if (auto part = policy::parse_key_part(text)) {
      pattern.push_back(std::move(*part));
    } else {
      table.mistake("key", part.error().message);
    }
  }
  return pattern;
}

limit::Cost read_cost(const TableReader& table) {
  const auto* node = table.node("cost");
  if (node == nullptr) return 1;
  if (node->table() != nullptr) {
    table.mistake("cost", not_yet("costs read from requests and answers"));
    return 1;
  }
  const auto* cost = std::get_if<std::int64_t>(&node->value);
  const bool fits = cost != nullptr && *cost >= 1 && *cost <= static_cast<std::int64_t>(limit::kMaxCost);
  if (!fits)
    table.mistake("cost", "found " +
                              (cost != nullptr ? std::to_string(*cost) : std::string(type_name(*node))) +
                              "; expected a whole number from 1 to " + std::to_string(limit::kMaxCost));
  return fits ? static_cast<limit::Cost>(*cost) : 1;
}

// A tier has one priority, wherever it is given.
void read_tier_priority(const TableReader& tier, const std::string& name,
                        policy::TierPriorities& priorities) {
  if (!tier.has("priority")) return;
  const auto priority = static_cast<policy::Priority>(tier.whole("priority"));
  const auto known = priorities.emplace(name, priority).first->second;
  if (known != priority)
    tier.mistake("priority", "found " + std::to_string(priority) + ", and another rule gives this tier " +
                                 std::to_string(known) + "; expected one priority for a tier");
}

void read_queue_per_client(const TableReader& table, Algorithm algorithm, policy::Rule& rule) {
  if (!table.has("queue_per_client")) return;
  if (algorithm != Algorithm::LeakyBucket)
    table.mistake("queue_per_client", "only of leaky_bucket; expected algorithm = \"leaky_bucket\"");
  rule.queue_per_client = static_cast<std::uint64_t>(table.whole("queue_per_client"));
}

void read_tiers(const TableReader& table, Algorithm algorithm, unsigned replicas, policy::Rule& rule,
                policy::TierPriorities& priorities) {
  for (const auto& entry : table.named("tiers")) {
    const auto path = table.path() + ".tiers." + entry.key;
    if (entry.table() == nullptr) {
      table.mistake_at(
          entry.line, path,
          "found " + std::string(type_name(entry)) + "; expected a table such as { limit = \"10/s\" }");
      continue;
    }
    const TableReader tier(&entry, entry.line, path, schema::kTier, table.place());
    auto limiters = read_limiters(tier, algorithm, replicas);
    read_tier_priority(tier, entry.key, priorities);
    rule.tiers.push_back({entry.key, {}, std::move(limiters.limiter), std::move(limiters.local_share)});
  }
}

void read_overrides(const TableReader& table, Algorithm algorithm, unsigned replicas, policy::Rule& rule) {
  for (const auto& entry : table.tables("overrides", schema::kOverride)) {
    auto match = read_match(entry.table("match", schema::kMatch));
    auto limiters = read_limiters(entry, algorithm, replicas);
    rule.overrides.push_back(
        {"", std::move(match), std::move(limiters.limiter), std::move(limiters.local_share)});
  }
}

// A rule has no default constructor, because no limiter goes without numbers.
policy::Rule blank_rule() {
  return {.name = {},
          .match = {},
          .key = {},
          .limiter = *limit::TokenBucket::make({}, 1),
          .local_share = {},
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
    table.mistake("name", "found " + in_quotes(rule.name) + " a second time; expected a name of its own");
}

void read_store(const TableReader& table, const Settings& settings, const Reading& reading,
                policy::Rule& rule) {
  rule.store = table.has("store") ? table.choice<policy::Store>("store") : reading.store;
  rule.on_store_failure = table.choice<policy::OnStoreFailure>("on_store_failure");
  if (table.has("store") && rule.store == policy::Store::Redis && !settings.state.redis)
    table.mistake("store",
                  "found \"redis\" without a Redis; expected [state] redis = { url = \"redis://…\" }");
}

policy::Rule read_rule(const TableReader& table, const Settings& settings, Reading& reading,
                       std::set<std::string>& taken) {
  auto rule = blank_rule();
  read_name(table, taken, rule);
  read_store(table, settings, reading, rule);
  const bool falls_back =
      rule.store == policy::Store::Redis && rule.on_store_failure == policy::OnStoreFailure::Local;
  const unsigned replicas = falls_back ? settings.state.replicas : 0;
  const auto algorithm = table.choice<Algorithm>("algorithm");
  (void)table.text("refill");
  if (table.has("refill") && algorithm != Algorithm::TokenBucket)
    table.mistake("refill", "only of token_bucket; expected algorithm = \"token_bucket\"");
  auto limiters = read_limiters(table, algorithm, replicas);
  rule.limiter = std::move(limiters.limiter);
  rule.local_share = std::move(limiters.local_share);
  rule.match = read_match(table.table("match", schema::kMatch));
  rule.key = read_key(table);
  rule.on_missing = table.choice<policy::OnMissing>("on_missing");
  read_queue_per_client(table, algorithm, rule);
  read_tiers(table, algorithm, replicas, rule, reading.tier_priorities);
  read_overrides(table, algorithm, replicas, rule);
  rule.cost = read_cost(table);
  rule.mode = table.choice<policy::Mode>("mode");
  rule.refusal_status = static_cast<unsigned>(table.whole("status"));
  if (table.has("body")) rule.refusal_body = table.text("body");
  return rule;
}

redis::RedisSettings read_redis(const TableReader& table) {
  if (!table.has("url")) return redis::RedisSettings{};  // noted as missing already
  const auto url = table.text("url");
  if (url.starts_with("rediss://")) {
    table.mistake("url", not_yet("TLS to Redis"));
    return redis::RedisSettings{};
  }
  auto parsed = redis::parse_redis_url(url);
  if (!parsed) {
    table.mistake("url", parsed.error().message);
    return redis::RedisSettings{};
  }
  auto redis = std::move(*parsed);
  redis.timeout = table.deadline("timeout");
  redis.prefix = table.text("prefix");
  if (!is_plain_name(redis.prefix) || redis.prefix.find_first_of("{}") != std::string::npos)
    table.mistake("prefix", "found " + in_quotes(redis.prefix) +
                                "; expected 1 to 128 printable ASCII characters but \" \\ { and }");
  (void)table.text("topology");
  return redis;
}

}  // namespace

StateSettings read_state(const TableReader& table, Reading& reading) {
  StateSettings state;
  state.max_keys = static_cast<std::size_t>(table.table("memory", schema::kMemory).whole("max_keys"));
  state.key_secret = table.text("key_secret");
  state.replicas = static_cast<unsigned>(table.whole("replicas"));
  if (table.has("redis")) state.redis = read_redis(table.table("redis", schema::kRedis));
  reading.store = table.choice<policy::Store>("store");
  if (reading.store == policy::Store::Redis && !table.mentions("redis"))
    table.mistake("store",
                  "found \"redis\" without a Redis; expected redis = { url = \"redis://…\" } beside it");
  return state;
}

std::vector<policy::Rule> read_rules(const TableReader& root, const Settings& settings, Reading& reading) {
  std::vector<policy::Rule> rules;
  std::set<std::string> taken;
  for (const auto& table : root.tables("rule", schema::kRule)) {
    auto rule = read_rule(table, settings, reading, taken);
    rule.index = static_cast<limit::RuleIndex>(rules.size());
    rules.push_back(std::move(rule));
    if (rules.size() == limit::kMaxCharges + 1)
      table.mistake("", "found rule number " + std::to_string(rules.size()) + "; expected at most " +
                            std::to_string(limit::kMaxCharges) + " rules");
  }
  return rules;
}

}  // namespace weir::app
