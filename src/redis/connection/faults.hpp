// Decides which failures of bills are logged, if the connection stays open because other bills may succeed.
// Examples: weir's user lacks a right, or a script fails. If several calls that need the same features fail,
// only the first failure is logged. The next one is logged after a call with these features has succeeded, or
// on a new connection. At most one failure is logged in ten seconds.
//
// Pure. Belongs to a session.
#pragma once

#include "redis/scripts/charge_numbers.hpp"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir::redis {

class Faults {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // The features that a call needs, one bit for each: the algorithms of its charges, or kRefunds for
  // refunds.
  using Kinds = std::uint32_t;
  static constexpr Kinds kRefunds = Kinds{1} << 31;

  [[nodiscard]] static Kinds kinds_of(std::span<const limit::Charge> lines) noexcept;
  // Returns the names of the algorithms that the charges use, each name once: "sliding_log, concurrency".
  [[nodiscard]] static std::string names_of(std::span<const limit::Charge> lines);

  // Must be called when a call that needs the features `kinds` has failed. Returns true if the failure should
  // be logged.
  [[nodiscard]] bool note(Kinds kinds, Time now);
  // Must be called when a call that needs the features `kinds` has succeeded.
  void note_success(Kinds kinds) noexcept;
  // Forgets all logged failures. Must be called for a new connection.
  void forget() noexcept { logged_.clear(); }
  [[nodiscard]] bool none() const noexcept { return logged_.empty(); }

 private:
  // For each logged failure: the features that its call needed. No element is a subset of another.
  std::vector<Kinds> logged_;
  Time next_{};
};

}  // namespace weir::redis
