// IdleEvictor closes connections to make room for new ones. The acceptor calls want() with the number of
// connections to close. At the next watchdog tick each session that may be closed calls takes(). Connections
// close in the order of their ranks:
//
// * Quiet: connections that have been silent for a while. They close at the next tick.
// * Idle: other idle connections. They close one tick later if no connection was Quiet.
// * Begun: connections with a half-received handshake or request. They close last, if no connection was Idle
//   either.
//
// Belongs to its worker. The evictor must be the worker's first watched object, so that its tick precedes the
// ticks of all sessions. The evictor also wakes sessions that skip ticks while they are idle.
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
  // Asks for `count` connections to close at the next tick. `most`: connections of the ranks after
  // this one may not close.
  void want(std::size_t count, Rank most) noexcept {
    wanted_ = std::max(wanted_, count);
    most_ = std::max(most_, most);
  }
  // Returns true if the session must close. Each session that may be closed calls this function once a tick.
  [[nodiscard]] bool takes(Rank rank) noexcept {
    if (left_ == 0 || rank > last_) return false;
    --left_;
    return true;
  }

 private:
  void on_late() noexcept override {}
  void on_tick() noexcept override {
    // true if sessions should have closed at the last tick, but none did
    const bool nobody = left_ != 0 && left_ == to_close_;
    last_ = !nobody ? Rank::Quiet : std::min(last_ == Rank::Quiet ? Rank::Idle : Rank::Begun, most_);
    left_ = to_close_ = wanted_;
    wanted_ = 0;
    most_ = Rank::Quiet;
    if (left_ != 0) wake_all();
  }

  std::size_t wanted_ = 0;    // connections to close at the next tick
  std::size_t to_close_ = 0;  // connections to close at this tick
  std::size_t left_ = 0;      // how many of `to_close_` are still to be closed
  Rank most_ = Rank::Quiet;   // the highest value that `last_` may get at the next tick
  Rank last_ = Rank::Quiet;   // connections of this rank and of the ranks before it may close at this tick
};

}  // namespace weir::proxy
