// How busy a worker is: the share of the last moments that its thread spent computing. Belongs to one worker.
#pragma once

#include "weir/base/time.hpp"

namespace weir::proxy {

class LoadMeter {
 public:
  // Until a moment has passed nothing is known, and that counts as full.
  explicit LoadMeter(base::TimePoint now) noexcept : since_(now) {}

  // 0 idle to 1 full. `computed`: the time that the thread has computed since it began; read anew no more
  // than every kMoment of `now`.
  template <class Computed>
  [[nodiscard]] double at(base::TimePoint now, Computed computed) {
    if (now - since_ >= kMoment) measure(now, computed());
    return load_;
  }

  static constexpr base::Duration kMoment{100'000};

 private:
  void measure(base::TimePoint now, base::Duration computed) noexcept;

  base::TimePoint since_;
  base::Duration computed_{0};
  double load_ = 1;
};

// The time that the calling thread has computed.
[[nodiscard]] base::Duration thread_time() noexcept;

}  // namespace weir::proxy
