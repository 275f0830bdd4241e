#include "server/editions.hpp"

#include "weir/config/settings_needs.hpp"
#include "weir/limit/rescale.hpp"
#include "weir/policy/saved_rule.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <utility>

#include <boost/asio/post.hpp>

namespace weir::app {

namespace {

// Visits all limiters of a rule, including those of its tiers and overrides.
template <class Visit>
bool for_each_limiter(policy::Rule& rule, Visit visit) {
  const auto visit_some = [&](std::optional<limit::SharedLimiter>& limiter) {
    return !limiter || visit(*limiter);
  };
  const auto visit_all = [&](auto& numbers) {
    return visit(numbers.limiter) && visit_some(numbers.local_share) && visit_some(numbers.soft) &&
           visit_some(numbers.soft_share) &&
           (!numbers.elastic ||
            (visit(numbers.elastic->limiter) && visit_some(numbers.elastic->local_share)));
  };
  bool all = visit_all(rule) && (!rule.messages || visit(rule.messages->limiter));
  for (auto& variant : rule.overrides) all = all && visit_all(variant);
  for (auto& variant : rule.tiers) all = all && visit_all(variant);
  return all;
}

limit::SavedRule saved(const policy::Rule& rule) {
  return std::move(policy::saved_rules({&rule, 1}).front());
}

const policy::Rule* find_rule(const std::vector<policy::Rule>& rules, const std::string& name) {
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const auto& rule) { return rule.name == name; });
  return found != rules.end() ? &*found : nullptr;
}

// Keeps the former order of a server's addresses, because name servers rotate them. A server that cannot be
// looked up now keeps its former addresses.
void keep_order(const proxy::Edition& current, const Settings& settings,
                std::vector<std::vector<upstream::Server>>& servers) {
  for (const auto& fleet : current.fleets)
    for (std::size_t j = 0; j < settings.upstreams.size(); ++j) {
      if (fleet->settings().name != settings.upstreams[j].name) continue;
      for (const auto& old : fleet->servers())
        for (auto& server : servers[j])
          if (server.name == old.name &&
              (server.addresses.empty() ||
               std::is_permutation(server.addresses.begin(), server.addresses.end(), old.addresses.begin(),
                                   old.addresses.end())))
            server = old;
    }
}

// Returns what the log must hide: identities of clients, and keys that select a server. A session ID is as
// good as a credential.
policy::Redaction redaction_of(const Settings& settings) {
  policy::Redaction redaction(settings.client);
  for (const auto& rule : settings.rules) redaction.hide(rule.key);
  for (const auto& upstream : settings.upstreams) redaction.hide(upstream.hash_key);
  return redaction;
}

}  // namespace

Editions::Editions(net::asio::io_context& control, limit::KeyTable& table, const net::Clock& clock, Log& log,
                   std::function<void()> gone)
    : control_(control),
      table_(table),
      clock_(clock),
      log_(log),
      gone_(std::move(gone)),
      readings_(limit::kMaxRules) {}

base::Result<Editions::Draft> Editions::make(const Settings& settings,
                                             std::vector<std::vector<upstream::Server>> servers,
                                             const policy::NamingKeys& names) {
  std::vector<std::string> changes;
  auto rules = settle(settings.rules, changes);
  if (!rules) return rules.error();
  if (current_) keep_order(*current_, settings, servers);
  auto edition = std::make_shared<proxy::Edition>();
  // Clients stay on their servers (`balance`) across restarts. Weirs that share nothing choose the same
  // servers too.
  edition->config = {.server = settings.server,
                     .client = settings.client,
                     .routes = settings.routes,
                     .tier_priorities = settings.tier_priorities,
                     .rules = std::move(*rules),
                     .elastic = asks_for_load(settings),
                     .inspects = asks_for_bodies(settings),
                     .settles = asks_for_answers(settings),
                     .redaction = redaction_of(settings),
                     .names = names,
                     .balance = settings.state.key_secret.empty() ? base::SipKey{} : names.shared,
                     .upstreams = settings.upstreams,
                     .route_labels = {},
                     .upstream_labels = {}};
  for (const auto& route : settings.routes) {
    const auto label = routes_.take(route.name);
    if (!label)
      return base::Error{"too many routes, with those that requests have not left yet; try again later"};
    edition->config.route_labels.push_back(*label);
  }
  for (std::size_t i = 0; i < settings.upstreams.size(); ++i) {
    const auto label = upstreams_.take(settings.upstreams[i].name);
    if (!label)
      return base::Error{"too many upstreams, with those that requests have not left yet; try again later"};
    edition->config.upstream_labels.push_back(*label);
    try {
      edition->fleets.push_back(fleet_of(settings.upstreams[i], std::move(servers[i]), changes));
    } catch (const std::exception& error) {  // from TLS settings
      return base::Error{error.what()};
    }
  }
  return Draft{std::move(edition), std::move(changes)};
}

// Returns the rules with the limiters and numbers that they keep, or with new ones.
base::Result<std::vector<policy::Rule>> Editions::settle(std::vector<policy::Rule> rules,
                                                         std::vector<std::string>& changes) {
  std::vector<bool> taken(limit::kMaxRules);
  for (std::size_t i = 0; i < taken.size(); ++i) taken[i] = readings_[i].rule.has_value();
  for (auto& rule : rules) {
    if (!for_each_limiter(rule, [&](limit::SharedLimiter& limiter) { return limiters_.settle(limiter); }))
      return base::Error{"too many different limits since weir began; weir upgrade begins anew"};
    const auto label = rules_.take(rule.name);
    const auto cells = place_cells(rule, taken);
    if (!label || !cells)
      return base::Error{
          "too many rules, with earlier ones whose keys are remembered still; try again later, or "
          "restart weir"};
    rule.index = static_cast<limit::RuleIndex>(*label);
    rule.cells = *cells;
    tell_change(rule, changes);
  }
  if (current_)
    for (const auto& rule : current_->config.rules)
      if (find_rule(rules, rule.name) == nullptr) changes.push_back("rule \"" + rule.name + "\" removed");
  return rules;
}

// Returns the number under which the rule's keys count. A rule that starts afresh gets a new number. Refunds
// and releases for the old number then cannot reach the new state.
std::optional<limit::RuleIndex> Editions::place_cells(const policy::Rule& rule, std::vector<bool>& taken) {
  const auto wanted = saved(rule);
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    const auto index = static_cast<limit::RuleIndex>(i);
    if (readings_[i].rule && readings_[i].rule->counts_as(wanted) && table_.goes_on(index)) return index;
  }
  const auto free = std::find(taken.begin(), taken.end(), false);
  if (free == taken.end()) return std::nullopt;
  *free = true;
  return static_cast<limit::RuleIndex>(free - taken.begin());
}

void Editions::tell_change(const policy::Rule& rule, std::vector<std::string>& changes) const {
  if (!current_) return;
  const auto name = "rule \"" + rule.name + "\"";
  const auto* before = find_rule(current_->config.rules, rule.name);
  if (before == nullptr) return changes.push_back(name + " added");
  if (before->key != rule.key)
    changes.push_back(name + " counts by other keys: clients that are named otherwise begin anew");
  if (before->store != rule.store)
    changes.push_back(name + " keeps its state elsewhere: clients begin anew there");
  if (saved(*before).reads(saved(rule))) return;
  if (!limit::rescales(before->limiter, rule.limiter))
    changes.push_back(name + " has another algorithm: its clients begin anew");
  else if (rule.store == policy::Store::Redis)
    changes.push_back(name + " has other limits: what Redis knows of its clients stays as it is");
  else
    changes.push_back(name + " has other limits: its clients keep the share that they have used");
}

std::shared_ptr<upstream::Fleet> Editions::fleet_of(const upstream::UpstreamSettings& settings,
                                                    std::vector<upstream::Server> servers,
                                                    std::vector<std::string>& changes) {
  const upstream::Fleet* older = nullptr;
  if (current_)
    for (const auto& fleet : current_->fleets) {
      if (fleet->settings().name != settings.name) continue;
      if (fleet->settings() == settings && fleet->servers() == servers) return fleet;
      older = fleet.get();
    }
  if (current_)
    changes.push_back("upstream \"" + settings.name + (older != nullptr ? "\" changed" : "\" added"));
  return make_fleet(settings, std::move(servers), older);
}

std::shared_ptr<upstream::Fleet> Editions::make_fleet(const upstream::UpstreamSettings& settings,
                                                      std::vector<upstream::Server> servers,
                                                      const upstream::Fleet* older) const {
  return std::make_shared<upstream::Fleet>(
      settings, std::move(servers), [&log = log_](const std::string& change) { log.warning(change); }, older);
}

// Makes new server groups. They have new pools, so no connection remains that an old authority vouched for.
base::Result<Editions::Draft> Editions::with_tls_read_again(const std::vector<std::string>& upstreams) const {
  auto edition = std::make_shared<proxy::Edition>(*current_);
  for (auto& fleet : edition->fleets) {
    if (std::find(upstreams.begin(), upstreams.end(), fleet->settings().name) == upstreams.end()) continue;
    try {
      fleet = make_fleet(fleet->settings(), fleet->servers(), fleet.get());
    } catch (const std::exception& error) {
      return base::Error{error.what()};
    }
  }
  return Draft{std::move(edition), {}};
}

Editions::Draft Editions::renamed(const policy::NamingKeys& names) const {
  auto edition = std::make_shared<proxy::Edition>(*current_);
  edition->config.names = names;
  edition->config.names_agreed = true;
  return {std::move(edition), {}};
}

// The main thread frees a snapshot, whichever worker is the last to release it.
std::shared_ptr<const proxy::Edition> Editions::put_in_force(const Draft& draft) {
  const auto& config = draft.edition->config;
  for (const auto& rule : config.rules) {
    readings_[rule.cells] = {saved(rule), false};
    table_.introduce(rule.cells, *readings_[rule.cells].rule, clock_.now());
  }
  Use use{.edition = draft.edition.get(),
          .routes = config.route_labels,
          .upstreams = config.upstream_labels,
          .rules = {},
          .cells = {}};
  for (const auto& rule : config.rules) {
    use.rules.push_back(rule.index);
    use.cells.push_back(rule.cells);
  }
  live_.push_back(std::move(use));
  current_ = std::shared_ptr<const proxy::Edition>(
      draft.edition.get(),
      [this, &control = control_, owner = draft.edition](const proxy::Edition* edition) mutable {
        net::asio::post(control, [this, edition, last = std::move(owner)]() mutable {
          last.reset();
          end(edition);
        });
      });
  return current_;
}

void Editions::end(const proxy::Edition* edition) {
  live_.remove_if([&](const Use& use) { return use.edition == edition; });
  gone_();
}

observe::Counters::Shape Editions::shape() const noexcept {
  return {.routes = routes_.names().size(),
          .rules = rules_.names().size(),
          .upstreams = upstreams_.names().size()};
}

std::vector<std::string> Editions::route_names() const {
  std::vector<std::string> names(routes_.names().size());
  for (std::size_t i = 0; i < current_->config.routes.size(); ++i)
    names[current_->config.route_labels[i]] = current_->config.routes[i].name;
  return names;
}

std::vector<std::string> Editions::upstream_names() const {
  std::vector<std::string> names(upstreams_.names().size());
  for (std::size_t i = 0; i < current_->config.upstreams.size(); ++i)
    names[current_->config.upstream_labels[i]] = current_->config.upstreams[i].name;
  return names;
}

// Omits the variants of a rule that has started afresh: it is unknown which keys belong to them.
std::vector<limit::SavedRule> Editions::saved_rules() const {
  std::vector<limit::SavedRule> rules;
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    const auto& reading = readings_[i];
    auto& rule = rules.emplace_back(reading.rule && !reading.forgotten ? *reading.rule : limit::SavedRule{});
    if (!table_.goes_on(static_cast<limit::RuleIndex>(i)))
      for (auto& variant : rule.variants) variant = {variant.name, 0, variant.ledger, nullptr};
  }
  return rules;
}

// Takes the first limiter that counts concurrent requests, because permits of all such limiters are alike.
std::optional<limit::Charge> Editions::place_of(std::string_view rule, const limit::Key& key) const {
  const auto& rules = current_->config.rules;
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const auto& one) { return one.name == rule; });
  if (found == rules.end() || !readings_[found->cells].rule) return std::nullopt;
  for (const auto& variant : readings_[found->cells].rule->variants)
    if (variant.limiter != nullptr && limit::holds(*variant.limiter))
      return limit::Charge{
          .key = key, .limiter = variant.limiter, .rule = found->cells, .ledger = variant.ledger};
  return std::nullopt;
}

// Keys of the former rule move to the present one when a request meets them, as after a reload.
std::optional<limit::RuleIndex> Editions::adopt(const limit::FormerRule& former) {
  const auto free = std::find_if(readings_.begin(), readings_.end(),
                                 [](const Reading& reading) { return !reading.rule.has_value(); });
  if (free == readings_.end()) return std::nullopt;
  const auto index = static_cast<limit::RuleIndex>(free - readings_.begin());
  if (!table_.introduce_former(index, former.rule)) return std::nullopt;
  former_.push_back(former);
  *free = {former.rule, false};
  return index;
}

void Editions::tidy(const std::vector<observe::Counters*>& counters,
                    const std::vector<limit::RuleIndex>& elsewhere) {
  free_unused(counters);
  tidy_cells(elsewhere);
}

void Editions::free_unused(const std::vector<observe::Counters*>& counters) {
  const auto free = [&](Labels& labels, auto used, auto clear) {
    std::vector<bool> taken(labels.names().size());
    for (const auto& use : live_)
      for (const auto label : used(use)) taken[label] = true;
    for (std::size_t label = 0; label < taken.size(); ++label) {
      if (taken[label] || labels.names()[label].empty()) continue;
      labels.free(label);
      for (auto* each : counters) clear(*each, label);
    }
  };
  free(
      routes_, [](const Use& use) -> auto& { return use.routes; },
      [](observe::Counters& each, std::size_t label) { each.clear_route(label); });
  free(
      upstreams_, [](const Use& use) -> auto& { return use.upstreams; },
      [](observe::Counters& each, std::size_t label) { each.clear_upstream(label); });
  free(
      rules_, [](const Use& use) -> auto& { return use.rules; },
      [](observe::Counters& each, std::size_t label) {
        each.clear_rule(static_cast<limit::RuleIndex>(label));
      });
}

// Forgets the keys of rules that no longer exist. Keys under old numbers move. A number without keys becomes
// free.
void Editions::tidy_cells(const std::vector<limit::RuleIndex>& elsewhere) {
  std::vector<bool> used(limit::kMaxRules);
  for (const auto cells : elsewhere) used[cells] = true;
  for (const auto& use : live_)
    for (const auto cells : use.cells) used[cells] = true;
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    auto& reading = readings_[i];
    if (!reading.rule || used[i] || find_rule(current_->config.rules, reading.rule->name) != nullptr)
      continue;
    reading.forgotten = true;
    table_.forget(static_cast<limit::RuleIndex>(i));
  }
  table_.put_in_order(clock_.now());
  const auto keys = table_.stats().keys_by_rule;
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    if (!readings_[i].rule || used[i] || keys[i] != 0) continue;
    readings_[i] = {};
    table_.retire(static_cast<limit::RuleIndex>(i));
  }
}

}  // namespace weir::app
