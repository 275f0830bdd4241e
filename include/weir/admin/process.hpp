// Reads the resource usage of this process from /proc/self.
//
// server::Program owns the reader; only the control thread uses it.
#pragma once

#include "weir/admin/figures.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

namespace weir::admin {

class ProcessReader {
 public:
  using Clock = std::chrono::steady_clock;

  // The interval at which weir counts open file descriptors one by one, which takes about 12 ms for 9,000
  // descriptors. This is necessary only if the kernel does not report the number (Linux before 6.2).
  static constexpr std::chrono::seconds kCountEvery{30};

  // `use_kernel_count`: false makes the reader ignore the number of descriptors that the kernel reports, and
  // count them as on Linux before 6.2. Only tests pass false.
  explicit ProcessReader(bool use_kernel_count = true) noexcept : use_kernel_count_(use_kernel_count) {}

  // Returns the present resource usage; nullopt if it cannot be read.
  [[nodiscard]] std::optional<ProcessFigures> read(Clock::time_point now = Clock::now());

 private:
  [[nodiscard]] std::optional<std::uint64_t> open_descriptors(Clock::time_point now);

  bool use_kernel_count_;
  std::optional<std::uint64_t> counted_;
  Clock::time_point counted_at_{};
};

}  // namespace weir::admin
