// One lane of the queue (weir/proxy/queue.hpp): the waiting requests of one limiter key (their tickets, in
// order), and the instants at which requests may depart. Plain values that only the Queue changes.
#pragma once

#include "weir/base/time.hpp"
#include "weir/policy/route.hpp"
#include "weir/proxy/departure.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

namespace weir::proxy {

namespace in_lane {
using Hook = boost::intrusive::list_base_hook<>;
using OrderHook = boost::intrusive::set_base_hook<>;
template <class T>
using List = boost::intrusive::list<T, boost::intrusive::constant_time_size<false>>;
template <class T, class Before>
using Ordered =
    boost::intrusive::set<T, boost::intrusive::compare<Before>, boost::intrusive::constant_time_size<false>>;
}  // namespace in_lane

using WorkerIndex = std::size_t;  // counted from 0

enum class Eviction : std::uint8_t {
  None,
  Displaced,  // the lane was full, and a request of a better priority took this request's place
  Levelled,   // the lane was full, and a client with fewer waiting requests took this request's place
  Overtaken,  // the request cannot depart before its deadline any more, because other requests go first
};

// The place of one request in a lane. The ticket must stay at its address until it has departed, left the
// queue, or been removed by Queue::forget().
class QueueTicket : public in_lane::Hook, public in_lane::OrderHook {
 public:
  // `not_before`: the earliest time at which another rule lets the same request proceed. The ticket takes no
  // earlier departure. `deadline`: the ticket takes no later departure.
  QueueTicket(WorkerIndex worker, const limit::Key& client, policy::Priority priority,
              base::TimePoint not_before = {}, base::TimePoint deadline = base::TimePoint::max()) noexcept
      : worker_(worker), client_(client), priority_(priority), not_before_(not_before), deadline_(deadline) {}
  QueueTicket(const QueueTicket&) = delete;
  QueueTicket& operator=(const QueueTicket&) = delete;

  [[nodiscard]] bool waits() const noexcept { return lane_ != nullptr; }
  [[nodiscard]] WorkerIndex worker() const noexcept { return worker_; }
  [[nodiscard]] const limit::Key& client() const noexcept { return client_; }
  [[nodiscard]] policy::Priority priority() const noexcept { return priority_; }
  [[nodiscard]] base::TimePoint not_before() const noexcept { return not_before_; }
  // Returns the departure that the ticket took. While the ticket waits, returns the departure that it joined
  // with.
  [[nodiscard]] const Departure& departure() const noexcept { return departure_; }
  [[nodiscard]] Eviction eviction() const noexcept { return eviction_; }
  // Returns when the ticket would have departed. REQUIRES eviction() == Eviction::Overtaken.
  [[nodiscard]] base::TimePoint too_late_at() const noexcept { return too_late_at_; }

 private:
  friend class Queue;
  friend struct Lane;
  const WorkerIndex worker_;
  const limit::Key client_;
  const policy::Priority priority_;
  const base::TimePoint not_before_;
  const base::TimePoint deadline_;
  Eviction eviction_ = Eviction::None;
  base::TimePoint too_late_at_{};
  struct Lane* lane_ = nullptr;
  struct LaneClient* lane_client_ = nullptr;
  Departure departure_;
};

// A client's tickets of one priority in a lane.
struct LaneClient : in_lane::Hook, in_lane::OrderHook {
  in_lane::List<QueueTicket> tickets;  // in the order of arrival
  std::size_t count = 0;
  std::uint64_t turn = 0;  // the client with the smallest value has the next turn
};

struct Lane : in_lane::Hook, in_lane::OrderHook {
  struct FewerTickets {
    bool operator()(const LaneClient& a, const LaneClient& b) const noexcept {
      return a.count != b.count ? a.count < b.count : a.turn < b.turn;
    }
  };
  // The tickets of one priority, for all clients of the lane.
  struct Class {
    std::size_t tickets = 0;
    in_lane::List<LaneClient> turns;  // the client at the front has the next turn
    // The clients, ordered by their number of tickets. The client at the end has the most tickets, and owns
    // the ticket that departs last.
    in_lane::Ordered<LaneClient, FewerTickets> by_tickets;
  };
  struct HeldLonger {
    bool operator()(const QueueTicket& a, const QueueTicket& b) const noexcept {
      return a.not_before_ != b.not_before_ ? a.not_before_ > b.not_before_ : std::less<>{}(&a, &b);
    }
  };

  struct Next {
    QueueTicket* ticket;  // null if no waiting ticket may take the first departure, which then stays unused
    base::TimePoint at;   // when the ticket departs, or when the unused departure is due
  };
  // Returns the ticket that takes the first departure. REQUIRES that the lane has a departure.
  [[nodiscard]] Next next() noexcept;
  // Returns the client whose ticket departs last. Returns null if no ticket waits.
  [[nodiscard]] const LaneClient* last() const noexcept;
  // Returns the index of the latest departure that no waiting ticket needs. `but`: a waiting ticket to leave
  // out; may be null. REQUIRES more departures than tickets (without `but`).
  [[nodiscard]] std::size_t spare(const QueueTicket* but = nullptr) const noexcept;
  // Returns the last departure if no waiting ticket needs it, else null.
  [[nodiscard]] const Departure* surplus() const noexcept;

  limit::Key key{};
  // If all clients share the lane: how many units may wait in it, for Queue::fullness(). Otherwise 0.
  std::uint64_t max_waiting = 0;
  std::uint64_t cost = 0;  // the sum of the costs of all tickets
  std::size_t tickets = 0;
  std::deque<Departure> departures;
  std::map<std::pair<limit::Key, policy::Priority>, LaneClient> clients;
  std::array<Class, policy::kPriorities> classes;
  // tickets with a not_before; the latest not_before comes first
  in_lane::Ordered<QueueTicket, HeldLonger> held;
  std::size_t held_count = 0;
  WorkerIndex keeper = 0;
  // When the worker that keeps the lane must act next. max(): the lane is not in Queue::due_.
  base::TimePoint due = base::TimePoint::max();
};

}  // namespace weir::proxy
