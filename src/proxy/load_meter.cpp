#include "weir/proxy/load_meter.hpp"

#include <algorithm>
#include <ctime>

namespace weir::proxy {

void LoadMeter::measure(base::TimePoint now, base::Duration computed) noexcept {
  const auto share =
      static_cast<double>((computed - computed_).count()) / static_cast<double>((now - since_).count());
  load_ = std::clamp(share, 0.0, 1.0);
  since_ = now;
  computed_ = computed;
}

base::Duration thread_time() noexcept {
  timespec time{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return base::Duration::zero();
  return std::chrono::duration_cast<base::Duration>(std::chrono::seconds(time.tv_sec) +
                                                    std::chrono::nanoseconds(time.tv_nsec));
}

}  // namespace weir::proxy
