// Where delayed requests wait for their departure. Nothing is blocked: a request that waits is a coroutine
// that sleeps, and all of a worker's share one timer.
//
// The arithmetic (limit::LeakyBucket, here or in Redis) says *when* the next request of a rule's key leaves;
// who of those waiting here takes that departure is decided here: first come, first out. So when one leaves
// early, those behind it move up and the last departure goes back to the limiter.
//
// Belongs to one worker. Invariants of a lane: as many departures as tickets; both in order.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/clock.hpp"
#include "weir/net/reactor.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include <boost/intrusive/list.hpp>

namespace weir::proxy {

class Shaper {
 public:
  // A place in the queue. Lives in the frame of the request that waits.
  class Ticket
      : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
   public:
    explicit Ticket(net::Executor executor) : wake_(executor) {}
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

    // Ends the wait early: wait() returns false.
    void leave() noexcept { wake_.raise(); }

   private:
    friend class Shaper;
    net::Signal wake_;
    bool departed_ = false;
  };

  Shaper(net::Executor executor, const net::Clock& clock) : clock_(clock), timer_(executor) {}

  struct Slot {
    base::TimePoint at;        // when it departs, in our time
    base::TimePoint promised;  // the same in the time of the store that promised it
    friend bool operator<(const Slot& a, const Slot& b) noexcept { return a.at < b.at; }
  };

  // Waits for a departure of `key`'s lane. True: now it is this request's turn. False: it left; `slot` is
  // then the departure that nobody will use, to be given back to the limiter.
  [[nodiscard]] net::Task<bool> wait(Ticket& ticket, const limit::Key& key, Slot& slot);

  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }

 private:
  struct Lane {
    std::deque<Slot> departures;  // ascending
    boost::intrusive::list<Ticket, boost::intrusive::constant_time_size<false>> tickets;
  };
  using Lanes = std::map<limit::Key, Lane>;

  void schedule(const Lanes::iterator& lane, base::TimePoint before);
  void rearm();
  void depart_due();

  const net::Clock& clock_;
  net::Timer timer_;
  base::TimePoint armed_for_ = base::TimePoint::max();
  Lanes lanes_;
  std::set<std::pair<base::TimePoint, limit::Key>> next_;  // each lane's first departure
  std::size_t waiting_ = 0;
};

}  // namespace weir::proxy
