// Decides whether a request may be sent again, and after how long. Pure: random numbers are arguments.
#pragma once

#include "weir/base/time.hpp"

#include <cstdint>

namespace weir::upstream {

// Limits the share of requests that are sent again, so that failing servers do not get more work. Each
// request adds the configured share of a unit to the budget, and each repetition takes one unit. Belongs to
// one worker.
class RetryBudget {
 public:
  // The budget at the start, which is also the largest budget, in repetitions.
  static constexpr std::uint64_t kReserve = 10;

  explicit RetryBudget(unsigned percent) noexcept : percent_(percent) {}

  void pay_in() noexcept {
    credit_in_hundredths_ += percent_;
    if (credit_in_hundredths_ > kReserve * kWhole) credit_in_hundredths_ = kReserve * kWhole;
  }
  [[nodiscard]] bool take() noexcept {
    if (percent_ == 0 || credit_in_hundredths_ < kWhole) return false;
    credit_in_hundredths_ -= kWhole;
    return true;
  }

 private:
  static constexpr std::uint64_t kWhole = 100;
  std::uint64_t percent_;
  std::uint64_t credit_in_hundredths_ = kReserve * kWhole;
};

inline constexpr base::Duration kLongestBackoff{1'000'000};
// Returns the wait before repetition number `repetition`, counted from 1. The wait is an exponential backoff
// with full jitter: a random time below a bound that starts at `first` and doubles up to kLongestBackoff.
// `random`: any 64 bits.
[[nodiscard]] base::Duration backoff(base::Duration first, unsigned repetition,
                                     std::uint64_t random) noexcept;

}  // namespace weir::upstream
