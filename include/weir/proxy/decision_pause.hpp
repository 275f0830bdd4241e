// A pause of a worker's decisions, while the process that comes after this one takes over how limits stand.
// Connections that are about to read a request wait here, with what they have read; what was decided before
// goes on.
//
// Belongs to one worker.
#pragma once

#include "weir/net/signal.hpp"

#include <boost/intrusive/list.hpp>

namespace weir::proxy {

class DecisionPause {
 public:
  // Where one waits; belongs to the task that does.
  class Waiter
      : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
   public:
    Waiter(DecisionPause& decision_pause, const net::Executor& executor) : end_(executor) {
      decision_pause.waiters_.push_back(*this);
    }
    [[nodiscard]] net::Signal::Wait wait() noexcept { return end_.wait(); }
    // Before the end: whoever sat here looks at why.
    void wake() noexcept { end_.raise(); }

   private:
    net::Signal end_;
  };

  [[nodiscard]] bool is_on() const noexcept { return on_; }
  void begin() noexcept { on_ = true; }
  void end() noexcept {
    on_ = false;
    for (auto& waiter : waiters_) waiter.wake();
  }

 private:
  boost::intrusive::list<Waiter, boost::intrusive::constant_time_size<false>> waiters_;
  bool on_ = false;
};

}  // namespace weir::proxy
