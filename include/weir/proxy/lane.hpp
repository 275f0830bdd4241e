// One lane of the queue (weir/proxy/queue.hpp): its departures, and who waits for them in which order. Plain
// values; the Queue alone changes them.
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
  Displaced,  // its lane was full, and one of a better priority came
  Levelled,   // its lane was full and its client had the most places; one of a client with fewer came
  Overtaken,  // so many go first that it cannot depart before its deadline
};

// A place in a lane. Stays where it is, and alive, until it was taken or left.
class QueueTicket : public in_lane::Hook, public in_lane::OrderHook {
 public:
  // `not_before`: what another rule of the same request has promised; earlier departures are for others.
  // `deadline`: a later departure is of no use to it.
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
  // Which one it took, once it was taken.
  [[nodiscard]] const Departure& departure() const noexcept { return departure_; }
  [[nodiscard]] Eviction eviction() const noexcept { return eviction_; }
  // When it would have departed. REQUIRES eviction() Overtaken.
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
  struct LaneClient* place_ = nullptr;
  Departure departure_;
};

// The tickets of one client in one priority of a lane.
struct LaneClient : in_lane::Hook, in_lane::OrderHook {
  in_lane::List<QueueTicket> tickets;  // first come first
  std::size_t count = 0;
  std::uint64_t turn = 0;  // the later its turn comes, the greater
};

struct Lane : in_lane::Hook, in_lane::OrderHook {
  struct FewerPlaces {
    bool operator()(const LaneClient& a, const LaneClient& b) const noexcept {
      return a.count != b.count ? a.count < b.count : a.turn < b.turn;
    }
  };
  // Those who wait with one priority.
  struct Class {
    std::size_t tickets = 0;
    in_lane::List<LaneClient> turns;                      // whose turn it is stands in front
    in_lane::Ordered<LaneClient, FewerPlaces> by_places;  // who is last to depart is the last one's
  };
  struct HeldLonger {
    bool operator()(const QueueTicket& a, const QueueTicket& b) const noexcept {
      return a.not_before_ != b.not_before_ ? a.not_before_ > b.not_before_ : std::less<>{}(&a, &b);
    }
  };

  struct Next {
    QueueTicket* ticket;  // null where nobody may have the first departure, and it passes unused
    base::TimePoint at;   // when it departs
  };
  // Who has the first departure. REQUIRES that there is one.
  [[nodiscard]] Next next() noexcept;
  // Whose the last ticket to depart is; null where nobody waits.
  [[nodiscard]] const LaneClient* last() const noexcept;
  // The latest departure that those who wait can do without; `but`, who may be null, counts as one who does
  // not wait. REQUIRES more departures than others wait.
  [[nodiscard]] std::size_t spare(const QueueTicket* but = nullptr) const noexcept;
  // The last one, where nobody who waits needs it, else null.
  [[nodiscard]] const Departure* surplus() const noexcept;

  limit::Key key{};
  std::uint64_t places = 0;  // where it is everybody's, and among the queue's shared lanes then
  std::uint64_t cost = 0;    // of all tickets
  std::size_t tickets = 0;
  std::deque<Departure> departures;
  std::map<std::pair<limit::Key, policy::Priority>, LaneClient> clients;
  std::array<Class, policy::kPriorities> classes;
  in_lane::Ordered<QueueTicket, HeldLonger> held;  // those of another rule's not_before, the latest first
  std::size_t held_count = 0;
  WorkerIndex keeper = 0;
  base::TimePoint due = base::TimePoint::max();  // ordered by it in the queue unless it is max()
};

}  // namespace weir::proxy
