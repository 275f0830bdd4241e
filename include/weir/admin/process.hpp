// Reads values of this process from /proc/self.
//
// For one thread.
#pragma once

#include "weir/admin/figures.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

namespace weir::admin {

class ProcessReader {
 public:
  using Clock = std::chrono::steady_clock;

  // The period for counting open descriptors one by one, which takes about 12 ms for 9,000. Needed only if
  // the kernel does not report the number itself (Linux before 6.2).
  static constexpr std::chrono::seconds kCountEvery{30};

  // `kernel_says`: false treats the kernel as an older one.
  explicit ProcessReader(bool kernel_says = true) noexcept : kernel_says_(kernel_says) {}

  [[nodiscard]] std::optional<ProcessFigures> read(Clock::time_point now = Clock::now());

 private:
  [[nodiscard]] std::optional<std::uint64_t> open_descriptors(Clock::time_point now);

  bool kernel_says_;
  std::optional<std::uint64_t> counted_;
  Clock::time_point counted_at_{};
};

}  // namespace weir::admin
