// What of the table outlives the process (limit/snapshot.hpp), as values.
#pragma once

#include "weir/base/siphash.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/shared_limiter.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace weir::limit {

// One key that was live. The instants in a cell, as `drained_at`, are microseconds since the Unix epoch.
struct SavedKey {
  Key key;
  RuleIndex rule = 0;
  base::TimePoint drained_at;
  Cell cell{};                  // of a log not used
  std::vector<LogEntry> log{};  // of a log its entries, oldest first; else empty
  friend bool operator==(const SavedKey&, const SavedKey&) = default;
};

// The cell that newcomers of one ledger share while the table is full.
struct SharedCell {
  RuleIndex rule = 0;
  Ledger ledger = 0;
  Limiter units;  // whose units the cell is in
  Cell cell;
};

// A rule, as far as its cells depend on it. A cell means nothing without the numbers of its limiter, and does
// not say which of its rule's limiters that is; so the cells of a rule are good as long as none of its
// variants has other numbers than it had.
struct SavedRule {
  struct Variant {
    std::uint64_t name;     // that keys are named under: the rule itself, a tier, an override, elastic or not
    std::uint64_t numbers;  // a digest of all that a cell's meaning depends on
    Ledger ledger = 0;      // in the rule's configuration
    const Limiter* limiter = nullptr;  // that enforces in the table; null: its keys begin anew
    friend bool operator==(const Variant&, const Variant&) = default;
  };
  std::string name;
  std::vector<Variant> variants;
  std::vector<const Limiter*> limiters{};  // all that a cell may be of; owned by the rule set

  // Bits of a cost in its logs, which are of one kind; 0 where it keeps none.
  [[nodiscard]] unsigned log_cost_bits() const noexcept;
  // Else a key may be of no log, though the rule keeps some: its messages are counted in buckets.
  [[nodiscard]] bool keeps_logs_alone() const noexcept;
  // Whether cells of `older`, a rule of the same name, still mean the same.
  [[nodiscard]] bool reads(const SavedRule& older) const noexcept;
  // Whether keys of the two may be charged under one RuleIndex: whatever is the same in the two has the same
  // numbers, or counts what is under way, and the same ledger.
  [[nodiscard]] bool counts_as(const SavedRule& other) const noexcept;

  // Null: there is none.
  [[nodiscard]] const Variant* variant_of(Ledger ledger) const noexcept;
  [[nodiscard]] const Limiter* limiter_named(std::uint64_t name) const noexcept;
};

// A rule of a snapshot as it was then, with its limiters.
struct FormerRule {
  SavedRule rule;
  std::vector<SharedLimiter> limiters;  // to which `rule` points
};

// The same for limiters with the same algorithm and numbers, in every process.
[[nodiscard]] base::Digest128 fingerprint(const Limiter& limiter) noexcept;

}  // namespace weir::limit
