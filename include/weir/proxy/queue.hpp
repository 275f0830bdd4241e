// The order of waiting requests, over all workers. Plain values without clock, lock or socket; proxy::Shaper
// adds the clock and the lock.
//
// A lane is the queue of one key of a leaky bucket. The limiter (limit::LeakyBucket, here or in Redis)
// computes *when* the lane's next request departs. The Queue decides *which* waiting request (ticket) departs
// at that time. Departures are interchangeable: a request brings one departure when it joins, and takes the
// lane's first departure when it is first in order. The order is by priority. Clients of one priority take
// turns. Requests of one client depart in the order of arrival. When a request leaves, the requests behind it
// move up.
//
// A full lane still accepts a newcomer that has a better priority than the last request in order. It also
// accepts a newcomer of the same priority whose client has fewer waiting requests. The last request is
// evicted, and the newcomer takes over a departure without asking the limiter. If the priorities are equal,
// the evicted request's client still has at least as many waiting requests as the newcomer's client. So two
// clients never evict each other in turn. The queue also evicts the last request if so many others depart
// first that the last request would depart after its deadline. An evicted request is removed from its lane at
// once. The worker of the evicted request ends its wait.
//
// Invariants
//  1. For every instant t, let n be the number of tickets that may not depart before t. The lane has at least
//     n departures at t or later, so each ticket can get a departure of its own that is not too early. (This
//     is Hall's condition. It still holds after a ticket has taken the first departure.)
//  2. The store takes back only the departure that it promised last. So a lane can have more departures than
//     tickets (a surplus) in two cases. First, tickets with a not_before need the last departures, so an
//     earlier departure is left over. Second, the store has already promised a later departure to a request
//     that has not joined yet. A request that joins can use a surplus departure, and the departure that it
//     brings can return to the store. So a departure remains unused only if no ticket may take it in time.
//  3. Each lane has one keeper: the worker of the next ticket. Only the keeper takes the lane's
//     departures, so a ticket ends on the thread of its own worker.
//  4. An evicted ticket is in no lane. It stays in its worker's list until that worker removes it.
//  5. join() and offer() allocate before they change anything. If memory runs out, they throw std::bad_alloc
//     and leave the queue unchanged. No other function allocates.
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

  // Adds a waiting request (ticket) and a departure to the lane that the departure names. REQUIRES
  // !ticket.waits().
  void join(Ticket& ticket, const Departure& departure);
  // Removes a waiting request (ticket). Afterwards, the lane's last departure may be surplus, which means
  // that no ticket needs it. REQUIRES ticket.waits().
  void leave(Ticket& ticket) noexcept;
  // Returns true if a ticket in any lane may give way to a request of this priority. A ticket may give way if
  // it has a worse priority. It may also give way if it has the same priority and its client has several
  // waiting requests. Any thread may call this function without the lock.
  [[nodiscard]] bool may_yield_to(policy::Priority priority) const noexcept {
    return yields_to_.load(std::memory_order_relaxed) >= priority;
  }
  // Returns true if the newcomer may take over a departure of its lane: a surplus departure, or one that
  // becomes free if the last ticket is evicted. Returns false if Redis promised that departure, if the
  // departure's charge is less than the newcomer's cost, or if the client already has `newcomer.most` waiting
  // requests. The running time does not depend on the number of tickets.
  [[nodiscard]] bool has_departure_for(const Newcomer& newcomer) const;
  struct Displacement {
    Departure departure;
    bool displaced;  // true if a ticket was evicted to free the departure
  };
  // Removes from the lane the departure that has_departure_for() found, as if the limiter had just promised
  // it to the newcomer. Evicts the ticket that gives way, if any. REQUIRES has_departure_for(newcomer).
  [[nodiscard]] Displacement displace(const Newcomer& newcomer) noexcept;

  // Evicts the last ticket in order as long as that ticket would depart after its deadline. The departures
  // stay in the lane as surplus.
  void evict_overtaken(const limit::Key& lane) noexcept;
  // Removes and returns the next ticket of the worker's list of evicted tickets; null if the list is empty.
  [[nodiscard]] Ticket* take_evicted(Worker worker) noexcept;
  [[nodiscard]] bool has_evicted(Worker worker) const noexcept { return !evicted_[worker].empty(); }
  // Removes an evicted ticket from its worker's list if take_evicted() has not done so.
  void forget(Ticket& ticket) noexcept;

  // Adds a departure without a ticket. The lane's next ticket takes the departure. If there is no ticket, the
  // departure is surplus. `keeper`: the worker that keeps the lane if the lane is new.
  void offer(const Departure& departure, Worker keeper);

  // Returns the last departure of the lane if no waiting ticket needs it, else null. drop_surplus() removes
  // that departure.
  [[nodiscard]] const Departure* surplus(const limit::Key& lane) const;
  void drop_surplus(const limit::Key& lane) noexcept;

  // Returns when the worker must call take_due(); TimePoint::max() means never.
  [[nodiscard]] base::TimePoint next_due(Worker worker) const noexcept;
  // Removes and returns the next ticket of this worker that departs at `now` or earlier. Returns null if
  // there is none.
  [[nodiscard]] Ticket* take_due(Worker worker, base::TimePoint now) noexcept;

  // Returns the number of waiting requests in a lane.
  [[nodiscard]] std::size_t waiting(const limit::Key& lane) const;
  // Returns the number of waiting requests of a client in a lane.
  [[nodiscard]] std::size_t waiting(const limit::Key& lane, const limit::Key& client) const;
  // Returns when the client's next ticket departs if no ticket joins or leaves, and if no ticket of the lane
  // has a not_before (QueueTicket). Otherwise the ticket may depart earlier or later. REQUIRES that the
  // client has a ticket in the lane.
  [[nodiscard]] base::TimePoint next_departure(const limit::Key& lane, const limit::Key& client) const;
  // Returns next_departure() if the client has at least `most` waiting requests, else nullopt. REQUIRES that
  // `most` is greater than 0.
  [[nodiscard]] std::optional<base::TimePoint> crowded_until(const limit::Key& lane, const limit::Key& client,
                                                             std::uint64_t most) const;

  // Returns when this waiting request would depart if it left the lane now and joined again: behind all
  // tickets of the same or a better priority. REQUIRES ticket.waits().
  [[nodiscard]] base::TimePoint departure_behind(const Ticket& ticket) const noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // Returns how full the fullest lane is, from 0 to 1. Considers only lanes that all clients share.
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
  void add_ticket(Ticket& ticket, Lane& lane, LaneClient& client) noexcept;
  void take_out(Ticket& ticket, bool departs) noexcept;
  Ticket& evict_last(Lane& lane, Eviction why) noexcept;
  void note_yielding() noexcept;
  void reschedule(Lane& lane) noexcept;

  std::map<limit::Key, Lane> lanes_;
  in_lane::List<Lane> shared_;  // lanes that all clients share
  // Number of tickets in all lanes; the index is the priority.
  std::array<std::size_t, policy::kPriorities> waiting_{};
  // Number of clients with several waiting requests; the index is the priority.
  std::array<std::size_t, policy::kPriorities> clients_with_several_{};
  std::atomic<int> yields_to_{-1};  // the worst priority for which may_yield_to() is true; -1: none
  // The lanes that have a next departure. The index is the worker that keeps the lane.
  std::vector<in_lane::Ordered<Lane, Sooner>> due_;
  std::vector<in_lane::List<Ticket>> evicted_;  // evicted tickets; the index is the worker
  std::uint64_t turns_ = 0;                     // number of turns so far, over all lanes
  std::size_t size_ = 0;
};

}  // namespace weir::proxy
