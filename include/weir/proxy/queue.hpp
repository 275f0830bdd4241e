// Who waits for which departure, over all workers: the shaper's order. Plain values; no clock, no lock, no
// socket: proxy::Shaper brings those.
//
// A lane is one key of a leaky bucket. The arithmetic (limit::LeakyBucket, here or in Redis) says *when* its
// next request leaves; *who* of those waiting does is decided here. Departures are fungible, so a request
// brings one to the lane as it joins and takes another as it goes: the first there is, when it is first in
// order. Order is by priority, then by turns among the clients of one priority, then first come first out
// within a client. So when one leaves, those behind it move up.
//
// A lane that is full takes a newcomer of a better priority all the same, and one of the same priority whose
// client has fewer places than another: who is last in order gives way, and the newcomer has a departure for
// which the limiter need not be asked. Among equals the other client keeps at least as many places as the
// newcomer's has then, so that no two ever send each other away in turn. Who gave way, or was overtaken by so
// many that its deadline will have passed, is evicted: out of its lane at once, and told so by its own
// worker.
//
// Invariants
//  1. For every instant t, a lane has at least as many departures at t or later as tickets that may not leave
//     before t: everybody can have one of its own, in time. (Hall's condition; who is first of those who may
//     have the first departure can always take it without breaking this.)
//  2. It has more than tickets (a surplus) where the store did not take the last one back, because by then it
//     had promised a later one to a request that has not joined yet, and where those who are held until then
//     need the last ones. Whoever joins takes what is left over, and brings the last one, which can go back
//     in its place. So no departure passes unused while one waits who may take it, and none is taken late:
//     what nobody may have yet passes.
//  3. Each lane has one keeper: the worker of the ticket that is next. Only that worker takes its departures,
//     so that a ticket ends on its own worker's thread and on no other.
//  4. An evicted ticket is in no lane, and in its worker's list until that worker took it from there.
//  5. Memory is asked for before anything changes: where there is none, join() and offer() throw and were
//     not called. Nothing else asks for any.
#pragma once

#include "weir/base/time.hpp"
#include "weir/policy/route.hpp"
#include "weir/proxy/departure.hpp"
#include "weir/proxy/lane.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace weir::proxy {

class Queue {
 public:
  using Worker = WorkerIndex;
  using Eviction = proxy::Eviction;
  using Ticket = QueueTicket;

  explicit Queue(Worker workers) : due_(workers), evicted_(workers) {}
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Takes a place in the departure's lane. REQUIRES !ticket.waits().
  void join(Ticket& ticket, const Departure& departure);
  // Gives the place up; the lane's last departure may be surplus then. REQUIRES ticket.waits().
  void leave(Ticket& ticket) noexcept;
  // Whether anybody in any lane may give way to one of this priority: somebody waits with a worse one, or
  // some client has more than one place with the same. Any thread may ask: a glance before the lock.
  [[nodiscard]] bool may_yield_to(policy::Priority priority) const noexcept {
    return yields_to_.load(std::memory_order_relaxed) >= priority;
  }
  // Whether a newcomer may have a departure of its lane: a surplus one, or that of who is last in order and
  // gives way. Not where it would pay more than was paid for it. Costs the same however many wait.
  [[nodiscard]] bool has_place_for(const Newcomer& newcomer) const;
  struct Won {
    Departure departure;
    bool displaced;  // somebody gave way
  };
  // Takes that departure out of the lane, as if the limiter had just promised it; who gave way is evicted.
  // REQUIRES has_place_for() of the newcomer.
  [[nodiscard]] Won displace(const Newcomer& newcomer) noexcept;

  // Evicts those at the end of the order who would depart after their deadlines: surplus departures stay.
  void evict_overtaken(const limit::Key& lane) noexcept;
  // Who of the worker was evicted and has not been told; null when there is none.
  [[nodiscard]] Ticket* take_evicted(Worker worker) noexcept;
  [[nodiscard]] bool has_evicted(Worker worker) const noexcept { return !evicted_[worker].empty(); }
  // Forgets a ticket that was evicted, told or not.
  void forget(Ticket& ticket) noexcept;

  // A departure without a ticket: for who is next, or surplus. `keeper` looks after it where nobody waits.
  void offer(const Departure& departure, Worker keeper);

  // The last departure of a lane where nobody who waits needs it, else null; and taking it away.
  [[nodiscard]] const Departure* surplus(const limit::Key& lane) const;
  void drop_surplus(const limit::Key& lane) noexcept;

  // When the worker must call take_due(); TimePoint::max() for never.
  [[nodiscard]] base::TimePoint next_due(Worker worker) const noexcept;
  // The next ticket of the worker that departs by `now`, taken out; null when there is none.
  [[nodiscard]] Ticket* take_due(Worker worker, base::TimePoint now) noexcept;

  // How many wait in a lane.
  [[nodiscard]] std::size_t waiting(const limit::Key& lane) const;
  // How many places a client has in a lane, and when its next one departs if nobody joins or leaves.
  // REQUIRES of the latter that it has one. Who may not depart before some time is taken for one who may.
  [[nodiscard]] std::size_t waiting(const limit::Key& lane, const limit::Key& client) const;
  [[nodiscard]] base::TimePoint next_turn(const limit::Key& lane, const limit::Key& client) const;
  // Where it has all the places that it may have, its next turn. REQUIRES most > 0.
  [[nodiscard]] std::optional<base::TimePoint> crowded_until(const limit::Key& lane, const limit::Key& client,
                                                             std::uint64_t most) const;

  // When another of the ticket's priority would depart that came in its place now: behind all who have that
  // priority or a better one. REQUIRES ticket.waits().
  [[nodiscard]] base::TimePoint turn_behind(const Ticket& ticket) const noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // The largest share of its places that is taken in a lane which everybody shares.
  [[nodiscard]] double fullness() const noexcept;

 private:
  struct Sooner {
    bool operator()(const Lane& a, const Lane& b) const noexcept {
      return a.due != b.due ? a.due < b.due : a.key < b.key;
    }
  };

  [[nodiscard]] Lane& lane_of(const limit::Key& key, Worker keeper);
  void add(Lane& lane, const Departure& departure);
  void remove_unused(Lane& lane) noexcept;
  [[nodiscard]] static bool gives_way(const Lane& lane, const Newcomer& newcomer);
  void take_place(Ticket& ticket, Lane& lane, LaneClient& client) noexcept;
  void take_out(Ticket& ticket, bool had_its_turn) noexcept;
  Ticket& evict_last(Lane& lane, Eviction why) noexcept;
  void note_yielding() noexcept;
  void reschedule(Lane& lane) noexcept;

  std::map<limit::Key, Lane> lanes_;
  in_lane::List<Lane> shared_;
  std::array<std::size_t, policy::kPriorities> waiting_{};  // in all lanes
  std::array<std::size_t, policy::kPriorities> crowds_{};   // clients with several places in one lane
  std::atomic<int> yields_to_{-1};                   // the worst priority that may find a place; -1: none may
  std::vector<in_lane::Ordered<Lane, Sooner>> due_;  // by keeper
  std::vector<in_lane::List<Ticket>> evicted_;       // by worker
  std::uint64_t turns_ = 0;                          // that were given, over all lanes
  std::size_t size_ = 0;
};

}  // namespace weir::proxy
