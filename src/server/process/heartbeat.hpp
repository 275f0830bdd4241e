// Says that the program lives, for as long as every loop of it turns.
//
// Each round asks all loops to answer; when the last one has, the program lives. A loop that does not turn
// keeps its round open, and no other begins before that ends: so a loop that stands still is silence, and one
// that was merely late is heard as soon as it goes on. Belongs to the thread that runs `control`; the loops
// may be run by any. Goes before the executors' contexts do, and no sooner than `control` is run for the last
// time.
#pragma once

#include "weir/base/time.hpp"
#include "weir/net/asio.hpp"

#include <functional>
#include <vector>

namespace weir::app {

class Heartbeat {
 public:
  Heartbeat(net::Executor control, std::function<void()> alive);

  // A round now, and one every `every` (above zero). Once.
  void start(std::vector<net::Executor> loops, base::Duration every);
  // From now on the loop of `control` answers for all: the others are ending, each at its own time.
  void answer_alone();
  // Nobody is told anything any more.
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
  std::size_t round_ = 0;    // answers of an earlier one count for nothing
  std::size_t awaited_ = 0;  // answers that this round lacks
};

}  // namespace weir::app
