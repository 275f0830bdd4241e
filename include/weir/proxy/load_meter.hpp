// Measures how busy weir is, from one worker's point of view. Elastic limits depend on the load. The load is
// the largest of four numbers, each from 0 (idle) to 1 (full):
//
// * lag: the delay of this worker's tick ÷ kFullLag, smoothed.
// * cpu: the share of wall time in which this worker's thread computed, smoothed.
// * queue: the fill of the fullest queue that all clients share, not smoothed. The fill is the number of
//   waiting units ÷ the size of the queue. The size is the rule's `queue`, or the number of units that leave
//   within the rule's `max_wait` if this number is smaller. Queues of single clients are ignored: otherwise
//   one client could switch off every elastic limit.
// * in_flight: requests at upstreams ÷ `max_in_flight`, not smoothed; 0 without such a bound.
//
// Smoothed: an exponentially weighted moving average. A measurement that is kHalfLife old weighs half.
//
// Pure. A meter belongs to its worker, which measures once a tick. part() may be called by any thread.
#pragma once

#include "weir/base/time.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace weir::proxy {

enum class LoadKind : std::uint8_t { Lag, Cpu, Queue, InFlight };
inline constexpr std::size_t kLoadKinds = 4;
inline constexpr std::array<const char*, kLoadKinds> kLoadKindNames{"lag", "cpu", "queue", "in_flight"};

class LoadMeter {
 public:
  // `tick`: the intended time between two measurements. Until the second measurement every part is 1 (full).
  explicit LoadMeter(base::Duration tick) noexcept : tick_(tick) {
    for (auto& part : parts_) part.store(1, std::memory_order_relaxed);
  }

  struct Sample {
    base::TimePoint now{};
    base::Duration computed{};  // CPU time of the thread since its start
    double queue = 0;
    double in_flight = 0;
  };
  void measure(const Sample& sample) noexcept;

  // Returns the load: the largest of its four parts. Only the meter's worker may call this function.
  [[nodiscard]] double load() const noexcept { return load_; }
  [[nodiscard]] double part(LoadKind kind) const noexcept {
    return parts_[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
  }

  static constexpr base::Duration kFullLag{50'000};
  static constexpr base::Duration kHalfLife{500'000};

 private:
  void set(LoadKind kind, double part) noexcept {
    parts_[static_cast<std::size_t>(kind)].store(std::clamp(part, 0.0, 1.0), std::memory_order_relaxed);
  }

  const base::Duration tick_;
  std::optional<Sample> last_;
  bool known_ = false;
  double load_ = 1;
  std::array<std::atomic<double>, kLoadKinds> parts_;
};

// Returns the CPU time of the calling thread.
[[nodiscard]] base::Duration thread_time() noexcept;

}  // namespace weir::proxy
