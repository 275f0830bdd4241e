// Asks servers how they are, where an upstream has `health`: one request each interval, on a connection of
// its own. What they say goes to their Fleet::Member.
//
// Belongs to the thread that runs the executor, whose tasks (net/task.hpp) are all its own.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/net/clock.hpp"
#include "weir/net/watchdog.hpp"
#include "weir/upstream/fleet.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace weir::upstream {

class Prober {
 public:
  // All outlive it.
  Prober(net::Executor executor, const net::Clock& clock, std::deque<Fleet>& fleets);
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  // Asks all of them at once, then each at its intervals.
  void start();

 private:
  class Probe;

  net::Executor executor_;
  net::Watchdog watchdog_;
  std::vector<std::unique_ptr<Probe>> probes_;
};

}  // namespace weir::upstream
