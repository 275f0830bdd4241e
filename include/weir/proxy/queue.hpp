// Who waits for which departure, over all workers: the shaper's order. Plain values; no clock, no lock, no
// socket: proxy::Shaper brings those.
//
// A lane is one key of a leaky bucket. The arithmetic (limit::LeakyBucket, here or in Redis) says *when* its
// next request leaves; *who* of those waiting does is decided here. Departures are fungible, so a request
// brings one to the lane as it joins and takes another as it goes: the first there is, when it is first in
// order. Order is by priority, then by turns among the clients of one priority, then first come first out
// within a client. So when one leaves, those behind it move up.
//
// A lane that is full takes a newcomer of a better priority all the same: who is last in order gives way, and
// the newcomer has a departure for which the limiter need not be asked. Who gave way, or was overtaken by so
// many that its deadline will have passed, is evicted: out of its lane at once, and told so by its own
// worker.
//
// Invariants
//  1. A lane has at least as many departures as tickets, ascending: nobody waits for nothing.
//  2. It has more (a surplus, the last ones) only where the store did not take one back, because by then it
//     had promised a later one to a request that has not joined yet. Whoever joins takes the surplus, and
//     brings the last one, which can go back in its place. So no departure passes unused while one waits.
//  3. Each lane has one keeper: the worker of the ticket that is next. Only that worker takes its departures,
//     so that a ticket ends on its own worker's thread and on no other.
//  4. An evicted ticket is in no lane, and in its worker's list until that worker took it from there.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/policy/route.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <boost/intrusive/list.hpp>

namespace weir::proxy {

// An instant at which one request of a lane may leave.
struct Departure {
  base::TimePoint at{};        // in our time
  base::TimePoint promised{};  // the same in the time of the store that promised it
  limit::Charge charge{};      // what was charged for it; its key names the lane
  bool in_redis = false;       // the store; else the key table
  bool overflow = false;       // of the key table: the overflow cell
  // How many may wait in the lane, where it is everybody's; 0 where it is some client's.
  std::uint64_t shared_places = 0;
};

class Queue {
  struct Client;
  struct Lane;
  using Hook = boost::intrusive::list_base_hook<>;
  template <class T>
  using List = boost::intrusive::list<T, boost::intrusive::constant_time_size<false>>;

 public:
  using Worker = std::size_t;  // counted from 0

  enum class Eviction : std::uint8_t {
    None,
    Displaced,  // its lane was full, and one of a better priority came
    Overtaken,  // so many go first that it cannot depart before its deadline
  };

  // A place in a lane. Stays where it is, and alive, until it was taken or left.
  class Ticket : public Hook {
   public:
    // `not_before`: what another rule of the same request has promised; earlier departures are for others.
    // `deadline`: a later departure is of no use to it.
    Ticket(Worker worker, const limit::Key& client, policy::Priority priority,
           base::TimePoint not_before = {}, base::TimePoint deadline = base::TimePoint::max()) noexcept
        : worker_(worker),
          client_(client),
          priority_(priority),
          not_before_(not_before),
          deadline_(deadline) {}
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

    [[nodiscard]] bool waits() const noexcept { return lane_ != nullptr; }
    [[nodiscard]] Worker worker() const noexcept { return worker_; }
    [[nodiscard]] const limit::Key& client() const noexcept { return client_; }
    [[nodiscard]] policy::Priority priority() const noexcept { return priority_; }
    // Which one it took, once it was taken.
    [[nodiscard]] const Departure& departure() const noexcept { return departure_; }
    [[nodiscard]] Eviction eviction() const noexcept { return eviction_; }
    // Displaced: when the limiter would take it back.
    [[nodiscard]] base::TimePoint retry_at() const noexcept { return retry_at_; }

   private:
    friend class Queue;
    const Worker worker_;
    const limit::Key client_;
    const policy::Priority priority_;
    const base::TimePoint not_before_;
    const base::TimePoint deadline_;
    Eviction eviction_ = Eviction::None;
    base::TimePoint retry_at_{};
    Lane* lane_ = nullptr;
    Client* place_ = nullptr;
    Departure departure_;
  };

  explicit Queue(Worker workers) : due_(workers), evicted_(workers) {}
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Takes a place in the departure's lane. REQUIRES !ticket.waits().
  void join(Ticket& ticket, const Departure& departure);
  // Gives the place up; the lane's last departure may be surplus then. REQUIRES ticket.waits().
  void leave(Ticket& ticket);
  // Whether anybody waits in any lane with a worse priority. Any thread may ask: a glance before the lock.
  [[nodiscard]] bool holds_worse(policy::Priority priority) const noexcept {
    return worst_.load(std::memory_order_relaxed) > priority;
  }
  // Whether a newcomer whom the limiter refused may have a departure of this lane: a surplus one, or that of
  // who is last in order, with a worse priority. Not where it would pay more than was paid for it.
  [[nodiscard]] bool has_place_for(const limit::Key& lane, policy::Priority priority, limit::Cost cost) const;
  // Takes that departure out of the lane, as if the limiter had just promised it; who gave way is evicted.
  // REQUIRES has_place_for() of the lane.
  [[nodiscard]] Departure displace(const limit::Key& lane, base::TimePoint retry_at);

  // Evicts those at the end of the order who would depart after their deadlines: surplus departures stay.
  void evict_overtaken(const limit::Key& lane);
  // Who of the worker was evicted and has not been told; null when there is none.
  [[nodiscard]] Ticket* take_evicted(Worker worker);
  [[nodiscard]] bool has_evicted(Worker worker) const noexcept { return !evicted_[worker].empty(); }
  // Forgets a ticket that was evicted, told or not.
  void forget(Ticket& ticket) noexcept;

  // A departure without a ticket: for who is next, or surplus. `keeper` looks after it where nobody waits.
  void offer(const Departure& departure, Worker keeper);

  // The last departure of a lane that has more than tickets, else null; and taking it away.
  [[nodiscard]] const Departure* surplus(const limit::Key& lane) const;
  void drop_surplus(const limit::Key& lane);

  // When the worker must call take_due(); TimePoint::max() for never.
  [[nodiscard]] base::TimePoint next_due(Worker worker) const noexcept;
  // The next ticket of the worker that departs by `now`, taken out; null when there is none.
  [[nodiscard]] Ticket* take_due(Worker worker, base::TimePoint now);

  // How many places a client has in a lane, and when its next one departs if nobody joins or leaves.
  // REQUIRES of the latter that it has one. Who may not depart before some time is taken for one who may.
  [[nodiscard]] std::size_t waiting(const limit::Key& lane, const limit::Key& client) const;
  [[nodiscard]] base::TimePoint next_turn(const limit::Key& lane, const limit::Key& client) const;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // The largest share of its places that is taken in a lane which everybody shares.
  [[nodiscard]] double fullness() const noexcept;

 private:
  // The tickets of one client in one priority of a lane.
  struct Client : Hook {
    List<Ticket> tickets;  // first come first
    std::size_t count = 0;
  };
  struct Lane : Hook {
    std::uint64_t places = 0;  // where it is everybody's, and in shared_ then
    std::deque<Departure> departures;
    std::map<std::pair<limit::Key, policy::Priority>, Client> clients;
    std::array<List<Client>, policy::kPriorities> turns;  // whose turn it is stands in front
    std::array<std::size_t, policy::kPriorities> tickets{};
    Worker keeper = 0;
    base::TimePoint due = base::TimePoint::max();  // as it stands in due_; max() for not at all
  };
  using Lanes = std::map<limit::Key, Lane>;

  void add(Lane& lane, const Departure& departure);
  [[nodiscard]] static std::size_t count(const Lane& lane) noexcept;
  struct Next {
    Ticket* ticket;      // null where nobody waits
    base::TimePoint at;  // when it departs
  };
  [[nodiscard]] static Next next(Lane& lane) noexcept;
  [[nodiscard]] static Ticket* last(Lane& lane) noexcept;
  void evict(Ticket& ticket, Eviction why);
  void take_out(Ticket& ticket, bool had_its_turn);
  void note_worst() noexcept;
  void reschedule(const limit::Key& key, Lane& lane);

  Lanes lanes_;
  List<Lane> shared_;
  std::array<std::size_t, policy::kPriorities> waiting_{};  // in all lanes
  std::atomic<int> worst_{-1};  // the worst priority that waits; -1 where none does
  std::vector<std::set<std::pair<base::TimePoint, limit::Key>>> due_;  // by keeper: the first departures
  std::vector<List<Ticket>> evicted_;                                  // by worker
  std::size_t size_ = 0;
};

}  // namespace weir::proxy
