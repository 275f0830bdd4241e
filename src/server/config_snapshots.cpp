#include "server/config_snapshots.hpp"

#include "weir/config/settings_needs.hpp"
#include "weir/limit/rescale.hpp"
#include "weir/policy/inspection.hpp"
#include "weir/policy/saved_rule.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <utility>

#include <boost/asio/post.hpp>

namespace weir::server {

namespace {

limit::SavedRule saved(const policy::Rule& rule) {
  return std::move(policy::saved_rules({&rule, 1}).front());
}

const policy::Rule* find_rule(const std::vector<policy::Rule>& rules, const std::string& name) {
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const auto& rule) { return rule.name == name; });
  return found != rules.end() ? &*found : nullptr;
}

// Returns which requests get tracing spans; nullopt if weir exports no spans.
std::optional<observe::Sampling> sampling_of(const config::Settings& settings) {
  return settings.tracing ? std::optional(settings.tracing->sampling) : std::nullopt;
}

// Returns which values the log must hide: identities of clients, and keys that select a server. A session ID,
// for example, is as secret as a password.
policy::Redaction redaction_of(const config::Settings& settings) {
  policy::Redaction redaction(settings.client);
  for (const auto& rule : settings.rules) redaction.hide(rule.key);
  for (const auto& upstream : settings.upstreams) redaction.hide(upstream.hash_key);
  return redaction;
}

}  // namespace

ConfigSnapshots::ConfigSnapshots(net::asio::io_context& control, limit::KeyTable& table,
                                 const net::Clock& clock, log::Log& log, std::function<void()> on_release)
    : control_(control),
      table_(table),
      clock_(clock),
      log_(log),
      on_release_(std::move(on_release)),
      rule_versions_(limit::kMaxRules) {}

base::Result<ConfigSnapshots::Draft> ConfigSnapshots::make(const config::Settings& settings,
                                                           std::vector<upstream::ResolvedUpstream> upstreams,
                                                           const policy::NamingKeys& names) {
  std::vector<std::string> changes;
  auto limiters = limiters_;  // a copy, so that a refused configuration adds no limiter
  auto rules = settle(settings.rules, limiters, changes);
  if (!rules) return rules.error();
  for (auto& upstream : upstreams)
    if (const auto* before = server_group_named(upstream.settings.name)) keep_known(upstream, *before);
  auto config_snapshot = std::make_shared<proxy::ConfigSnapshot>();
  config_snapshot->config = {.server = settings.server,
                             .cors = settings.cors,
                             .client = settings.client,
                             .routes = settings.routes,
                             .route_finder = {},
                             .tier_priorities = settings.tier_priorities,
                             .rules = std::move(*rules),
                             .rule_finder = {},
                             .elastic = config::asks_for_load(settings),
                             .factors = &factors_,
                             .inspects = config::asks_for_bodies(settings),
                             .body_names = policy::body_names(settings.rules),
                             .certificates = config::asks_for_certificates(settings),
                             .settles = config::asks_for_answers(settings),
                             .tracing = sampling_of(settings),
                             .redaction = redaction_of(settings),
                             .names = names,
                             // The secret key of the hash by which an upstream chooses a server for a client.
                             // Zero without key_secret, so that a restart does not change the choice.
                             .balance = settings.state.key_secret.empty() ? base::SipKey{} : names.shared,
                             .upstreams = {},
                             .route_indexes = {},
                             .upstream_indexes = {}};
  config_snapshot->config.rule_finder = policy::RuleFinder(config_snapshot->config.rules);
  config_snapshot->config.route_finder = policy::RouteFinder(config_snapshot->config.routes);
  for (const auto& route : settings.routes) {
    const auto index = routes_.take(route.name);
    if (!index)
      return base::Error{"too many routes, including old ones that requests still use; try again later"};
    config_snapshot->config.route_indexes.push_back(*index);
  }
  for (auto& upstream : upstreams) {
    const auto index = upstreams_.take(upstream.settings.name);
    if (!index)
      return base::Error{"too many upstreams, including old ones that requests still use; try again later"};
    config_snapshot->config.upstream_indexes.push_back(*index);
    try {
      config_snapshot->server_groups.push_back(
          server_group_of(upstream.settings, std::move(upstream.servers), changes));
    } catch (const std::exception& error) {  // thrown if TLS settings are faulty
      return base::Error{error.what()};
    }
    config_snapshot->config.upstreams.push_back(std::move(upstream.settings));
  }
  limiters_ = std::move(limiters);
  return Draft{std::move(config_snapshot), std::move(changes)};
}

// Returns the rules with their limiters and rule numbers. An unchanged rule keeps its limiters and its
// number.
base::Result<std::vector<policy::Rule>> ConfigSnapshots::settle(std::vector<policy::Rule> rules,
                                                                limit::Limiters& limiters,
                                                                std::vector<std::string>& changes) {
  std::vector<bool> taken(limit::kMaxRules);
  for (std::size_t i = 0; i < taken.size(); ++i) taken[i] = rule_versions_[i].rule.has_value();
  for (auto& rule : rules) {
    for (auto* limiter : policy::all_limiters(rule))
      if (!limiters.settle(*limiter))
        return base::Error{"too many different limits since weir started: more than " +
                           std::to_string(limit::Limiters::kMost) +
                           " (with adapt each limit counts as 20, and in Redis as 40); write fewer, or run "
                           "weir upgrade and then reload"};
    const auto index = rules_.take(rule.name);
    const auto rule_number = assign_rule_number(rule, taken);
    if (!index || !rule_number)
      return base::Error{
          "too many rules, including old ones whose keys are still in the table; try again later, or restart "
          "weir"};
    rule.index = static_cast<limit::RuleIndex>(*index);
    rule.rule_number = *rule_number;
    describe_change(rule, changes);
  }
  if (current_)
    for (const auto& rule : current_->config.rules)
      if (find_rule(rules, rule.name) == nullptr) changes.push_back("rule \"" + rule.name + "\" removed");
  return rules;
}

// Returns the rule's number in the key table. A rule that starts with an empty counter gets a new number. So
// refunds and releases for the old number cannot change the new counter.
std::optional<limit::RuleIndex> ConfigSnapshots::assign_rule_number(const policy::Rule& rule,
                                                                    std::vector<bool>& taken) {
  const auto wanted = saved(rule);
  for (std::size_t i = 0; i < rule_versions_.size(); ++i) {
    const auto index = static_cast<limit::RuleIndex>(i);
    if (rule_versions_[i].rule && rule_versions_[i].rule->counts_as(wanted) && table_.is_current(index))
      return index;
  }
  const auto free = std::find(taken.begin(), taken.end(), false);
  if (free == taken.end()) return std::nullopt;
  *free = true;
  return static_cast<limit::RuleIndex>(free - taken.begin());
}

void ConfigSnapshots::describe_change(const policy::Rule& rule, std::vector<std::string>& changes) const {
  if (!current_) return;
  const auto name = "rule \"" + rule.name + "\"";
  const auto* before = find_rule(current_->config.rules, rule.name);
  if (before == nullptr) return changes.push_back(name + " added");
  if (before->key != rule.key)
    changes.push_back(name + " has another key: clients with another key start with an empty counter");
  if (before->store != rule.store)
    changes.push_back(name + " has another store: its clients start with an empty counter");
  if (before->adapt != rule.adapt)
    changes.push_back(name + " has another adapt: it starts with its whole limit");
  if (saved(*before).reads(saved(rule))) return;
  if (!limit::rescales(before->limiter, rule.limiter))
    changes.push_back(name + " has another algorithm: its clients start with an empty counter");
  else if (rule.store == policy::Store::Redis)
    changes.push_back(name + " has other limits: its state in Redis is unchanged");
  else if (limit::changes_align(before->limiter, rule.limiter))
    changes.push_back(name + " has another align: its clients keep the count that they have used");
  else
    changes.push_back(name + " has other limits: its clients keep the share that they have used");
}

const upstream::ServerGroup* ConfigSnapshots::server_group_named(const std::string& name) const {
  if (!current_) return nullptr;
  for (const auto& server_group : current_->server_groups)
    if (server_group->settings().name == name) return server_group.get();
  return nullptr;
}

std::shared_ptr<upstream::ServerGroup> ConfigSnapshots::server_group_of(
    const upstream::UpstreamSettings& settings, std::vector<upstream::Server> servers,
    std::vector<std::string>& changes) {
  const upstream::ServerGroup* older = nullptr;
  if (current_)
    for (const auto& server_group : current_->server_groups) {
      if (server_group->settings().name != settings.name) continue;
      if (server_group->settings() == settings && server_group->servers() == servers) return server_group;
      older = server_group.get();
    }
  if (current_)
    changes.push_back("upstream \"" + settings.name + (older != nullptr ? "\" changed" : "\" added"));
  return make_server_group(settings, std::move(servers), older);
}

std::shared_ptr<upstream::ServerGroup> ConfigSnapshots::make_server_group(
    const upstream::UpstreamSettings& settings, std::vector<upstream::Server> servers,
    const upstream::ServerGroup* older) const {
  return std::make_shared<upstream::ServerGroup>(
      settings, std::move(servers), [&log = log_](const std::string& change) { log.warning(change); }, older);
}

// Makes new server groups for these upstreams. The new groups have new connection pools, so connections that
// were verified with the old files are not reused.
base::Result<ConfigSnapshots::Draft> ConfigSnapshots::with_tls_read_again(
    const std::vector<std::string>& upstreams) const {
  auto config_snapshot = std::make_shared<proxy::ConfigSnapshot>(*current_);
  for (auto& server_group : config_snapshot->server_groups) {
    if (std::find(upstreams.begin(), upstreams.end(), server_group->settings().name) == upstreams.end())
      continue;
    try {
      server_group = make_server_group(server_group->settings(), server_group->servers(), server_group.get());
    } catch (const std::exception& error) {
      return base::Error{error.what()};
    }
  }
  return Draft{std::move(config_snapshot), {}};
}

base::Result<ConfigSnapshots::Draft> ConfigSnapshots::with_servers(
    const upstream::ResolvedUpstream& upstream) const {
  auto config_snapshot = std::make_shared<proxy::ConfigSnapshot>(*current_);
  for (std::size_t i = 0; i < config_snapshot->server_groups.size(); ++i) {
    auto& server_group = config_snapshot->server_groups[i];
    if (server_group->settings().name != upstream.settings.name) continue;
    try {
      server_group = make_server_group(upstream.settings, upstream.servers, server_group.get());
    } catch (const std::exception& error) {
      return base::Error{error.what()};
    }
    config_snapshot->config.upstreams[i] = upstream.settings;
  }
  return Draft{std::move(config_snapshot), {}};
}

ConfigSnapshots::Draft ConfigSnapshots::renamed(const policy::NamingKeys& names) const {
  auto config_snapshot = std::make_shared<proxy::ConfigSnapshot>(*current_);
  config_snapshot->config.names = names;
  config_snapshot->config.names_agreed = true;
  return {std::move(config_snapshot), {}};
}

ConfigSnapshots::Draft ConfigSnapshots::with_api_keys(const policy::ApiKeys& keys) const {
  auto config_snapshot = std::make_shared<proxy::ConfigSnapshot>(*current_);
  config_snapshot->config.client.keys = keys;
  return {std::move(config_snapshot), {}};
}

// Returns the new snapshot in a pointer whose deleter posts to the main thread. So the main thread frees the
// snapshot, although any worker may release it last.
std::shared_ptr<const proxy::ConfigSnapshot> ConfigSnapshots::activate(const Draft& draft) {
  const auto& config = draft.config_snapshot->config;
  std::vector<limit::KeyTable::DefinedRule> defined;
  for (const auto& rule : config.rules) {
    rule_versions_[rule.rule_number] = {saved(rule), false};
    defined.push_back({rule.rule_number, *rule_versions_[rule.rule_number].rule});
  }
  table_.define_rules(defined, clock_.now());
  for (const auto& server_group : draft.config_snapshot->server_groups)
    for (std::size_t at = 0; at < server_group->size(); ++at) {
      const auto& member = server_group->member(at);
      member.control()->settle_weight(member.settings().weight);
    }
  IndexUse use{.config_snapshot = draft.config_snapshot.get(),
               .routes = config.route_indexes,
               .upstreams = config.upstream_indexes,
               .rules = {},
               .rule_numbers = {}};
  for (const auto& rule : config.rules) {
    use.rules.push_back(rule.index);
    use.rule_numbers.push_back(rule.rule_number);
  }
  uses_.push_back(std::move(use));
  current_ = std::shared_ptr<const proxy::ConfigSnapshot>(
      draft.config_snapshot.get(), [this, &control = control_, owner = draft.config_snapshot](
                                       const proxy::ConfigSnapshot* config_snapshot) mutable {
        net::asio::post(control, [this, config_snapshot, last = std::move(owner)]() mutable {
          last.reset();
          end(config_snapshot);
        });
      });
  return current_;
}

void ConfigSnapshots::end(const proxy::ConfigSnapshot* config_snapshot) {
  uses_.remove_if([&](const IndexUse& use) { return use.config_snapshot == config_snapshot; });
  on_release_();
}

observe::Counters::Shape ConfigSnapshots::shape() const noexcept {
  return {.routes = routes_.names().size(),
          .rules = rules_.names().size(),
          .upstreams = upstreams_.names().size()};
}

std::vector<std::string> ConfigSnapshots::route_names() const {
  std::vector<std::string> names(routes_.names().size());
  for (std::size_t i = 0; i < current_->config.routes.size(); ++i)
    names[current_->config.route_indexes[i]] = current_->config.routes[i].name;
  return names;
}

std::vector<std::string> ConfigSnapshots::upstream_names() const {
  std::vector<std::string> names(upstreams_.names().size());
  for (std::size_t i = 0; i < current_->config.upstreams.size(); ++i)
    names[current_->config.upstream_indexes[i]] = current_->config.upstreams[i].name;
  return names;
}

// Returns each version of each rule, indexed by rule number. If a newer version has reset the keys of an old
// version, the variants (limits) of the old version have no limiters in the result. So a process
// that restores these keys starts them with nothing used.
std::vector<limit::SavedRule> ConfigSnapshots::saved_rules() const {
  std::vector<limit::SavedRule> rules;
  for (std::size_t i = 0; i < rule_versions_.size(); ++i) {
    const auto& version = rule_versions_[i];
    auto& rule = rules.emplace_back(version.rule && !version.forgotten ? *version.rule : limit::SavedRule{});
    if (!table_.is_current(static_cast<limit::RuleIndex>(i)))
      for (auto& variant : rule.variants) variant = {variant.name, 0, variant.limiter_id, nullptr};
  }
  while (!rules.empty() && rules.back().name.empty()) rules.pop_back();
  return rules;
}

// A rule has a limiter for itself and for each tier and override. `key` belongs to one of them. The charge
// names the first limiter that counts concurrent requests, because a permit in a slot of the table is counted
// in the same way by all of them. If the table has no slot for the key, the permit counts in the overflow
// cell of that first limiter. This is wrong for a key of another limiter (docs/limitations.md, "Shared
// cells").
std::optional<limit::Charge> ConfigSnapshots::charge_for(std::string_view rule, const limit::Key& key) const {
  const auto& rules = current_->config.rules;
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const auto& one) { return one.name == rule; });
  if (found == rules.end() || !rule_versions_[found->rule_number].rule) return std::nullopt;
  for (const auto& variant : rule_versions_[found->rule_number].rule->variants)
    if (variant.limiter != nullptr && limit::holds(*variant.limiter))
      return limit::Charge{.key = key,
                           .limiter = variant.limiter,
                           .rule = found->rule_number,
                           .limiter_id = variant.limiter_id};
  return std::nullopt;
}

// Stores the rule of an earlier process under a free rule number. Returns nullopt if no number is free,
// or if no present rule takes over keys of the earlier rule. A key of the earlier rule moves to the present
// rule when a request for the key arrives, as after a reload.
std::optional<limit::RuleIndex> ConfigSnapshots::adopt(const limit::FormerRule& former) {
  const auto free = std::find_if(rule_versions_.begin(), rule_versions_.end(),
                                 [](const RuleVersion& version) { return !version.rule.has_value(); });
  if (free == rule_versions_.end()) return std::nullopt;
  const auto index = static_cast<limit::RuleIndex>(free - rule_versions_.begin());
  if (!table_.define_former_rule(index, former.rule)) return std::nullopt;
  former_.push_back(former);
  *free = {former.rule, false};
  return index;
}

void ConfigSnapshots::clean_up(const std::vector<observe::Counters*>& counters,
                               const std::vector<limit::RuleIndex>& elsewhere) {
  free_unused(counters);
  clean_up_rule_numbers(elsewhere);
}

void ConfigSnapshots::free_unused(const std::vector<observe::Counters*>& counters) {
  const auto free = [&](CounterIndexes& indexes, auto used, auto clear) {
    std::vector<bool> taken(indexes.names().size());
    for (const auto& use : uses_)
      for (const auto index : used(use)) taken[index] = true;
    for (std::size_t index = 0; index < taken.size(); ++index) {
      if (taken[index] || indexes.names()[index].empty()) continue;
      indexes.free(index);
      for (auto* each : counters) clear(*each, index);
    }
  };
  free(
      routes_, [](const IndexUse& use) -> auto& { return use.routes; },
      [](observe::Counters& each, std::size_t index) { each.clear_route(index); });
  free(
      upstreams_, [](const IndexUse& use) -> auto& { return use.upstreams; },
      [](observe::Counters& each, std::size_t index) { each.clear_upstream(index); });
  free(
      rules_, [](const IndexUse& use) -> auto& { return use.rules; },
      [](observe::Counters& each, std::size_t index) {
        each.clear_rule(static_cast<limit::RuleIndex>(index));
      });
}

// Deletes the keys of rules that no longer exist, and moves keys from old rule numbers to present ones. Frees
// rule numbers without keys.
void ConfigSnapshots::clean_up_rule_numbers(const std::vector<limit::RuleIndex>& elsewhere) {
  std::vector<bool> used(limit::kMaxRules);
  for (const auto number : elsewhere) used[number] = true;
  for (const auto& use : uses_)
    for (const auto number : use.rule_numbers) used[number] = true;
  std::vector<limit::RuleIndex> forgotten;
  for (std::size_t i = 0; i < rule_versions_.size(); ++i) {
    auto& version = rule_versions_[i];
    if (!version.rule || used[i] || find_rule(current_->config.rules, version.rule->name) != nullptr)
      continue;
    version.forgotten = true;
    forgotten.push_back(static_cast<limit::RuleIndex>(i));
  }
  table_.forget_rules(forgotten);
  table_.migrate_cells(clock_.now());
  const auto keys = table_.stats().keys_by_rule;
  std::vector<limit::RuleIndex> retired;
  for (std::size_t i = 0; i < rule_versions_.size(); ++i) {
    if (!rule_versions_[i].rule || used[i] || keys[i] != 0) continue;
    rule_versions_[i] = {};
    retired.push_back(static_cast<limit::RuleIndex>(i));
  }
  table_.retire_rules(retired);
}

}  // namespace weir::server
