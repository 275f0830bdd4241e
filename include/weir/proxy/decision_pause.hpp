// Pauses a worker's decisions in an upgrade, while the new process takes over the state of the limiters.
// Connections that are about to read a request wait here and keep the bytes they have read. The pause does
// not affect requests that are already decided.
//
// Belongs to one worker.
#pragma once

#include "weir/net/signal.hpp"

#include <boost/intrusive/list.hpp>

namespace weir::proxy {

class DecisionPause {
 public:
  // One waiting connection. The task that waits owns this object.
  class Waiter
      : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
   public:
    Waiter(DecisionPause& decision_pause, const net::Executor& executor) : end_(executor) {
      decision_pause.waiters_.push_back(*this);
    }
    [[nodiscard]] net::Signal::Wait wait() noexcept { return end_.wait(); }
    // Ends this wait before the pause ends. The woken task must check is_on() to learn whether the pause has
    // ended.
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
