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

// The settings of a rule's `penalty`. REQUIRES: 1 ≤ after ≤ kMostViolations; 1 ≤ grows ≤ kMostGrowth;
// kLeastPenalty ≤ first ≤ most ≤ kMostPenalty; 0 < forget ≤ kMostPenalty.
struct Penalty {
  std::uint32_t after = 1;  // a penalty begins with this many violations within `forget`
  base::Duration first{};   // the length of a key's penalty if no other began within the last `forget`
  std::uint32_t grows = 2;  // multiplies the length once for each earlier penalty within `forget`
  base::Duration most{};    // the longest penalty
  base::Duration forget{};  // how long violations and beginnings of penalties are remembered
  friend bool operator==(const Penalty&, const Penalty&) = default;
};
inline constexpr std::uint32_t kMostViolations = 100;
inline constexpr std::uint32_t kMostGrowth = 100;
inline constexpr base::Duration kLeastPenalty{1'000'000};
inline constexpr base::Duration kMostPenalty = std::chrono::hours(24 * 366);

// The violations and penalties of one key. The instants in a list are in no particular order, because the
// clock of Redis may step back.
struct PenaltyState {
  base::TimePoint end{};                      // when the last penalty ends; the epoch: there was none
  std::vector<base::TimePoint> violations{};  // the times of violations since the last penalty began
  std::vector<base::TimePoint> begins{};      // when penalties began; at most begins_kept() instants
  friend bool operator==(const PenaltyState&, const PenaltyState&) = default;
};

// Returns how long a penalty lasts if `earlier` penalties began within `forget` before it.
[[nodiscard]] base::Duration length_of(const Penalty& penalty, std::size_t earlier) noexcept;
// Returns how many earlier penalties can change the length of the next one. At most 25.
[[nodiscard]] std::size_t begins_kept(const Penalty& penalty) noexcept;

// Returns how long the key's penalty still lasts; zero if none runs.
[[nodiscard]] base::Duration penalty_left(const PenaltyState& state, base::TimePoint now) noexcept;
// Returns how many violations count now towards the next penalty: those within the last `forget`.
[[nodiscard]] std::size_t violations_at(const Penalty& penalty, const PenaltyState& state,
                                        base::TimePoint now) noexcept;
// Notes a violation. Returns true if a penalty begins with it. REQUIRES: penalty_left(state, now) is zero.
// May throw std::bad_alloc; the state is then unchanged.
bool violate(const Penalty& penalty, PenaltyState& state, base::TimePoint now);
// Returns the time at which the state will equal that of a key without violations and penalties.
[[nodiscard]] base::TimePoint penalty_forgotten_at(const Penalty& penalty,
                                                   const PenaltyState& state) noexcept;

// Changes the limiter's outcome to a refusal by a penalty that lasts for `left`.
void refuse_by_penalty(Outcome& outcome, base::Duration left) noexcept;

}  // namespace weir::limit
