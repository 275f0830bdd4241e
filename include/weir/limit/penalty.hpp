// A penalty: for some time, a rule refuses every request of a key whose limiter has refused too often. The
// page docs/design/penalty.md explains it. Pure: time is an argument.
//
// A violation is a refusal by the rule's limiter while the key has no penalty. A violation charges nothing.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/outcome.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::limit {

// The numbers of a rule's `penalty`. REQUIRES: 1 ≤ after ≤ kMostViolations; 1 ≤ grows ≤ kMostGrowth;
// kLeastPenalty ≤ first ≤ most ≤ kMostPenalty; 0 < forget ≤ kMostPenalty.
struct Penalty {
  std::uint32_t after = 1;  // a penalty begins with this many violations within `forget`
  base::Duration first{};   // the length of a penalty before which none began within `forget`
  std::uint32_t grows = 2;  // factor of the length for each penalty that began within `forget`
  base::Duration most{};    // the longest penalty
  base::Duration forget{};  // how long violations and begins of penalties count
  friend bool operator==(const Penalty&, const Penalty&) = default;
};
inline constexpr std::uint32_t kMostViolations = 100;
inline constexpr std::uint32_t kMostGrowth = 100;
inline constexpr base::Duration kLeastPenalty{1'000'000};
inline constexpr base::Duration kMostPenalty = std::chrono::hours(24 * 366);

// The state of one key. Times are in no particular order: the clock of Redis may step back.
struct PenaltyState {
  base::TimePoint end{};                      // of the last penalty; the epoch: there was none
  std::vector<base::TimePoint> violations{};  // not yet used up by a penalty
  std::vector<base::TimePoint> begins{};      // of earlier penalties, at most begins_kept()
  friend bool operator==(const PenaltyState&, const PenaltyState&) = default;
};

// Returns how long a penalty lasts if `earlier` penalties began within `forget` before it.
[[nodiscard]] base::Duration length_of(const Penalty& penalty, std::size_t earlier) noexcept;
// Returns how many begins can change the length of the next penalty. At most 25.
[[nodiscard]] std::size_t begins_kept(const Penalty& penalty) noexcept;

// Returns how long the key's penalty still lasts; zero if none runs.
[[nodiscard]] base::Duration penalty_left(const PenaltyState& state, base::TimePoint now) noexcept;
// Returns the number of violations that count now.
[[nodiscard]] std::size_t violations_at(const Penalty& penalty, const PenaltyState& state,
                                        base::TimePoint now) noexcept;
// Notes a violation. Returns true if a penalty begins with it. REQUIRES: penalty_left(state, now) is zero.
// May throw std::bad_alloc; the state is then unchanged.
bool violate(const Penalty& penalty, PenaltyState& state, base::TimePoint now);
// Returns when the state will equal that of a key without violations.
[[nodiscard]] base::TimePoint penalty_forgotten_at(const Penalty& penalty,
                                                   const PenaltyState& state) noexcept;

// Changes the outcome of the limiter to that of a key whose penalty lasts for `left`.
void punish(Outcome& outcome, base::Duration left) noexcept;

}  // namespace weir::limit
