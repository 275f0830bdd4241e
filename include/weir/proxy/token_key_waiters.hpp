// The requests of a worker that wait until the keys of their token's issuer are fetched.
//
// Belongs to one worker.
#pragma once

#include "weir/net/signal.hpp"

#include <boost/intrusive/list.hpp>

namespace weir::proxy {

class TokenKeyWaiters {
 public:
  // One waiting request. The task that waits owns this object.
  class Waiter
      : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
   public:
    Waiter(TokenKeyWaiters& waiters, const net::Executor& executor) : fetched_(executor) {
      waiters.waiters_.push_back(*this);
    }
    // Waits until a fetch ends. Returns an error after cancel().
    [[nodiscard]] net::Notification::Wait wait() noexcept { return fetched_.wait(); }
    void cancel() noexcept { fetched_.cancel(); }

   private:
    friend class TokenKeyWaiters;
    net::Notification fetched_;
  };

  // Must be called after each fetch of an issuer's keys, whether the fetch succeeded or not.
  void notify() noexcept {
    for (auto& waiter : waiters_) waiter.fetched_.notify();
  }

 private:
  boost::intrusive::list<Waiter, boost::intrusive::constant_time_size<false>> waiters_;
};

}  // namespace weir::proxy
