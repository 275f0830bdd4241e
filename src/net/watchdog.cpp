#include "weir/net/watchdog.hpp"

#include <algorithm>

namespace weir::net {

Watched::Watched(Watchdog& watchdog) : watchdog_(watchdog) {
  watchdog.watched_.push_back(*this);
}

void Watched::arm(base::Duration wait) noexcept {
  const auto ticks = (wait.count() + Watchdog::kTick.count() - 1) / Watchdog::kTick.count();
  // Adds 1, because a part of the present tick has already passed.
  late_at_ = watchdog_.now_ + static_cast<std::uint64_t>(ticks) + 1;
  wake();
}

void Watched::skip_ticks() noexcept {
  const auto until_late = late_at_ > watchdog_.now_ ? late_at_ - watchdog_.now_ : 1;
  const auto at = watchdog_.now_ + std::min(until_late, Watchdog::kSkippedTicks);
  unlink();
  watchdog_.skipping_.at(at % Watchdog::kSkippedTicks).push_back(*this);
  skips_ticks_ = true;
}

void Watched::resume_ticks() noexcept {
  skips_ticks_ = false;
  unlink();
  watchdog_.watched_.push_back(*this);
}

void Watched::wake_all() noexcept {
  watchdog_.wake_all();
}

void Watchdog::start() {
  ticking_ = true;
  schedule(Timer::clock_type::now() + kTick);
}

void Watchdog::stop() {
  ticking_ = false;
  timer_.cancel();
}

// Sets the timer, which begins or continues a tick. A tick begins at least kTick after the previous one, so a
// delayed worker does not make up for missed ticks. A deadline that is set during a delay counts from the
// last tick before the delay, so extra ticks would end it too early.
void Watchdog::schedule(Timer::time_point at) {
  timer_.expires_at(at);
  timer_.async_wait([this](const ErrorCode& error) {
    if (error || !ticking_) return;
    tick();
    if (ticking_) schedule(under_way_ ? Timer::clock_type::now() : began_ + kTick);
  });
}

// While a tick is in progress, appends the woken objects to due_, so that this tick still checks them.
// Watched::wake() differs: it appends its object to watched_, which only the next tick checks.
void Watchdog::wake_all() noexcept {
  auto& awake = under_way_ ? due_ : watched_;
  for (auto& dozing : skipping_) awake.splice(awake.end(), dozing);
}

// Begins a tick, or continues the tick that is in progress. A tick checks a few objects in each turn of the
// event loop. If the tick takes too long, it checks all remaining objects at once, because a late tick delays
// all deadlines.
//
// An object that is created, or woken by Watched::wake(), during a tick is first checked in the next tick. A
// destroyed object removes itself from its list. Objects that never skip ticks keep their order.
void Watchdog::tick() noexcept {
  const auto now = Timer::clock_type::now();
  if (!under_way_) {
    under_way_ = true;
    began_ = now;
    ++now_;
    due_.swap(watched_);
    due_.splice(due_.end(), skipping_.at(now_ % kSkippedTicks));
  }
  const bool behind = now - began_ > kTick / 2;
  for (std::size_t n = 0; (n < kAtOnce || behind) && !due_.empty(); ++n) {
    auto& watched = due_.front();
    watched_.splice(watched_.end(), due_, due_.begin());
    watched.skips_ticks_ = false;
    watched.on_tick();
    if (watched.late_at_ > now_) continue;
    watched.disarm();
    watched.on_late();
  }
  under_way_ = !due_.empty();
}

}  // namespace weir::net
