#pragma once

#include "weir/net/watchdog.hpp"

namespace weir::net {

// Counts the watchdog's ticks.
class Ticks final : public Watched {
 public:
  explicit Ticks(Watchdog& watchdog) : Watched(watchdog) {}
  int seen = 0;

 private:
  void on_late() noexcept override {}
  void on_tick() noexcept override { ++seen; }
};

}  // namespace weir::net
