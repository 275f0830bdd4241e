#include "weir/proxy/load_meter.hpp"

#include <cmath>
#include <ctime>

namespace weir::proxy {

namespace {

double ratio(base::Duration part, base::Duration whole) noexcept {
  return static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

}  // namespace

void LoadMeter::measure(const Sample& sample) noexcept {
  const auto before = last_;
  if (before && sample.now <= before->now) return;
  last_ = sample;
  if (!before) return;
  const auto passed = sample.now - before->now;
  // The weight of the new measurement. The first measurement has the weight 1.
  const double weight = known_ ? 1 - std::exp2(-ratio(passed, kHalfLife)) : 1;
  known_ = true;
  const auto smooth = [&](LoadKind kind, double fresh) {
    set(kind, part(kind) + weight * (std::clamp(fresh, 0.0, 1.0) - part(kind)));
  };
  smooth(LoadKind::Lag, ratio(passed - tick_, kFullLag));
  smooth(LoadKind::Cpu, ratio(sample.computed - before->computed, passed));
  set(LoadKind::Queue, sample.queue);
  set(LoadKind::InFlight, sample.in_flight);
  load_ = 0;
  for (const auto& each : parts_) load_ = std::max(load_, each.load(std::memory_order_relaxed));
}

base::Duration thread_time() noexcept {
  timespec time{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return base::Duration::zero();
  return std::chrono::duration_cast<base::Duration>(std::chrono::seconds(time.tv_sec) +
                                                    std::chrono::nanoseconds(time.tv_nsec));
}

}  // namespace weir::proxy
