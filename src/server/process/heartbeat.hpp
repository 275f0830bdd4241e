// Calls `alive` again and again while all event loops of the program run.
//
// In each round, the heartbeat posts to all loops and waits for their replies. It calls `alive` after the
// last reply. The next round begins only after this one has ended. So if a loop hangs, `alive` is not called,
// and if a loop is slow, `alive` is called later.
//
// Belongs to the thread that runs `control`; any thread may run the loops. Must be destroyed after the last
// run of `control`, and before the contexts of the executors.
#pragma once

#include "weir/base/time.hpp"
#include "weir/net/asio.hpp"

#include <functional>
#include <vector>

namespace weir::server {

class Heartbeat {
 public:
  Heartbeat(net::Executor control, std::function<void()> alive);

  // Starts a round now and one in each interval of `every`, which must be above zero. Must be called once.
  void start(std::vector<net::Executor> loops, base::Duration every);
  // From now on, only the loop of `control` must reply. Must be called before workers end, because they end
  // at different times.
  void answer_for_loops();
  // Stops all reports.
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
  std::size_t round_ = 0;    // number of the present round; replies to earlier rounds are ignored
  std::size_t awaited_ = 0;  // replies for which the present round still waits
};

}  // namespace weir::server
