// Makes configuration snapshots (weir/proxy/config_snapshot.hpp). A new snapshot reuses the parts that a
// reload does not change. These are server groups with the health of their servers, limiters, indexes of
// counters, and rule numbers in the key table.
//
// Also tracks each snapshot until no request uses it, and then frees the parts that no other snapshot uses.
// Program owns the object, which belongs to the main thread and must outlive the workers.
#pragma once

#include "server/counter_indexes.hpp"

#include "weir/base/result.hpp"
#include "weir/config/settings.hpp"
#include "weir/limit/adapt.hpp"
#include "weir/limit/key_table.hpp"
#include "weir/limit/saved.hpp"
#include "weir/limit/shared_limiter.hpp"
#include "weir/log/log.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/clock.hpp"
#include "weir/observe/counters.hpp"
#include "weir/proxy/config_snapshot.hpp"
#include "weir/upstream/services.hpp"

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::server {

class ConfigSnapshots {
 public:
  // `on_release` is called on the main thread each time the last request has released a snapshot. The other
  // arguments must outlive this object.
  ConfigSnapshots(net::asio::io_context& control, limit::KeyTable& table, const net::Clock& clock,
                  log::Log& log, std::function<void()> on_release);

  // A snapshot that is not in use yet.
  struct Draft {
    std::shared_ptr<proxy::ConfigSnapshot> config_snapshot;
    std::vector<std::string> changes;  // changes compared with the snapshot in use, in words
  };
  // Makes a snapshot from checked settings. `upstreams`: the upstreams of `settings`, with the addresses of
  // their servers. The error says why no snapshot can be made.
  [[nodiscard]] base::Result<Draft> make(const config::Settings& settings,
                                         std::vector<upstream::ResolvedUpstream> upstreams,
                                         const policy::NamingKeys& names);
  // Returns a copy of the snapshot in use with other keys for the names of clients.
  [[nodiscard]] Draft renamed(const policy::NamingKeys& names) const;
  // Returns a copy of the snapshot in use with other API keys.
  [[nodiscard]] Draft with_api_keys(const policy::ApiKeys& keys) const;
  // Returns a copy of the snapshot in use in which these upstreams have new TLS contexts, made from the
  // present files. Only new connections use them, and idle connections are not reused. The error says which
  // file is faulty, and why.
  [[nodiscard]] base::Result<Draft> with_tls_read_again(const std::vector<std::string>& upstreams) const;
  // Returns a copy of the snapshot in use in which this upstream has these servers. Servers that it had
  // before keep their state. The error says why the upstream's TLS files cannot be used.
  [[nodiscard]] base::Result<Draft> with_servers(const upstream::ResolvedUpstream& upstream) const;
  // Puts the draft into use, and registers its rules with the key table. The caller must pass the returned
  // snapshot to the workers.
  [[nodiscard]] std::shared_ptr<const proxy::ConfigSnapshot> activate(const Draft& draft);

  [[nodiscard]] const proxy::ConfigSnapshot& current() const noexcept { return *current_; }
  // Returns the configuration in use, which stays alive as long as the pointer exists.
  [[nodiscard]] std::shared_ptr<const proxy::Configuration> configuration() const noexcept {
    return {current_, &current_->config};
  }
  // Returns the number of snapshots that still exist, including the one in use.
  [[nodiscard]] std::size_t count() const noexcept { return uses_.size(); }
  [[nodiscard]] observe::Counters::Shape shape() const noexcept;
  [[nodiscard]] std::vector<std::string> route_names() const;
  [[nodiscard]] std::vector<std::string> upstream_names() const;
  // Returns the rules, indexed by their numbers in the key table (RuleIndex). If a number is unused, its rule
  // has an empty name.
  [[nodiscard]] std::vector<limit::SavedRule> saved_rules() const;

  // Returns the charge of a permit. `rule`: the rule's name. `key`: the key that holds the permit. Returns
  // nullopt if the snapshot in use has no such rule, or if the rule keeps no permits in the key table.
  [[nodiscard]] std::optional<limit::Charge> charge_for(std::string_view rule, const limit::Key& key) const;

  // Assigns a number to a rule of an earlier process, so that weir can restore the rule's keys. A callback
  // for limit::restore_snapshot().
  [[nodiscard]] std::optional<limit::RuleIndex> adopt(const limit::FormerRule& former);

  // Frees what no snapshot uses: indexes of counters, rule numbers, and keys of deleted rules. Clears the
  // counters of the freed indexes. `counters`: the counters of all workers. `elsewhere`: rule numbers that
  // another process still uses (limit::ForeignPermits::rules).
  void clean_up(const std::vector<observe::Counters*>& counters,
                const std::vector<limit::RuleIndex>& elsewhere = {});
  // The factors (granted shares of the limits) of rules that adapt. Requests of all snapshots read them.
  [[nodiscard]] limit::Factors& factors() noexcept { return factors_; }
  // Returns the number of different limits that weir has used since it started; at most
  // limit::Limiters::kMost.
  [[nodiscard]] std::size_t limits() const noexcept { return limiters_.size(); }

 private:
  // The indexes of counters and the rule numbers that one snapshot uses.
  struct IndexUse {
    const proxy::ConfigSnapshot* config_snapshot;
    std::vector<std::size_t> routes, upstreams;
    std::vector<limit::RuleIndex> rules, rule_numbers;
  };
  struct RuleVersion {  // one version of a rule; it has its own rule number in the key table
    std::optional<limit::SavedRule> rule;
    bool forgotten = false;
  };

  [[nodiscard]] base::Result<std::vector<policy::Rule>> settle(std::vector<policy::Rule> rules,
                                                               limit::Limiters& limiters,
                                                               std::vector<std::string>& changes);
  [[nodiscard]] std::optional<limit::RuleIndex> assign_rule_number(const policy::Rule& rule,
                                                                   std::vector<bool>& taken);
  void describe_change(const policy::Rule& rule, std::vector<std::string>& changes) const;
  // Returns the server group of upstream `name` in the snapshot in use; null if there is none.
  [[nodiscard]] const upstream::ServerGroup* server_group_named(const std::string& name) const;
  [[nodiscard]] std::shared_ptr<upstream::ServerGroup> server_group_of(
      const upstream::UpstreamSettings& settings, std::vector<upstream::Server> servers,
      std::vector<std::string>& changes);
  [[nodiscard]] std::shared_ptr<upstream::ServerGroup> make_server_group(
      const upstream::UpstreamSettings& settings, std::vector<upstream::Server> servers,
      const upstream::ServerGroup* older) const;
  void free_unused(const std::vector<observe::Counters*>& counters);
  void clean_up_rule_numbers(const std::vector<limit::RuleIndex>& elsewhere);
  void end(const proxy::ConfigSnapshot* config_snapshot);

  net::asio::io_context& control_;
  limit::KeyTable& table_;
  const net::Clock& clock_;
  log::Log& log_;
  std::function<void()> on_release_;
  limit::Limiters limiters_;
  limit::Factors factors_;
  // Rules that adopt() has stored. They are never freed, because the key table may still point to them.
  std::vector<limit::FormerRule> former_;
  CounterIndexes routes_{observe::Counters::kMostRoutes};
  CounterIndexes upstreams_{observe::Counters::kMostUpstreams};
  CounterIndexes rules_{limit::kMaxRules};
  std::vector<RuleVersion> rule_versions_;  // the index is a RuleIndex
  std::list<IndexUse> uses_;
  std::shared_ptr<const proxy::ConfigSnapshot> current_;
};

// Returns a line in the form of ConfigError for each difference that weir cannot apply while it runs.
[[nodiscard]] std::vector<std::string> find_unchangeable(const config::Settings& running,
                                                         const config::Settings& wanted,
                                                         const std::string& file);

}  // namespace weir::server
