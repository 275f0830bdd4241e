#include "weir/net/watchdog.hpp"

namespace weir::net {

Watched::Watched(Watchdog& watchdog) : watchdog_(watchdog) {
  watchdog.watched_.push_back(*this);
}

void Watched::arm(base::Duration wait) noexcept {
  const auto ticks = (wait.count() + Watchdog::kTick.count() - 1) / Watchdog::kTick.count();
  late_at_ = watchdog_.now_ + static_cast<std::uint64_t>(ticks) + 1;  // the current tick is partly over
}

void Watchdog::start() {
  ticking_ = true;
  schedule();
}

void Watchdog::stop() {
  ticking_ = false;
  timer_.cancel();
}

// A whole tick after the one before ran, not after it was due: a worker that was held up must not catch up on
// ticks, because what was armed meanwhile counts from the last one that it saw.
void Watchdog::schedule() {
  timer_.expires_after(kTick);
  timer_.async_wait([this](const ErrorCode& error) {
    if (error || !ticking_) return;
    tick();
    if (ticking_) schedule();
  });
}

void Watchdog::tick() noexcept {
  ++now_;
  for (auto it = watched_.begin(); it != watched_.end();) {
    auto& watched = *it++;
    watched.on_tick();
    if (watched.late_at_ > now_) continue;
    watched.disarm();
    watched.on_late();
  }
}

}  // namespace weir::net
