// How many connections are to go, so that others find room: wanted by whoever found none, taken by sessions
// at the next tick, as the watchdog comes by. Those that have been silent for a while go first; where there
// are none of them, the others that are idle do at the tick after; and where there is none of those, at the
// tick after that those whose handshake or request has been half come for a while.
//
// Belongs to its worker, whose first watched object it is: its tick comes before those of all sessions, also
// those that doze, which it wakes.
#pragma once

#include "weir/net/watchdog.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace weir::proxy {

class IdleEvictor final : public net::Watched {
 public:
  explicit IdleEvictor(net::Watchdog& watchdog) : Watched(watchdog) {}

  enum class Rank : std::uint8_t { Quiet, Idle, Begun };
  // `most`: no others than up to these.
  void want(std::size_t count, Rank most) noexcept {
    wanted_ = std::max(wanted_, count);
    most_ = std::max(most_, most);
  }
  // Asked by each session that could go, once a tick: whether it is one of those.
  [[nodiscard]] bool takes(Rank rank) noexcept {
    if (left_ == 0 || rank > last_) return false;
    --left_;
    return true;
  }

 private:
  void on_late() noexcept override {}
  void on_tick() noexcept override {
    const bool nobody = left_ != 0 && left_ == asked_;  // of those ranks
    last_ = !nobody ? Rank::Quiet : std::min(last_ == Rank::Quiet ? Rank::Idle : Rank::Begun, most_);
    left_ = asked_ = wanted_;
    wanted_ = 0;
    most_ = Rank::Quiet;
    if (left_ != 0) wake_all();
  }

  std::size_t wanted_ = 0;   // for the next tick
  std::size_t asked_ = 0;    // at this one
  std::size_t left_ = 0;     // of them
  Rank most_ = Rank::Quiet;  // for the next tick
  Rank last_ = Rank::Quiet;  // that goes
};

}  // namespace weir::proxy
