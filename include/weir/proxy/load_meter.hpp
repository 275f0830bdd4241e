// How busy weir is as one worker sees it: what elastic limits look at. It is the largest of four numbers,
// each from 0 (idle) to 1 (full):
//
//   lag        how late this worker's loop comes round: the delay of its tick ÷ kFullLag, smoothed
//   cpu        the share of its time that this worker's thread computed, smoothed
//   queue      the fullest queue that everybody shares: what waits ÷ the rule's `queue`, or ÷ what
//              leaves within its `max_wait` where that is less, as it stands. A queue for each client does
//              not count: one client could close everybody's elastic limit with its own
//   in_flight  requests at upstreams ÷ `max_in_flight`, as it stands; 0 without such a bound
//
// Smoothed: an exponentially weighted moving average in which what was measured kHalfLife ago weighs half.
//
// Pure. A meter belongs to its worker, which measures once a tick; part() may be asked by any thread.
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
  // `tick`: the time that is to pass between two readings. Until the second one nothing is known, and that
  // counts as full.
  explicit LoadMeter(base::Duration tick) noexcept : tick_(tick) {
    for (auto& part : parts_) part.store(1, std::memory_order_relaxed);
  }

  struct Sample {
    base::TimePoint now{};
    base::Duration computed{};  // by the thread since it began
    double queue = 0;
    double in_flight = 0;
  };
  void measure(const Sample& sample) noexcept;

  // The largest part. For its worker.
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

// The time that the calling thread has computed.
[[nodiscard]] base::Duration thread_time() noexcept;

}  // namespace weir::proxy
