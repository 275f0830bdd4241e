// How many idle connections are to go, so that others find room: wanted by whoever found none, taken by
// sessions at the next tick, as the watchdog comes by. Those that have been silent for a while go first;
// where there are none of them, the others do at the tick after.
//
// Belongs to its worker, whose first watched object it is: its tick comes before those of all sessions.
#pragma once

#include "weir/net/watchdog.hpp"

#include <algorithm>
#include <cstddef>

namespace weir::proxy {

class Clearing final : public net::Watched {
 public:
  explicit Clearing(net::Watchdog& watchdog) : Watched(watchdog) {}

  void want(std::size_t count) noexcept { wanted_ = std::max(wanted_, count); }
  // Asked by each idle session, once a tick: whether it is one of those.
  [[nodiscard]] bool takes(bool quiet) noexcept {
    if (left_ == 0 || !(quiet || any_)) return false;
    --left_;
    return true;
  }

 private:
  void on_late() noexcept override {}
  void on_tick() noexcept override {
    any_ = left_ != 0 && left_ == asked_;  // nobody was silent enough
    left_ = asked_ = wanted_;
    wanted_ = 0;
  }

  std::size_t wanted_ = 0;  // for the next tick
  std::size_t asked_ = 0;   // at this one
  std::size_t left_ = 0;    // of them
  bool any_ = false;
};

}  // namespace weir::proxy
