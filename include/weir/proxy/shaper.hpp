// Shaper makes delayed requests wait for their departure. It blocks no thread: a waiting request is a
// suspended coroutine, and all waiting requests of a worker share one timer.
//
// The Queue decides which request departs when. All workers share one Queue, because they also share the
// limiters' state. If each worker had its own queue, order and turns would hold only within one worker. A
// departure that one worker frees would be lost if another worker has a later departure, because a store
// takes back only its latest departure. One mutex guards the queue. A request that waits costs a few map
// operations under the mutex; other requests do not take the mutex.
//
// A Shaper belongs to its worker, and each of its tickets ends on that worker's thread. So one thread alone
// decides whether a ticket departed or left. Other workers only ask a Shaper to look at the queue, when one
// of the Shaper's tickets is next or was evicted.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/key_table.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/clock.hpp"
#include "weir/net/signal.hpp"
#include "weir/proxy/queue.hpp"
#include "weir/redis/store.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace weir::proxy {

class Shaper;

// The state that the shapers of all workers share. Must outlive the shapers and their tickets.
// server::Program owns the object.
struct SharedQueue {
  explicit SharedQueue(std::size_t workers) : queue(workers), shapers(workers, nullptr) {}

  [[nodiscard]] double fullness() {
    const std::lock_guard lock(mutex);
    return queue.fullness();
  }

  std::mutex mutex;  // guards all members below; must be locked before the key table's mutex
  Queue queue;
  // The shaper of each worker; the index is the worker. Null before the shaper is made and after it is
  // destroyed.
  std::vector<Shaper*> shapers;
};

class Shaper {
 public:
  // The place of a waiting request in the queue. The coroutine frame of the request owns the ticket.
  class Ticket : public Queue::Ticket {
   public:
    Ticket(const Shaper& shaper, const limit::Key& client, policy::Priority priority,
           base::TimePoint not_before = {}, base::TimePoint deadline = base::TimePoint::max())
        : Queue::Ticket(shaper.index_, client, priority, not_before, deadline),
          shared_(shaper.shared_),
          wake_(shaper.executor_) {}
    ~Ticket();

    // Ends the wait early. Does nothing if the wait has ended.
    void leave() noexcept { wake_.raise(); }

   private:
    friend class Shaper;
    SharedQueue& shared_;
    net::Signal wake_;
    bool joined_ = false;  // true while the ticket is in the queue; only its worker's thread uses it
    bool departed_ = false;
  };

  // `redis`: null if no rule has its state in Redis. REQUIRES that `shared` has room for another shaper.
  Shaper(net::Executor executor, const net::Clock& clock, SharedQueue& shared, limit::KeyTable& table,
         redis::Store* redis);
  ~Shaper();
  Shaper(const Shaper&) = delete;
  Shaper& operator=(const Shaper&) = delete;

  enum class End : std::uint8_t {
    Departed,   // the request departs now
    Left,       // leave() ended the wait
    Crowded,    // `most` requests of the client already wait in the lane, so the request did not join
    Displaced,  // the lane was full, and a request of a better priority took this request's place
    Levelled,   // the lane was full, and a client with fewer waiting requests took this request's place
    Overtaken,  // the request could not depart before its deadline any more
  };
  struct QueueResult {
    End end;
    // Crowded: the time until the client's next departure. Left: the time until a new request of the same
    // priority would depart. Overtaken: the time until this request would have departed.
    base::Duration retry_after{0};
  };
  // Waits in the departure's lane. `most`: how many requests of the client may wait in the lane. If the
  // request does not depart, its departure passes to another request or returns to the store.
  [[nodiscard]] net::Task<QueueResult> wait(Ticket& ticket, const Departure& departure, std::uint64_t most);

  // Returns true if some waiting request may give way to a request of this priority. Takes no lock, because
  // weir calls this function for every refused request, and the result is usually false.
  [[nodiscard]] bool may_displace(policy::Priority priority) const noexcept {
    return shared_.queue.may_yield_to(priority);
  }
  // Takes a departure for the newcomer: a surplus departure, or the departure of a request that this function
  // evicts. `charge_rest` charges the newcomer's other limits under the lock. Returns nullopt and evicts no
  // request if no departure is available or `charge_rest` returns false.
  [[nodiscard]] std::optional<Queue::Displacement> displace(const Newcomer& newcomer,
                                                            const std::function<bool()>& charge_rest);

  // Gives an unused departure to the next request of its lane, or returns it to the store.
  void pass_on(const Departure& departure);
  // Must be called after the store (key table or Redis) has taken back the lane's last departure. A store
  // takes back only its latest departure, so earlier surplus departures can return only now. This function
  // returns them to the store.
  void return_surplus(const limit::Key& lane);

  // Returns the number of waiting requests of all workers.
  [[nodiscard]] std::size_t waiting() const;
  // Returns how full the fullest lane is, from 0 to 1. Considers only lanes that all clients share.
  [[nodiscard]] double fullness() const { return shared_.fullness(); }

 private:
  [[nodiscard]] std::optional<QueueResult> join(Ticket& ticket, const Departure& departure,
                                                std::uint64_t most);
  [[nodiscard]] QueueResult leave(Ticket& ticket);
  [[nodiscard]] base::Duration until(base::TimePoint at) const;
  void check_queue();
  // The functions from here to rearm() must be called while SharedQueue::mutex is locked.
  void offer(const Departure& departure);
  void settle(const limit::Key& lane);
  [[nodiscard]] bool take_back(const Departure& departure);
  void wake_due();
  void post_to_other_workers();
  void rearm();

  const net::Executor executor_;
  const net::Clock& clock_;
  SharedQueue& shared_;
  limit::KeyTable& table_;
  redis::Store* const redis_;
  std::size_t index_ = 0;
  net::Timer timer_;
  // When this worker's timer ends. Guarded by SharedQueue::mutex, because other workers read it.
  base::TimePoint armed_for_ = base::TimePoint::max();
  // True: a check_queue() is posted to this worker. Guarded by SharedQueue::mutex.
  bool check_posted_ = false;
};

}  // namespace weir::proxy
