// Makes editions of the configuration (weir/proxy/edition.hpp), so that what a reload does not change stays
// the same: fleets and their servers' condition, limiters, the labels of counters, the numbers under which
// the table keeps keys. And follows them until they are gone, to free what nobody needs any more.
//
// Belongs to the main thread. Outlives the workers.
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
#include "weir/proxy/edition.hpp"

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

class Editions {
 public:
  // `gone`: called on the main thread when requests have left an edition for good.
  Editions(net::asio::io_context& control, limit::KeyTable& table, const net::Clock& clock, Log& log,
           std::function<void()> gone);

  struct Draft {
    std::shared_ptr<proxy::Edition> edition;
    std::vector<std::string> changes;  // in words
  };
  // Of settings that were checked, whose servers were looked up. Nothing is in force yet. An error says why
  // there can be none.
  [[nodiscard]] base::Result<Draft> make(const Settings& settings,
                                         std::vector<std::vector<upstream::Server>> servers,
                                         const policy::NamingKeys& names);
  // The current edition with other names.
  [[nodiscard]] Draft renamed(const policy::NamingKeys& names) const;
  // The current edition with the files of these upstreams' TLS read again: connections that begin from now on
  // go by them, and none that waits is used again. An error names the file and says what is wrong with it.
  [[nodiscard]] base::Result<Draft> with_tls_read_again(const std::vector<std::string>& upstreams) const;
  // It is in force from now on: the table reads its rules. Hand it to the workers next.
  [[nodiscard]] std::shared_ptr<const proxy::Edition> put_in_force(const Draft& draft);

  [[nodiscard]] const proxy::Edition& current() const noexcept { return *current_; }
  // Of the current one, which stays while this is held.
  [[nodiscard]] std::shared_ptr<const proxy::Configuration> configuration() const noexcept {
    return {current_, &current_->config};
  }
  // How many there are, the current one included.
  [[nodiscard]] std::size_t count() const noexcept { return live_.size(); }
  [[nodiscard]] observe::Counters::Shape shape() const noexcept;
  [[nodiscard]] std::vector<std::string> route_names() const;
  [[nodiscard]] std::vector<std::string> upstream_names() const;
  // By the numbers of the table's keys; those that stand for nothing have no name.
  [[nodiscard]] std::vector<limit::SavedRule> saved_rules() const;

  // A charge of a place of the rule's, as the current edition has it. Nullopt: there is no such rule here, or
  // it holds nothing in the table.
  [[nodiscard]] std::optional<limit::Charge> place_of(std::string_view rule, const limit::Key& key) const;

  // Takes in a rule as an earlier process knew it, whose keys come back: for limit::restore_snapshot().
  [[nodiscard]] std::optional<limit::RuleIndex> adopt(const limit::FormerRule& former);

  // Frees what no edition has any more; what its counters showed is cleared, which `counters` has of all
  // workers. `elsewhere`: whose cells are in use all the same (limit::HeldElsewhere::rules).
  void tidy(const std::vector<observe::Counters*>& counters,
            const std::vector<limit::RuleIndex>& elsewhere = {});
  // Different limits that there have been: at most limit::Limiters::kMost.
  [[nodiscard]] std::size_t limits() const noexcept { return limiters_.size(); }

 private:
  // What an edition uses.
  struct Use {
    const proxy::Edition* edition;
    std::vector<std::size_t> routes, upstreams;
    std::vector<limit::RuleIndex> rules, cells;
  };
  struct Reading {  // of a rule's cells
    std::optional<limit::SavedRule> rule;
    bool forgotten = false;
  };

  [[nodiscard]] base::Result<std::vector<policy::Rule>> settle(std::vector<policy::Rule> rules,
                                                               std::vector<std::string>& changes);
  [[nodiscard]] std::optional<limit::RuleIndex> place_cells(const policy::Rule& rule,
                                                            std::vector<bool>& taken);
  void tell_change(const policy::Rule& rule, std::vector<std::string>& changes) const;
  [[nodiscard]] std::shared_ptr<upstream::Fleet> fleet_of(const upstream::UpstreamSettings& settings,
                                                          std::vector<upstream::Server> servers,
                                                          std::vector<std::string>& changes);
  [[nodiscard]] std::shared_ptr<upstream::Fleet> make_fleet(const upstream::UpstreamSettings& settings,
                                                            std::vector<upstream::Server> servers,
                                                            const upstream::Fleet* older) const;
  void free_unused(const std::vector<observe::Counters*>& counters);
  void tidy_cells(const std::vector<limit::RuleIndex>& elsewhere);
  void end(const proxy::Edition* edition);

  net::asio::io_context& control_;
  limit::KeyTable& table_;
  const net::Clock& clock_;
  Log& log_;
  std::function<void()> gone_;
  limit::Limiters limiters_;
  std::vector<limit::FormerRule> former_;  // adopted; kept, for nobody knows who still points to them
  Labels routes_{observe::Counters::kMostRoutes};
  Labels upstreams_{observe::Counters::kMostUpstreams};
  Labels rules_{limit::kMaxRules};
  std::vector<Reading> readings_;  // by RuleIndex
  std::list<Use> live_;
  std::shared_ptr<const proxy::Edition> current_;
};

// What two settings differ in that cannot change while weir runs, a line each as ConfigError has them.
[[nodiscard]] std::vector<std::string> find_unchangeable(const Settings& running, const Settings& wanted,
                                                         const std::string& file);

}  // namespace weir::app
