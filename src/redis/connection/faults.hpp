// Failures of some bills on a connection that serves others: weir's user lacks a right, or a script hits an
// error. The connection stays open. Each failure is logged once per connection, and again if such a call
// succeeded in between. In any case a line is logged every ten seconds at most.
//
// Pure. Belongs to a session.
#pragma once

#include "redis/scripts/line_numbers.hpp"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir::redis {

class Faults {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // The features that a call needs: a bit for each algorithm among its lines, or kGivingBack for refunds.
  using Kinds = std::uint32_t;
  static constexpr Kinds kGivingBack = Kinds{1} << 31;

  [[nodiscard]] static Kinds kinds_of(std::span<const limit::Charge> lines) noexcept;
  // "sliding_log, concurrency"
  [[nodiscard]] static std::string names_of(std::span<const limit::Charge> lines);

  // Notes that a call of these kinds failed. Returns true if the failure should be logged.
  [[nodiscard]] bool note(Kinds kinds, Time now);
  // Notes that a call of these kinds succeeded.
  void went_well(Kinds kinds) noexcept;
  // Must be called for a new connection.
  void forget() noexcept { said_.clear(); }
  [[nodiscard]] bool none() const noexcept { return said_.empty(); }

 private:
  std::vector<Kinds> said_;  // none is a subset of another
  Time next_{};
};

}  // namespace weir::redis
