// What the admin page reads. Values that hold as long as a configuration does, and questions that are asked
// anew for every answer.
#pragma once

#include "weir/admin/figures.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/key_table.hpp"
#include "weir/net/asio.hpp"
#include "weir/observe/counters.hpp"
#include "weir/policy/explanation.hpp"
#include "weir/policy/inquiry.hpp"

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

// A rule as people read it.
struct RuleText {
  std::string name;
  std::string algorithm;       // "token_bucket"
  std::string limit;           // "token_bucket 10/s, burst 100"
  std::string match;           // "path /api/*"
  std::string key;             // "api_key|ip"
  std::string store;           // "memory", "redis"
  std::string mode;            // "enforce", "shadow"
  bool settles = false;        // by answers
  bool messages = false;       // counts those of WebSockets
  limit::RuleIndex label = 0;  // of its counters
};
[[nodiscard]] RuleText describe(const policy::Rule& rule);

struct Readiness {
  bool ready = false;
  std::string detail;  // why not; or what is degraded though it is ready
  // What it comes from, in words of others, which may name hosts: for operators. Empty: nothing is known.
  std::string cause{};
};

// What came of reading the configuration anew, in words.
struct ReloadOutcome {
  std::vector<std::string> mistakes;  // none: it is in force
  std::vector<std::string> changes;
  std::vector<std::string> warnings;  // of what is in force now and probably not meant
};
using ReloadDone = std::function<void(const ReloadOutcome&)>;

// What came of a new process that was to take over.
struct UpgradeOutcome {
  std::string fault;         // empty: the new process serves, and this one ends
  std::int64_t process = 0;  // its number
  // Whose state went over, did not because their rules changed, and found no room there.
  std::uint64_t keys = 0, changed = 0, left_out = 0;
  base::Duration paused{0};  // how long requests waited, at most
};
using UpgradeDone = std::function<void(const UpgradeOutcome&)>;

// One key of a rule, as somebody writes it: a text for each part (policy/key_values.hpp).
struct KeyQuestion {
  std::string rule;
  std::vector<std::string> key;
  bool reset = false;  // gives everything back, and says what was
  std::string peer;    // who asks
};
struct KeyAnswer {
  unsigned status = 200;
  std::string error{};             // of another status: in a sentence
  std::vector<std::string> key{};  // as it was understood: "ip:203.0.113.7"
  std::vector<policy::LimitState> limits{};
  bool reset = false;
};

class Recorder;

struct Sources {
  std::string version;
  base::TimePoint started{};             // when weir began to serve
  std::function<base::TimePoint()> now;  // the clock that all instants here are of; absent: the epoch
  std::vector<const observe::Counters*> counters;  // of every worker; they outlive the server
  // Names, by the labels of their counters (observe::Counters); one that is empty is nobody's.
  std::vector<std::string> routes;
  std::vector<RuleText> rules;  // in their order
  std::vector<std::string> upstreams;
  // Called on the server's thread, whatever they read must bear that. Absent: nothing is shown.
  std::function<limit::KeyTable::Stats()> key_table;
  std::function<std::vector<RedisFigures>()> redis;
  // Who spends most of a rule, by its index, and the time of that; absent: nobody is counted.
  std::function<std::pair<std::optional<observe::TopOfRule>, base::TimePoint>(limit::RuleIndex)> top;
  // Different limits that the process has had, which it keeps, and how many it may.
  std::function<std::pair<std::size_t, std::size_t>()> limits;
  std::function<LeaseFigures()> leases;  // absent: no rule takes any
  std::function<std::vector<ServerFigures>()> servers;
  std::function<std::vector<ResolveFigures>()> resolves;  // of upstreams with names that are looked up again
  std::function<std::optional<ProcessFigures>()> process;
  std::function<std::uint64_t()> log_lines_lost;  // of the access log, beside what workers have dropped
  std::function<std::vector<std::pair<const char*, double>>()> load;  // by kind, from 0 to 1
  std::function<Readiness()> readiness;                               // absent: ready
  std::function<TlsFigures()> certificates;
  std::function<ReloadFigures()> reloads;
  // Reads it anew, because `peer` asks; tells on the server's thread, at once or later. Absent: there is
  // nothing to read.
  std::function<void(const std::string& peer, ReloadDone)> reload;
  base::Duration longest_reload{0};  // after which whoever asked is told that it is being read still
  std::function<UpgradeFigures()> upgrades;
  // Starts a new process that takes over, because `peer` asks; tells on the server's thread, at once or
  // later.
  std::function<void(const std::string& peer, UpgradeDone)> upgrade;
  base::Duration longest_upgrade{0};
  std::function<net::Awaitable<policy::Explanation>(policy::Inquiry)> explain;
  std::function<net::Awaitable<KeyAnswer>(KeyQuestion)> keys;
  std::function<std::vector<AlertFigures>()> alerts;  // absent: there are none
  std::function<std::uint64_t()> alert_faults;        // times that looking or posting threw; absent: none
  std::function<std::uint64_t()> admin_faults;        // times that the server's own work threw, which it sets
  const Recorder* recorder = nullptr;  // the server's own, which sets it; null: nothing is known of the past
};

}  // namespace weir::admin
