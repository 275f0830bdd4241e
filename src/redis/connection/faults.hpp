// Failures of some bills on a connection on which other bills succeed: weir's user lacks a right, or a script
// fails. The connection stays open. Each kind of failure is logged once per connection. It is logged again if
// a call of that kind has succeeded since. At most one failure is logged in ten seconds.
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
  // The features that a call needs: a bit for each algorithm of its charges, or kGivingBack for refunds.
  using Kinds = std::uint32_t;
  static constexpr Kinds kGivingBack = Kinds{1} << 31;

  [[nodiscard]] static Kinds kinds_of(std::span<const limit::Charge> lines) noexcept;
  // Returns the name of each algorithm that the charges use, each once: "sliding_log, concurrency".
  [[nodiscard]] static std::string names_of(std::span<const limit::Charge> lines);

  // Must be called when a call of these kinds has failed. Returns true if the failure should be logged.
  [[nodiscard]] bool note(Kinds kinds, Time now);
  // Must be called when a call of these kinds has succeeded.
  void went_well(Kinds kinds) noexcept;
  // Deletes all stored failures. Must be called for a new connection.
  void forget() noexcept { said_.clear(); }
  [[nodiscard]] bool none() const noexcept { return said_.empty(); }

 private:
  std::vector<Kinds> said_;  // kinds of the logged failures; no element is a subset of another
  Time next_{};
};

}  // namespace weir::redis
