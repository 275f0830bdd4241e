// Asks servers how they are, where an upstream has `health`: one request each interval, on a connection of
// its own. What they say goes to their Fleet::Member.
//
// Belongs to the thread that runs the executor, whose tasks (net/task.hpp) are all its own.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/net/clock.hpp"
#include "weir/net/watchdog.hpp"
#include "weir/upstream/fleet.hpp"

#include <list>
#include <memory>
#include <vector>

namespace weir::upstream {

class Prober {
 public:
  // `clock` outlives it.
  Prober(net::Executor executor, const net::Clock& clock);
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  // Asks these from now on: those that it did not ask yet at once, then each at its intervals. Others that it
  // asked are left alone.
  void watch(const std::vector<std::shared_ptr<Fleet>>& fleets);

 private:
  class Probe;
  void add(const std::shared_ptr<Fleet>& fleet);

  net::Executor executor_;
  const net::Clock& clock_;
  net::Watchdog watchdog_;
  bool ticking_ = false;
  std::list<Probe> probes_;
};

}  // namespace weir::upstream
