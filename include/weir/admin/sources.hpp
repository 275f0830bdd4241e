// The data that admin pages read: values that are fixed for one configuration, and functions that the pages
// call for each response.
#pragma once

#include "weir/admin/figures.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/adapt.hpp"
#include "weir/limit/key_table.hpp"
#include "weir/net/task.hpp"
#include "weir/observe/counters.hpp"
#include "weir/policy/api_keys.hpp"
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

// A rule, described in text for people.
struct RuleText {
  std::string name;
  std::string algorithm;       // such as "token_bucket"
  std::string limit;           // such as "token_bucket 10/s, burst 100"
  std::string match;           // such as "path /api/*"
  std::string key;             // such as "api_key|ip"
  std::string store;           // "memory" or "redis"
  std::string mode;            // "enforce" or "shadow"
  bool settles = false;        // true: charges of this rule may be settled
  bool messages = false;       // true: the rule counts messages of WebSockets and gRPC calls
  bool penalty = false;        // true: the rule has a penalty
  bool adapts = false;         // true: the rule's limit adapts to an upstream
  bool paces = false;          // true: the rule paces bodies, and decides about no request
  limit::RuleIndex index = 0;  // index of the rule's counters (observe::Counters)
};
[[nodiscard]] RuleText describe(const policy::Rule& rule);

struct Readiness {
  bool ready = false;
  std::string detail;  // why weir is not ready, or what is degraded although weir is ready
  // The cause in the words of another program, such as Redis. The text may name hosts, so only operators may
  // see it. Empty if unknown.
  std::string cause{};
};

// The result of a reload, in words.
struct ReloadOutcome {
  std::vector<std::string> mistakes;  // mistakes in the new configuration; empty if weir now uses it
  std::vector<std::string> changes;
  std::vector<std::string> warnings;  // warnings about the configuration in use
};
using ReloadDone = std::function<void(const ReloadOutcome&)>;

// The result of an upgrade.
struct UpgradeOutcome {
  std::string fault;         // why the upgrade failed; empty if the new process serves and this process ends
  std::int64_t process = 0;  // process ID of the new process
  // `keys`: how many keys of the key table were restored. `changed`: how many were lost because their rules
  // changed. `left_out`: how many were lost because the new table had no room.
  std::uint64_t keys = 0, changed = 0, left_out = 0;
  base::Duration paused{0};  // the longest time for which a request had to wait because of the upgrade
};
using UpgradeDone = std::function<void(const UpgradeOutcome&)>;

// The numbers of spans that were exported and dropped.
struct SpanFigures {
  std::uint64_t exported = 0;
  std::uint64_t dropped_full = 0;      // spans dropped because max_queue was reached
  std::uint64_t dropped_rejected = 0;  // spans dropped because the collector rejected them
  std::uint64_t failed_posts = 0;      // posts without an answer, and answers that ask for a retry
};

// A request for one key of a rule. The key consists of texts, one for each part of the rule's key, as a user
// writes them (policy/key_values.hpp).
struct KeyRequest {
  std::string rule;
  std::vector<std::string> key;
  bool reset = false;  // true: reset the key after reading its state
  std::string peer;    // address of the admin listener's client
};
struct KeyResponse {
  unsigned status = 200;
  std::string error{};             // a sentence about the error if `status` is not 200
  std::vector<std::string> key{};  // the parts of the key in weir's own form, such as "ip:203.0.113.7"
  std::vector<policy::LimitState> limits{};
  bool reset = false;
};

// A change of one API key in the keys file ([client] keys).
struct ApiKeyRequest {
  std::optional<policy::ApiKeys::Sha256> digest{};  // the digest of the key, which may be new
  // The id of a known key, if `digest` is absent. Always has the form of an id (ApiKeys::is_id()).
  std::string id{};
  std::optional<policy::ApiKeyOwnerChange> owner{};  // the change of the key's owner; absent: remove the key
  std::string peer{};                                // address of the admin listener's client
};
struct ApiKeyResponse {
  unsigned status = 200;
  std::string code{};   // the code of the error if `status` is not 200
  std::string error{};  // a sentence about the error
  std::string id{};
  policy::ApiKeyOwner owner{};  // the owner after the change; if the key was removed: before the change
  bool created = false;         // true: the key is new
  std::vector<std::string> warnings{};
};

using ApiKeyDone = std::function<void(const ApiKeyResponse&)>;

// A request to change a server at run time. Members without a value change nothing.
struct ServerChange {
  std::string upstream;
  std::string server;
  std::optional<bool> drained{};
  std::optional<std::uint32_t> weight{};  // from 1 to upstream::kFullServiceWeight
  std::string peer{};                     // address of the admin listener's client
};

class Recorder;

struct Sources {
  std::string version;
  std::string commit;         // of the source of this binary, or "unknown"
  base::TimePoint started{};  // when weir began to serve
  // Returns the present time. All other times in the sources are by this clock. If the function is absent,
  // the pages show all times as the epoch.
  std::function<base::TimePoint()> now;
  // Counters of every worker; they must outlive the admin server.
  std::vector<const observe::Counters*> counters;
  // Names of routes; the index is also that of the route's counters (observe::Counters). An empty name means
  // that the index is unused.
  std::vector<std::string> routes;
  std::vector<RuleText> rules;  // the rules in the order of the configuration
  std::vector<std::string> upstreams;
  // The pages call the functions below on the server's thread. If a function is absent, the pages omit its
  // data.
  std::function<limit::KeyTable::Stats()> key_table;
  std::function<std::vector<RedisFigures>()> redis;
  // Returns the clients of the rule with this index, and the time of the data. Absent if weir does not track
  // clients.
  std::function<std::pair<std::optional<observe::TopOfRule>, base::TimePoint>(limit::RuleIndex)> top;
  // Returns how many different limiters the process has used, and the most that it can use.
  std::function<std::pair<std::size_t, std::size_t>()> limits;
  std::function<LeaseFigures()> leases;  // absent if no rule takes units in advance
  std::function<std::vector<ServerFigures>()> servers;
  // Changes a server. Returns the server's new state, or a sentence about the error if there is no such
  // server.
  std::function<base::Result<ServerFigures>(const ServerChange&)> change_server;
  // Returns counts of the look-ups of each upstream whose server names are looked up repeatedly.
  std::function<std::vector<ResolveFigures>()> resolves;
  // Returns the state of the keys of tokens that weir fetches.
  std::function<std::vector<TokenKeyFigures>()> token_keys;
  std::function<std::optional<ProcessFigures>()> process;
  // Returns the number of lines that the log's writer lost. The workers' counters have the lines that workers
  // lost.
  std::function<std::uint64_t()> log_lines_lost;
  std::function<SpanFigures()> spans;  // absent: weir exports no spans
  // Returns the name and value of each kind of system load. A value is from 0 to 1.
  std::function<std::vector<std::pair<const char*, double>>()> load;
  // Returns the present factor (the granted share of the limit) of the rule with this RuleText::index.
  // Absent: the pages omit factors.
  std::function<limit::Factor(limit::RuleIndex)> factor;
  std::function<Readiness()> readiness;  // absent: weir is always ready
  std::function<TlsFigures()> certificates;
  std::function<ReloadFigures()> reloads;
  // Reloads the configuration at the request of `peer`, a client's address. Calls ReloadDone with the result
  // on the server's thread, possibly before `reload` returns. Absent if there is no configuration file.
  std::function<void(const std::string& peer, ReloadDone)> reload;
  base::Duration longest_reload{0};  // if a reload takes longer, the reply says that the reload continues
  std::function<UpgradeFigures()> upgrades;
  // Starts an upgrade at the request of `peer`, a client's address. Calls UpgradeDone with the result on the
  // server's thread, possibly before `upgrade` returns.
  std::function<void(const std::string& peer, UpgradeDone)> upgrade;
  base::Duration longest_upgrade{0};
  std::function<net::Task<policy::Explanation>(policy::ExplainRequest)> explain;
  std::function<net::Task<KeyResponse>(KeyRequest)> keys;
  // Returns the known API keys; null if there is no keys file. The keys are valid until the caller's next
  // wait.
  std::function<const policy::ApiKeys*()> api_keys;
  // Changes the keys file and the keys in use. Calls ApiKeyDone on the server's thread after the file was
  // written, or before `change_api_key` returns if weir refuses the change at once.
  std::function<void(const ApiKeyRequest&, ApiKeyDone)> change_api_key;
  // How long a request waits for its change. If the change takes longer, the reply says that it continues.
  base::Duration longest_api_key_change{0};
  std::function<std::vector<AlertFigures>()> alerts;  // absent if there are no alerts
  // Returns the number of exceptions during checks and posts of alerts; absent if there are no alerts.
  std::function<std::uint64_t()> alert_faults;
  // Returns the number of exceptions during the admin server's work. The admin server sets this function.
  std::function<std::uint64_t()> admin_faults;
  const Recorder* recorder = nullptr;  // set by the admin server; null if nothing is recorded
};

}  // namespace weir::admin
