#include "weir/net/watchdog.hpp"

namespace weir::net {

Watched::Watched(Watchdog& watchdog) : watchdog_(watchdog) { watchdog.watched_.push_back(*this); }

void Watched::arm(base::Duration wait) noexcept {
  const auto ticks = (wait.count() + Watchdog::kTick.count() - 1) / Watchdog::kTick.count();
  late_at_ = watchdog_.now_ + static_cast<std::uint64_t>(ticks) + 1;  // the current tick is partly over
}

void Watchdog::start() {
  timer_.expires_after(kTick);
  schedule();
}

void Watchdog::schedule() {
  timer_.async_wait([this](const ErrorCode& error) {
    if (error) return;
    tick();
    // From the time that was due, so that ticks do not drift; a worker that was held up catches up without a burst.
    const auto due = timer_.expiry() + kTick;
    timer_.expires_at(std::max(due, std::chrono::steady_clock::now()));
    schedule();
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
