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
//  1. A lane has at least as many departures as tickets, ascending: nobody waits for nothing.
//  2. It has more (a surplus, the last ones) only where the store did not take one back, because by then it
//     had promised a later one to a request that has not joined yet. Whoever joins takes the surplus, and
//     brings the last one, which can go back in its place. So no departure passes unused while one waits.
//  3. Each lane has one keeper: the worker of the ticket that is next. Only that worker takes its departures,
//     so that a ticket ends on its own worker's thread and on no other.
//  4. An evicted ticket is in no lane, and in its worker's list until that worker took it from there.
//  5. Memory is asked for before anything changes: where there is none, join() and offer() throw and were
//     not called. Nothing else asks for any.
#pragma once

#include "weir/base/time.hpp"
#include "weir/policy/route.hpp"
#include "weir/proxy/departure.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

namespace weir::proxy {

class Queue {
  struct Client;
  struct Lane;
  using Hook = boost::intrusive::list_base_hook<>;
  using OrderHook = boost::intrusive::set_base_hook<>;
  template <class T>
  using List = boost::intrusive::list<T, boost::intrusive::constant_time_size<false>>;
  template <class T, class Before>
  using Ordered = boost::intrusive::set<T, boost::intrusive::compare<Before>,
                                        boost::intrusive::constant_time_size<false>>;

 public:
  using Worker = std::size_t;  // counted from 0

  enum class Eviction : std::uint8_t {
    None,
    Displaced,  // its lane was full, and one of a better priority came
    Levelled,   // its lane was full and its client had the most places; one of a client with fewer came
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

   private:
    friend class Queue;
    const Worker worker_;
    const limit::Key client_;
    const policy::Priority priority_;
    const base::TimePoint not_before_;
    const base::TimePoint deadline_;
    Eviction eviction_ = Eviction::None;
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

  // The last departure of a lane that has more than tickets, else null; and taking it away.
  [[nodiscard]] const Departure* surplus(const limit::Key& lane) const;
  void drop_surplus(const limit::Key& lane) noexcept;

  // When the worker must call take_due(); TimePoint::max() for never.
  [[nodiscard]] base::TimePoint next_due(Worker worker) const noexcept;
  // The next ticket of the worker that departs by `now`, taken out; null when there is none.
  [[nodiscard]] Ticket* take_due(Worker worker, base::TimePoint now) noexcept;

  // How many places a client has in a lane, and when its next one departs if nobody joins or leaves.
  // REQUIRES of the latter that it has one. Who may not depart before some time is taken for one who may.
  [[nodiscard]] std::size_t waiting(const limit::Key& lane, const limit::Key& client) const;
  [[nodiscard]] base::TimePoint next_turn(const limit::Key& lane, const limit::Key& client) const;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // The largest share of its places that is taken in a lane which everybody shares.
  [[nodiscard]] double fullness() const noexcept;

 private:
  // The tickets of one client in one priority of a lane.
  struct Client : Hook, OrderHook {
    List<Ticket> tickets;  // first come first
    std::size_t count = 0;
    std::uint64_t turn = 0;  // the later its turn comes, the greater
  };
  struct FewerPlaces {
    bool operator()(const Client& a, const Client& b) const noexcept {
      return a.count != b.count ? a.count < b.count : a.turn < b.turn;
    }
  };
  // Those who wait in a lane with one priority.
  struct Class {
    std::size_t tickets = 0;
    List<Client> turns;                      // whose turn it is stands in front
    Ordered<Client, FewerPlaces> by_places;  // who is last to depart is the last one's
  };
  struct Lane : Hook, OrderHook {
    limit::Key key{};
    std::uint64_t places = 0;  // where it is everybody's, and in shared_ then
    std::size_t tickets = 0;
    std::deque<Departure> departures;
    std::map<std::pair<limit::Key, policy::Priority>, Client> clients;
    std::array<Class, policy::kPriorities> classes;
    Worker keeper = 0;
    base::TimePoint due = base::TimePoint::max();  // in due_ unless it is max()
  };
  struct Sooner {
    bool operator()(const Lane& a, const Lane& b) const noexcept {
      return a.due != b.due ? a.due < b.due : a.key < b.key;
    }
  };

  [[nodiscard]] Lane& lane_of(const limit::Key& key, Worker keeper);
  void add(Lane& lane, const Departure& departure);
  void remove_unused(Lane& lane) noexcept;
  struct Next {
    Ticket* ticket;      // null where nobody waits
    base::TimePoint at;  // when it departs
  };
  [[nodiscard]] static Next next(Lane& lane) noexcept;
  [[nodiscard]] static const Client* last(const Lane& lane) noexcept;
  [[nodiscard]] static bool gives_way(const Lane& lane, const Newcomer& newcomer);
  void take_place(Ticket& ticket, Lane& lane, Client& client) noexcept;
  void take_out(Ticket& ticket, bool had_its_turn) noexcept;
  void evict_last(Lane& lane, Eviction why) noexcept;
  void note_yielding() noexcept;
  void reschedule(Lane& lane) noexcept;

  std::map<limit::Key, Lane> lanes_;
  List<Lane> shared_;
  std::array<std::size_t, policy::kPriorities> waiting_{};  // in all lanes
  std::array<std::size_t, policy::kPriorities> crowds_{};   // clients with several places in one lane
  std::atomic<int> yields_to_{-1};          // the worst priority that may find a place; -1: none may
  std::vector<Ordered<Lane, Sooner>> due_;  // by keeper
  std::vector<List<Ticket>> evicted_;       // by worker
  std::uint64_t turns_ = 0;                 // that were given, over all lanes
  std::size_t size_ = 0;
};

}  // namespace weir::proxy
