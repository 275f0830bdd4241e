// Counts how often each client of a rule is refused, as one worker sees it. For alerts that watch single
// clients. Counts only the rules that watch() names, so other rules cost nothing.
//
// A rule has a Space-Saving summary (space_saving.hpp) of kCounters counters. The control thread takes the
// counts once a second. So the counts are exact if a worker refuses at most kCounters clients of the rule in
// that second. Otherwise a counter has an error, and its count minus the error is never too high.
//
// The worker's thread adds, and the control thread takes. Both lock a mutex, which is held for a short time.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/observe/space_saving.hpp"
#include "weir/policy/client_text.hpp"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

namespace weir::observe {

class RefusedClients {
 public:
  static constexpr std::size_t kCounters = 256;

  RefusedClients() = default;
  RefusedClients(const RefusedClients&) = delete;
  RefusedClients& operator=(const RefusedClients&) = delete;

  // Returns true if watch() has named at least one rule. Thread-safe.
  [[nodiscard]] bool is_on() const noexcept { return on_.load(std::memory_order_relaxed); }

  // Counts a refusal of a client by the rule, if the rule is watched. Must be called by the worker. `key`:
  // the client's name in logs and on admin pages.
  void add(const policy::Rule& rule, const limit::Key& key, const policy::Request& request);

  // Counts the refusals of these rules from now on, and of no others. A rule is named by its index
  // (Rule::index). Rules that were counted before keep their counts. Thread-safe.
  void watch(std::span<const limit::RuleIndex> rules);
  // Moves a rule's counts since the last call of take() to `counts`. Leaves `counts` unchanged if the rule is
  // not watched. Thread-safe. REQUIRES: `counts` has counted nothing, and its capacity is kCounters.
  void take(limit::RuleIndex rule, SpaceSaving& counts);
  // Clears a rule's counts. Must be called when another rule gets this index (Rule::index). Thread-safe.
  void forget(limit::RuleIndex rule);

 private:
  struct RuleClients {
    limit::RuleIndex rule;
    SpaceSaving refusals{kCounters};
  };
  [[nodiscard]] RuleClients* find(limit::RuleIndex rule) noexcept;
  [[nodiscard]] bool watches(std::span<const limit::RuleIndex> rules);

  std::atomic<bool> on_{false};
  std::mutex mutex_;
  std::vector<RuleClients> watched_;  // one entry for each watched rule, so at most one for each alert
};

}  // namespace weir::observe
