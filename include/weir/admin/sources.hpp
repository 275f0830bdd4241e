// The data that admin pages read: values that are fixed for a configuration, and functions that are called
// for every response.
#pragma once

#include "weir/admin/figures.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/key_table.hpp"
#include "weir/net/task.hpp"
#include "weir/observe/counters.hpp"
#include "weir/policy/explain_request.hpp"
#include "weir/policy/explanation.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::policy {
struct Rule;
}

namespace weir::admin {

// A rule in words for people.
struct RuleText {
  std::string name;
  std::string algorithm;       // "token_bucket"
  std::string limit;           // "token_bucket 10/s, burst 100"
  std::string match;           // "path /api/*"
  std::string key;             // "api_key|ip"
  std::string store;           // "memory", "redis"
  std::string mode;            // "enforce", "shadow"
  bool settles = false;        // responses correct its charges
  bool messages = false;       // counts messages of WebSockets
  limit::RuleIndex label = 0;  // of its counters
};
[[nodiscard]] RuleText describe(const policy::Rule& rule);

struct Readiness {
  bool ready = false;
  std::string detail;  // why it is not ready, or what is degraded although it is ready
  // The cause in words of another program, which may name hosts. For operators only. Empty if unknown.
  std::string cause{};
};

// The result of a reload, in words.
struct ReloadOutcome {
  std::vector<std::string> mistakes;  // empty: the new configuration is in use
  std::vector<std::string> changes;
  std::vector<std::string> warnings;  // about the configuration in use
};
using ReloadDone = std::function<void(const ReloadOutcome&)>;

// The result of an upgrade.
struct UpgradeOutcome {
  std::string fault;         // empty: the new process serves, and this one ends
  std::int64_t process = 0;  // ID of the new process
  // Keys whose state was restored; keys lost because their rules changed; keys lost for lack of room.
  std::uint64_t keys = 0, changed = 0, left_out = 0;
  base::Duration paused{0};  // the longest time that requests waited
};
using UpgradeDone = std::function<void(const UpgradeOutcome&)>;

// A key of a rule as somebody writes it: a text for each part (policy/key_values.hpp).
struct KeyRequest {
  std::string rule;
  std::vector<std::string> key;
  bool reset = false;  // resets the key and reports its former state
  std::string peer;    // address of the client
};
struct KeyResponse {
  unsigned status = 200;
  std::string error{};             // a sentence, for other statuses than 200
  std::vector<std::string> key{};  // in weir's own form: "ip:203.0.113.7"
  std::vector<policy::LimitState> limits{};
  bool reset = false;
};

class Recorder;

struct Sources {
  std::string version;
  base::TimePoint started{};                       // when weir began to serve
  std::function<base::TimePoint()> now;            // the clock of all times here; absent: the epoch
  std::vector<const observe::Counters*> counters;  // of every worker; they outlive the server
  // Names by the labels of their counters (observe::Counters). An empty name marks an unused label.
  std::vector<std::string> routes;
  std::vector<RuleText> rules;  // in the order of the configuration
  std::vector<std::string> upstreams;
  // The functions run on the server's thread. If one is absent, the pages leave its data out.
  std::function<limit::KeyTable::Stats()> key_table;
  std::function<std::vector<RedisFigures>()> redis;
  // Returns a rule's clients by its index, and the time of the data; absent: clients are not counted.
  std::function<std::pair<std::optional<observe::TopOfRule>, base::TimePoint>(limit::RuleIndex)> top;
  // Returns the number of different limits that the process has had, and the highest possible number.
  std::function<std::pair<std::size_t, std::size_t>()> limits;
  std::function<LeaseFigures()> leases;  // absent: no rule takes units in advance
  std::function<std::vector<ServerFigures>()> servers;
  std::function<std::vector<ResolveFigures>()> resolves;  // for upstreams with repeated look-ups
  std::function<std::optional<ProcessFigures>()> process;
  std::function<std::uint64_t()> log_lines_lost;  // lost by the writer; workers count their own drops
  std::function<std::vector<std::pair<const char*, double>>()> load;  // by kind, from 0 to 1
  std::function<Readiness()> readiness;                               // absent: ready
  std::function<TlsFigures()> certificates;
  std::function<ReloadFigures()> reloads;
  // Reloads the configuration for `peer`. Calls ReloadDone on the server's thread, now or later. Absent if
  // there is no file.
  std::function<void(const std::string& peer, ReloadDone)> reload;
  base::Duration longest_reload{0};  // after it, the reply says that the reload continues
  std::function<UpgradeFigures()> upgrades;
  // Starts an upgrade for `peer`. Calls UpgradeDone on the server's thread, now or later.
  std::function<void(const std::string& peer, UpgradeDone)> upgrade;
  base::Duration longest_upgrade{0};
  std::function<net::Task<policy::Explanation>(policy::ExplainRequest)> explain;
  std::function<net::Task<KeyResponse>(KeyRequest)> keys;
  std::function<std::vector<AlertFigures>()> alerts;  // absent: there are no alerts
  std::function<std::uint64_t()> alert_faults;        // exceptions during checks and posts; absent: none
  std::function<std::uint64_t()> admin_faults;        // exceptions in the server's work; set by the server
  const Recorder* recorder = nullptr;  // the server's own; the server sets it; null: no past is recorded
};

}  // namespace weir::admin
