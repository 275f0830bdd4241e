// Reports that the program is alive while all of its event loops run.
//
// Each round posts to all loops and waits for their replies. The program is alive when the last one has
// replied. A loop that hangs keeps its round open, and no other round begins before that one ends. So a
// hanging loop causes silence, and a slow loop is reported as soon as it replies. Belongs to the thread that
// runs `control`. Any thread may run the loops. Must be destroyed before the executors' contexts, and after
// the last run of `control`.
#pragma once

#include "weir/base/time.hpp"
#include "weir/net/asio.hpp"

#include <functional>
#include <vector>

namespace weir::server {

class Heartbeat {
 public:
  Heartbeat(net::Executor control, std::function<void()> alive);

  // Starts a round now, and then one every `every`, which must be above zero. Must be called once.
  void start(std::vector<net::Executor> loops, base::Duration every);
  // From now on only the loop of `control` must reply, because the other loops end at different times.
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
  std::size_t round_ = 0;    // replies to earlier rounds are ignored
  std::size_t awaited_ = 0;  // replies that this round still lacks
};

}  // namespace weir::server
