// Makes configuration snapshots (weir/proxy/config_snapshot.hpp). A reload keeps whatever it does not change:
// server groups and the condition of servers, limiters, labels of counters, and the numbers of the table's
// keys.
//
// Also tracks each snapshot until no request uses it, and frees what only that snapshot used. Belongs to the
// main thread. Outlives the workers.
#pragma once

#include "server/labels.hpp"

#include "weir/base/result.hpp"
#include "weir/config/settings.hpp"
#include "weir/limit/key_table.hpp"
#include "weir/limit/saved.hpp"
#include "weir/limit/shared_limiter.hpp"
#include "weir/log/log.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/clock.hpp"
#include "weir/observe/counters.hpp"
#include "weir/proxy/config_snapshot.hpp"

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
  // `gone` runs on the main thread after the last request has released a snapshot.
  ConfigSnapshots(net::asio::io_context& control, limit::KeyTable& table, const net::Clock& clock,
                  log::Log& log, std::function<void()> gone);

  struct Draft {
    std::shared_ptr<proxy::ConfigSnapshot> config_snapshot;
    std::vector<std::string> changes;  // in words
  };
  // Makes a snapshot of checked settings with looked-up servers. The snapshot is not in use yet. The error
  // says why none can be made.
  [[nodiscard]] base::Result<Draft> make(const config::Settings& settings,
                                         std::vector<std::vector<upstream::Server>> servers,
                                         const policy::NamingKeys& names);
  // Returns a copy of the current snapshot with other keys for clients' names.
  [[nodiscard]] Draft renamed(const policy::NamingKeys& names) const;
  // Returns a copy of the current snapshot with the TLS files of these upstreams read again. Only new
  // connections use them, and idle connections are not reused. The error names the file and its fault.
  [[nodiscard]] base::Result<Draft> with_tls_read_again(const std::vector<std::string>& upstreams) const;
  // Makes the draft current and registers its rules with the table. The caller hands it to the workers.
  [[nodiscard]] std::shared_ptr<const proxy::ConfigSnapshot> put_in_force(const Draft& draft);

  [[nodiscard]] const proxy::ConfigSnapshot& current() const noexcept { return *current_; }
  // Returns the current configuration, which stays alive while the pointer exists.
  [[nodiscard]] std::shared_ptr<const proxy::Configuration> configuration() const noexcept {
    return {current_, &current_->config};
  }
  // Returns the number of live snapshots, including the current one.
  [[nodiscard]] std::size_t count() const noexcept { return live_.size(); }
  [[nodiscard]] observe::Counters::Shape shape() const noexcept;
  [[nodiscard]] std::vector<std::string> route_names() const;
  [[nodiscard]] std::vector<std::string> upstream_names() const;
  // Returns the rules by the numbers of the table's keys. Unused numbers have an empty name.
  [[nodiscard]] std::vector<limit::SavedRule> saved_rules() const;

  // Returns a charge for a permit of the rule in the current snapshot. Nullopt if there is no such rule, or
  // if it holds no permits in the table.
  [[nodiscard]] std::optional<limit::Charge> charge_for(std::string_view rule, const limit::Key& key) const;

  // Registers a rule of an earlier process whose keys are restored. For limit::restore_snapshot().
  [[nodiscard]] std::optional<limit::RuleIndex> adopt(const limit::FormerRule& former);

  // Frees what no snapshot uses, and clears its counters in `counters`, which has those of all workers.
  // `elsewhere`: rule numbers that another process still uses (limit::ForeignPermits::rules).
  void tidy(const std::vector<observe::Counters*>& counters,
            const std::vector<limit::RuleIndex>& elsewhere = {});
  // Returns the number of different limits since the start, at most limit::Limiters::kMost.
  [[nodiscard]] std::size_t limits() const noexcept { return limiters_.size(); }

 private:
  // The numbers that one snapshot uses.
  struct Use {
    const proxy::ConfigSnapshot* config_snapshot;
    std::vector<std::size_t> routes, upstreams;
    std::vector<limit::RuleIndex> rules, cells;
  };
  struct CellVersion {  // state of a rule number
    std::optional<limit::SavedRule> rule;
    bool forgotten = false;
  };

  [[nodiscard]] base::Result<std::vector<policy::Rule>> settle(std::vector<policy::Rule> rules,
                                                               std::vector<std::string>& changes);
  [[nodiscard]] std::optional<limit::RuleIndex> place_cells(const policy::Rule& rule,
                                                            std::vector<bool>& taken);
  void tell_change(const policy::Rule& rule, std::vector<std::string>& changes) const;
  [[nodiscard]] std::shared_ptr<upstream::ServerGroup> server_group_of(
      const upstream::UpstreamSettings& settings, std::vector<upstream::Server> servers,
      std::vector<std::string>& changes);
  [[nodiscard]] std::shared_ptr<upstream::ServerGroup> make_server_group(
      const upstream::UpstreamSettings& settings, std::vector<upstream::Server> servers,
      const upstream::ServerGroup* older) const;
  void free_unused(const std::vector<observe::Counters*>& counters);
  void tidy_cells(const std::vector<limit::RuleIndex>& elsewhere);
  void end(const proxy::ConfigSnapshot* config_snapshot);

  net::asio::io_context& control_;
  limit::KeyTable& table_;
  const net::Clock& clock_;
  log::Log& log_;
  std::function<void()> gone_;
  limit::Limiters limiters_;
  std::vector<limit::FormerRule> former_;  // adopted; never freed, because the table may still point to them
  Labels routes_{observe::Counters::kMostRoutes};
  Labels upstreams_{observe::Counters::kMostUpstreams};
  Labels rules_{limit::kMaxRules};
  std::vector<CellVersion> cell_versions_;  // by RuleIndex
  std::list<Use> live_;
  std::shared_ptr<const proxy::ConfigSnapshot> current_;
};

// Returns the differences that cannot change while weir runs, one line each in the form of ConfigError.
[[nodiscard]] std::vector<std::string> find_unchangeable(const config::Settings& running,
                                                         const config::Settings& wanted,
                                                         const std::string& file);

}  // namespace weir::server
