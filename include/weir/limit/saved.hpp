// The parts of the key table that outlive the process in a snapshot (limit/snapshot.hpp), as values.
#pragma once

#include "weir/base/siphash.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/penalty.hpp"
#include "weir/limit/shared_limiter.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace weir::limit {

// A live key. `drained_at` and the instants in the cell are microseconds since the Unix epoch.
struct SavedKey {
  Key key;
  RuleIndex rule = 0;
  base::TimePoint drained_at;
  Cell cell{};                  // unused if `log` has entries
  std::vector<LogEntry> log{};  // the entries of a log, oldest first; otherwise empty
  friend bool operator==(const SavedKey&, const SavedKey&) = default;
};

// The overflow cell of one limiter ID: the state that keys without a slot share.
struct SharedCell {
  RuleIndex rule = 0;
  LimiterId limiter_id = 0;
  Limiter units;  // `cell` counts in the units of this limiter
  Cell cell;
};

// The violations and penalties of a key. This state does not depend on the limits of the key's rule.
struct SavedPenalty {
  Key key;
  base::TimePoint forgotten_at;  // the instant until which the state is needed
  PenaltyState state;
  friend bool operator==(const SavedPenalty&, const SavedPenalty&) = default;
};

// The part of a rule that weir needs to read the states of the rule's keys. To read a state, weir needs the
// parameters (limit, period, burst) of its limiter. But a state does not say to which of the rule's limiters
// it belongs. So the states stay valid only if all limiters of the rule keep their parameters.
struct SavedRule {
  struct Variant {
    std::uint64_t name;  // a digest that identifies the rule itself, a tier, an override or an elastic limit
    std::uint64_t numbers;             // a digest of all parameters that are needed to interpret a state
    LimiterId limiter_id = 0;          // the ID in this process; another configuration may give another ID
    const Limiter* limiter = nullptr;  // null: keys of this variant start with nothing used
    friend bool operator==(const Variant&, const Variant&) = default;
  };
  std::string name;
  std::vector<Variant> variants;
  std::vector<const Limiter*> limiters{};  // all limiters that a state may belong to; owned by the rule set

  // Returns the number of bits in which the rule's logs store the cost of an entry. All logs of a rule use
  // the same number. Returns 0 if the rule keeps no logs.
  [[nodiscard]] unsigned log_cost_bits() const noexcept;
  // Returns true if every key of the rule has a log. Returns false for a rule with logs for requests and
  // buckets for WebSocket messages.
  [[nodiscard]] bool keeps_logs_alone() const noexcept;
  // Returns true if this rule can use the keys' states of `older`, a rule of the same name, without
  // conversion.
  [[nodiscard]] bool reads(const SavedRule& older) const noexcept;
  // Returns true if both rules may share one RuleIndex: their variants have the same names, limiter IDs and
  // parameters. Only the parameters of concurrency limits may differ.
  [[nodiscard]] bool counts_as(const SavedRule& other) const noexcept;

  // variant_of() returns the variant with this ID. limiter_named() returns the limiter of the variant with
  // this name. Both return null if the rule has no such variant.
  [[nodiscard]] const Variant* variant_of(LimiterId limiter_id) const noexcept;
  [[nodiscard]] const Limiter* limiter_named(std::uint64_t name) const noexcept;
};

// The version of a rule that the earlier process used when it wrote the snapshot, with the rule's limiters.
struct FormerRule {
  SavedRule rule;
  std::vector<SharedLimiter> limiters;  // owns the limiters to which `rule` points
};

// Returns a digest of a limiter's algorithm and parameters. The digests of equal limiters are equal in every
// process.
[[nodiscard]] base::Digest128 fingerprint(const Limiter& limiter) noexcept;

}  // namespace weir::limit
