// When a request may be sent again: how many in all, and after how long. Plain values; chance is an argument.
#pragma once

#include "weir/base/time.hpp"

#include <cstdint>

namespace weir::upstream {

// Keeps requests that are sent again to a share of all, so that servers in trouble are not given more to do:
// each request pays in its share, each repetition takes a whole one. Belongs to one worker.
class RetryBudget {
 public:
  // What is there at first and gathers at most: repetitions that a quiet time allows at once.
  static constexpr std::uint64_t kReserve = 10;

  explicit RetryBudget(unsigned percent) noexcept : percent_(percent) {}

  void pay_in() noexcept {
    hundredths_ += percent_;
    if (hundredths_ > kReserve * kWhole) hundredths_ = kReserve * kWhole;
  }
  [[nodiscard]] bool take() noexcept {
    if (percent_ == 0 || hundredths_ < kWhole) return false;
    hundredths_ -= kWhole;
    return true;
  }

 private:
  static constexpr std::uint64_t kWhole = 100;
  std::uint64_t percent_;
  std::uint64_t hundredths_ = kReserve * kWhole;
};

// How long to wait before the n-th repetition, n ≥ 1: anything from nothing to the longest, which doubles
// from `first` on, up to kLongestBackoff (exponential backoff with full jitter). `random`: any 64 bits.
inline constexpr base::Duration kLongestBackoff{1'000'000};
[[nodiscard]] base::Duration backoff(base::Duration first, unsigned repetition,
                                     std::uint64_t random) noexcept;

}  // namespace weir::upstream
