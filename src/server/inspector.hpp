// Implements the admin listener's requests about limits: explains how weir would decide a described request,
// and shows and resets single keys. Reads the key table directly. Reads Redis through the first worker's
// connection, on that worker's thread.
//
// Program owns the inspector; only the control thread uses it.
#pragma once

#include "server/keys/key_locations.hpp"
#include "server/keys/key_search.hpp"
#include "server/process/worker_thread.hpp"
#include "server/redis_job.hpp"

#include "weir/admin/sources.hpp"
#include "weir/limit/key_table.hpp"
#include "weir/log/access_log.hpp"
#include "weir/log/log.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/clock.hpp"
#include "weir/net/task.hpp"
#include "weir/observe/access_record.hpp"
#include "weir/observe/top_clients.hpp"
#include "weir/policy/rules/applied_limiter.hpp"
#include "weir/proxy/configuration.hpp"
#include "weir/proxy/shaper.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::server {

class Inspector {
 public:
  // Functions that return present values. The inspector calls these functions for each request.
  struct Moment {
    std::function<std::shared_ptr<const proxy::Configuration>()> config;  // the configuration in use
    std::function<double()> load;  // the load of the system, from 0 to 1
    // Returns the clients that /api/top lists for the rule with this Rule::index. Returns nullopt if weir has
    // counted no client.
    std::function<std::optional<observe::TopOfRule>(limit::RuleIndex)> top;
  };
  // All referenced objects must outlive the inspector.
  Inspector(net::Executor executor, const net::Clock& clock, limit::KeyTable& table,
            proxy::SharedQueue& queue, const std::vector<std::unique_ptr<WorkerThread>>& workers,
            log::Log& log, log::AccessLog& access_log, Moment moment)
      : executor_(executor),
        clock_(clock),
        table_(table),
        queue_(queue),
        workers_(workers),
        log_(log),
        access_log_(access_log),
        moment_(std::move(moment)) {}

  // These functions implement the functions of the same names in admin::Sources.
  [[nodiscard]] net::Task<policy::Explanation> explain(policy::ExplainRequest explain_request);
  [[nodiscard]] net::Task<admin::KeyResponse> keys(admin::KeyRequest question);

 private:
  // An operator names a client by texts, which may have several meanings. This is the result for one meaning:
  // a key, or an error.
  struct Found {
    KeyLocations locations{};
    std::vector<std::string> key{};  // texts that name the key in the reply
    std::vector<policy::LimitState> limits{};
    unsigned status = 200;
    std::string error{};
  };
  // `in_force` in these functions: the configuration that owns the rule and the objects to which the charges
  // point. Jobs for Redis keep the configuration alive, because a worker may still run a job after a reload.
  using ConfigRef = std::shared_ptr<const proxy::Configuration>;
  net::Task<bool> ask_redis(std::shared_ptr<RedisJob> job);
  net::Task<void> answer_by_redis(const ConfigRef& in_force, std::span<proxy::RedisLookup> lookups);
  net::Task<std::vector<policy::LimitState>> peek(const ConfigRef& in_force, const policy::Rule& rule,
                                                  const KeyLocations& locations);
  net::Task<void> find(const ConfigRef& in_force, const policy::Rule& rule,
                       const std::vector<std::string>& texts, Found& found);
  [[nodiscard]] std::vector<Found> candidates(const proxy::Configuration& config, const policy::Rule& rule,
                                              const std::vector<std::string>& texts,
                                              const std::optional<observe::TopOfRule>& top) const;
  [[nodiscard]] std::optional<limit::LimiterId> limiter_id_of(const policy::Rule& rule,
                                                              const ShownKey& shown) const;
  [[nodiscard]] bool is_counted(const Found& found, const std::optional<observe::TopOfRule>& top) const;
  net::Task<void> reset(const ConfigRef& in_force, const policy::Rule& rule, KeyLocations locations,
                        admin::KeyResponse& answer);
  void note(const policy::Rule& rule, const KeyLocations& locations, const std::string& peer);
  void note_for_replay(const policy::Rule& rule, std::uint64_t run, base::TimePoint at,
                       std::span<const observe::ForgottenKey> keys);

  const net::Executor executor_;
  const net::Clock& clock_;
  limit::KeyTable& table_;
  proxy::SharedQueue& queue_;
  const std::vector<std::unique_ptr<WorkerThread>>& workers_;
  log::Log& log_;
  log::AccessLog& access_log_;
  const Moment moment_;
};

}  // namespace weir::server
