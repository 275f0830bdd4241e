// Calls `alive` periodically as long as all event loops of the program run.
//
// In each round, the heartbeat posts a task to all loops and waits until each task has run. Then it calls
// `alive`. The next round begins only after the present round has ended. So a loop that hangs prevents the
// call, and a slow loop delays the call.
//
// Supervision owns the heartbeat. Only the thread that runs `control` uses it; any thread may run the loops.
// Must be destroyed after the last run of `control`, and before the contexts of the executors.
#pragma once

#include "weir/base/time.hpp"
#include "weir/net/asio.hpp"

#include <functional>
#include <vector>

namespace weir::server {

class Heartbeat {
 public:
  Heartbeat(net::Executor control, std::function<void()> alive);

  // Starts a round at once, and another one after each interval `every`, which must be above zero. Must be
  // called once.
  void start(std::vector<net::Executor> loops, base::Duration every);
  // From now on, waits only for the event loop of `control`. Must be called before workers end, because their
  // event loops end at different times.
  void stop_watching_workers();
  // Stops calling `alive`.
  void stop();

 private:
  void beat();
  void begin_round();
  void answered(std::size_t round);

  net::Executor control_;
  std::function<void()> alive_;
  std::vector<net::Executor> loops_;
  net::Timer timer_;
  bool stopped_ = false;
  base::Duration every_{0};
  std::size_t round_ = 0;    // number of the present round; late replies of earlier rounds are ignored
  std::size_t awaited_ = 0;  // number of loops that have not replied in the present round
};

}  // namespace weir::server
