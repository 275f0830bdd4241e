// What Redis does not do for some bills while it serves others, for a right of weir's user is missing or a
// script meets an error. It is no reason to hang up, and to be said once a connection; again when it went
// well in between, and in any case no more often than every ten seconds.
//
// Pure. Belongs to a session.
#pragma once

#include "redis/scripts/line.hpp"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir::redis {

class Faults {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // What a call asks for: a bit for each algorithm among its lines, or the one of giving back.
  using Kinds = std::uint32_t;
  static constexpr Kinds kGivingBack = Kinds{1} << 31;

  [[nodiscard]] static Kinds kinds_of(std::span<const limit::Charge> lines) noexcept;
  // "sliding_log, concurrency"
  [[nodiscard]] static std::string names_of(std::span<const limit::Charge> lines);

  // Such a call has failed. Whether that is to be said.
  [[nodiscard]] bool note(Kinds kinds, Time now);
  // One has not.
  void went_well(Kinds kinds) noexcept;
  // The connection is another.
  void forget() noexcept { said_.clear(); }
  [[nodiscard]] bool none() const noexcept { return said_.empty(); }

 private:
  std::vector<Kinds> said_;  // none of them within another
  Time next_{};
};

}  // namespace weir::redis
