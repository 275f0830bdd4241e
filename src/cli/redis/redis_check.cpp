#include "cli/redis/redis_check.hpp"

#include "weir/base/units.hpp"
#include "weir/cli/commands.hpp"
#include "weir/redis/shared_secret.hpp"

#include <cstdio>
#include <iostream>

namespace weir::cli {

namespace {

constexpr base::Duration kFarApart{1'000'000};
constexpr std::size_t kLabel = 14;

void tell(RedisReport& report, std::string label, const std::string& what) {
  label.resize(kLabel, ' ');
  report.text += "  " + label + what + "\n";
}

std::string in_milliseconds(base::Duration length) {
  char text[40];
  std::snprintf(text, sizeof text, "%.2f ms", static_cast<double>(length.count()) / 1000);
  return text;
}

std::string in_mebibytes(std::uint64_t bytes) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

void tell_server(RedisReport& report, const redis::ServerFacts& facts, bool cluster) {
  if (facts.version.empty()) return tell(report, "server", "unknown");
  tell(report, "server", facts.product + " " + facts.version);
  if (!is_recent(facts)) report.faults.push_back("it is too old; weir needs Redis 6.2 or later, or Valkey");
  const bool counted = facts.replicas.value_or(0) != 0 && facts.role == "master";
  tell(report, "role",
       facts.role + (!counted              ? ""
                     : facts.replicas == 1 ? ", with a replica"
                                           : ", with " + std::to_string(*facts.replicas) + " replicas"));
  if (facts.role == "slave" && !cluster)
    report.faults.push_back("it is a replica, which accepts no writes; write the address of its master");
  if (facts.in_cluster && !cluster)
    report.faults.push_back("it is a cluster node, but topology is not \"cluster\"");
  if (!facts.in_cluster && cluster)
    report.faults.push_back("it is not a cluster node, but topology is \"cluster\"");
}

// Returns a warning if Redis may evict weir's keys. All keys of weir have an expiry time, so the volatile
// eviction policies affect them, too.
std::string warn_about(const redis::ServerFacts& facts) {
  if (facts.eviction.empty() || facts.eviction == "noeviction" || facts.max_memory == 0u) return "";
  const std::string which =
      facts.eviction == "volatile-ttl" ? "keys, the soonest to expire first" : "keys while they are in use";
  return "eviction: with " + facts.eviction + " a full Redis evicts weir's " + which +
         ", and their clients start with a new limit; only noeviction avoids this (a full Redis then refuses "
         "writes, and rules follow on_store_failure)";
}

void tell_memory(RedisReport& report, const redis::ServerFacts& facts) {
  if (facts.max_memory)
    tell(report, "maxmemory",
         (*facts.max_memory == 0 ? "no limit" : in_mebibytes(*facts.max_memory)) +
             (facts.used_memory ? ", " + in_mebibytes(*facts.used_memory) + " in use" : ""));
  if (!facts.eviction.empty()) tell(report, "eviction", facts.eviction);
  if (auto doubt = warn_about(facts); !doubt.empty()) report.warnings.push_back(std::move(doubt));
}

void tell_round_trips(RedisReport& report, const redis::RoundTrips& trips, base::Duration timeout) {
  tell(report, "round trip",
       in_milliseconds(trips.median) + " median, " + in_milliseconds(trips.worst) + " worst of " +
           std::to_string(trips.count) + "; timeout " + base::to_string(timeout));
  if (trips.worst < timeout) return;
  report.warnings.push_back(std::string(trips.median < timeout ? "the worst" : "the median") +
                            " round trip exceeds the timeout of " + base::to_string(timeout) +
                            ": such requests follow on_store_failure");
}

void align_clocks(RedisReport& report, const redis::ClockDifference& clock) {
  const auto apart = std::chrono::abs(clock.ahead);
  tell(report, "clock",
       in_milliseconds(apart) + (clock.ahead.count() < 0 ? " behind" : " ahead of") +
           " this host's, give or take " + in_milliseconds(clock.error));
  if (apart > kFarApart + clock.error)
    report.warnings.push_back(
        "the clocks are more than a second apart: limits in Redis follow its clock and stay exact, but "
        "limits in memory, logs and X-RateLimit-Reset follow this host's clock");
}

// Reports on the Redis key that stores the shared secret. weir uses that secret only if key_secret is not
// set.
void tell_secret(RedisReport& report, const redis::SecretState& look, const std::string& name) {
  using State = redis::SecretState::State;
  if (look.state == State::Foreign)
    report.faults.push_back(name + " holds " + look.what +
                            " instead of weir's secret (32 hexadecimal digits), so rules in Redis follow "
                            "on_store_failure; delete that key (redis-cli DEL " +
                            name + "), or set [state] key_secret on every instance");
  if (look.state == State::Unknown)
    report.warnings.push_back("this check could not read " + name + ": " + look.what);
}

void tell_settings(RedisReport& report, const redis::Inspection& found, const config::StateSettings& state) {
  tell(report, "prefix", state.redis->prefix);
  if (!state.key_secret.empty()) return tell(report, "key_secret", "set");
  const auto name = redis::secret_name(*state.redis);
  const bool absent = found.secret && found.secret->state == redis::SecretState::State::Absent;
  tell(report, "key_secret",
       "not set; instances share the secret in " + name + (absent ? ", which the first one creates" : ""));
  if (found.secret) tell_secret(report, *found.secret, name);
}

std::string heading(const base::Endpoint& address, const redis::RedisSettings& redis) {
  if (redis.topology == redis::Topology::Cluster) return "redis " + address.to_string() + " of a cluster\n";
  if (redis.topology == redis::Topology::Standalone) return "redis " + address.to_string() + "\n";
  const bool found = address.port != 0;
  return "redis " + redis.sentinel.master +
         (found ? ", at " + address.to_string() + " according to the sentinels"
                : ", which no sentinel knows") +
         "\n";
}

// Returns why the connection failed (`unreachable`), and which setting of the configuration to check.
std::string with_advice(const std::string& unreachable, const redis::RedisSettings& redis) {
  const auto says = [&](std::string_view words) { return unreachable.find(words) != std::string::npos; };
  if (says("WRONGPASS") || says("NOAUTH"))
    return unreachable + " (expected a user and password that it accepts: " +
           (says("sentinel") ? "sentinel_user and sentinel_password of [state.redis])"
                             : "username and password of [state.redis], or those in its url)");
  if (says("DB index"))
    return unreachable + " (expected a database that exists: url = \"redis://…/0\" of [state.redis])";
  if (says("max number of clients"))
    return unreachable + " (expected a free connection: raise maxclients of that Redis)";
  if (says("LOADING") || says("certificate")) return unreachable;  // the reason is clear without advice
  const auto* key = redis.topology == redis::Topology::Cluster    ? "nodes"
                    : redis.topology == redis::Topology::Sentinel ? "sentinels"
                                                                  : "url";
  return unreachable + " (expected a Redis where " + key + " of [state.redis] says)";
}

// Reports on one node of Redis. Returns false if the node does not answer.
bool tell_node(RedisReport& report, const redis::Inspection& found, const redis::RedisSettings& redis) {
  report.text += heading(found.address, redis);
  if (!found.unreachable.empty()) {
    tell(report, "reachable", "no");
    report.faults.push_back(with_advice(found.unreachable, redis));
    return false;
  }
  tell(report, "reachable",
       "yes, as " + (redis.user.empty() ? "the default user" : "user " + redis.user) +
           (redis.tls ? ", with TLS" : ""));
  tell_server(report, found.facts, redis.topology == redis::Topology::Cluster);
  tell_memory(report, found.facts);
  if (found.round_trips) tell_round_trips(report, *found.round_trips, redis.timeout);
  if (found.clock) align_clocks(report, *found.clock);
  return true;
}

// Returns a sentence about a command of this check that Redis refused. `denied`: the command and the error of
// Redis, such as "TIME: NOPERM …".
std::string not_asked(const std::string& denied) {
  const bool scripts_ask = denied.starts_with("TIME");
  return "this check was not allowed to read " + denied +
         (scripts_ask ? " (weir's scripts need this)" : " (weir itself does not need this)");
}

// Reports on another master of the cluster. Puts the node's address before each fault and warning.
void tell_other(RedisReport& report, const redis::Inspection& other, const redis::RedisSettings& redis) {
  RedisReport its;
  (void)tell_node(its, other, redis);
  report.text += its.text;
  const auto where = other.address.to_string() + ": ";
  for (const auto& fault : its.faults) report.faults.push_back(where + fault);
  for (const auto& warning : its.warnings) report.warnings.push_back(where + warning);
  for (const auto& obstacle : other.obstacles) report.faults.push_back(where + "scripts: " + obstacle);
  for (const auto& denied : other.denied) report.warnings.push_back(where + not_asked(denied));
}

}  // namespace

RedisReport report_on(const redis::Inspection& found, const config::StateSettings& state) {
  RedisReport report;
  const bool answers = tell_node(report, found, *state.redis);
  for (const auto& other : found.others) tell_other(report, other, *state.redis);
  if (found.unserved != 0)
    report.faults.push_back(
        std::to_string(found.unserved) +
        " slots of the cluster have no master: requests with keys in them follow on_store_failure");
  if (answers) tell(report, "scripts", found.obstacles.empty() ? "load, charge and refund" : "do not work");
  tell_settings(report, found, state);
  for (const auto& obstacle : found.obstacles) report.faults.push_back("scripts: " + obstacle);
  for (const auto& denied : found.denied) report.warnings.push_back(not_asked(denied));
  return report;
}

int run_redis_check(const config::Settings& settings, bool json) {
  const auto found = redis::inspect(*settings.state.redis, settings.state.key_secret.empty());
  const auto report = report_on(found, settings.state);
  std::cout << (json ? redis_check_json(found, settings.state) : report.text) << std::flush;
  for (const auto& warning : report.warnings) std::cerr << "weir: warning: " << warning << '\n';
  for (const auto& fault : report.faults) std::cerr << "weir: " << fault << '\n';
  return report.faults.empty() ? 0 : 1;
}

}  // namespace weir::cli
