// Where delayed requests wait for their departure. Nothing is blocked: a request that waits is a coroutine
// that sleeps, and all of a worker's share one timer.
//
// Who departs when is the Queue's business, and there is one for all workers, because the limiter's state is
// shared as well: with a queue for each, order and turns would hold only within a worker, and a departure
// freed in one would be lost as soon as another holds a later one. It is behind one mutex: a request that has
// to wait costs a few map operations under it, and no other request takes it.
//
// A Shaper belongs to its worker, and so does the end of each of its tickets: "departed" and "left" are told
// apart on one thread. Other workers only ask it to look at the queue, when its ticket has become the next or
// was evicted.
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

// What the shapers of all workers share. Outlives them and their tickets.
struct SharedQueue {
  explicit SharedQueue(std::size_t workers) : queue(workers), shapers(workers, nullptr) {}

  [[nodiscard]] double fullness() {
    const std::lock_guard lock(mutex);
    return queue.fullness();
  }

  std::mutex mutex;  // of everything below; the key table's may be taken under it
  Queue queue;
  std::vector<Shaper*> shapers;  // by worker; null before it was made and after it is gone
};

class Shaper {
 public:
  // A place in the queue. Lives in the frame of the request that waits.
  class Ticket : public Queue::Ticket {
   public:
    Ticket(const Shaper& shaper, const limit::Key& client, policy::Priority priority,
           base::TimePoint not_before = {}, base::TimePoint deadline = base::TimePoint::max())
        : Queue::Ticket(shaper.index_, client, priority, not_before, deadline),
          shared_(shaper.shared_),
          wake_(shaper.executor_) {}
    ~Ticket();

    // Ends the wait early, unless it has ended.
    void leave() noexcept { wake_.raise(); }

   private:
    friend class Shaper;
    SharedQueue& shared_;
    net::Signal wake_;
    bool joined_ = false;  // the queue knows it; of its own thread, as departed_ is
    bool departed_ = false;
  };

  // `redis`: null where no rule has its state there. REQUIRES fewer shapers than `shared` has room for.
  Shaper(net::Executor executor, const net::Clock& clock, SharedQueue& shared, limit::KeyTable& table,
         redis::Store* redis);
  ~Shaper();
  Shaper(const Shaper&) = delete;
  Shaper& operator=(const Shaper&) = delete;

  enum class End : std::uint8_t {
    Departed,   // now it is this request's turn
    Left,       // by leave()
    Crowded,    // its client has `most` places in the lane already: it was not let in
    Displaced,  // the lane was full, and one of a better priority came
    Levelled,   // the lane was full, and one of a client with fewer places came
    Overtaken,  // it could not have departed before its deadline any more
  };
  struct QueueResult {
    End end;
    // Of Crowded: until the client's next departure. Of Left and Overtaken: until one of its priority that
    // came now would depart.
    base::Duration retry_after{0};
  };
  // Waits in the departure's lane. Unless the request departs, its departure is given to another, or back.
  [[nodiscard]] net::Task<QueueResult> wait(Ticket& ticket, const Departure& departure, std::uint64_t most);

  // Whether anybody may give way: a glance, without the lock, for the many that are refused otherwise.
  [[nodiscard]] bool may_displace(policy::Priority priority) const noexcept {
    return shared_.queue.may_yield_to(priority);
  }
  // The departure of a surplus, or of one who gives way and is told at once. `charge_rest` charges what else
  // the newcomer owes, under the lock; false: nobody is displaced. nullopt: nobody could be.
  [[nodiscard]] std::optional<Queue::Won> displace(const Newcomer& newcomer,
                                                   const std::function<bool()>& charge_rest);

  // One that will not be used by whom it was promised: it is for the next of its lane, or goes back.
  void pass_on(const Departure& departure);
  // The store has taken the lane's last departure back: now it may take those that were left over before it.
  void return_surplus(const limit::Key& lane);

  // The places taken in all workers' lanes.
  [[nodiscard]] std::size_t waiting() const;
  // How full the fullest lane is that everybody shares, from 0 to 1.
  [[nodiscard]] double fullness() const { return shared_.fullness(); }

 private:
  [[nodiscard]] std::optional<QueueResult> join(Ticket& ticket, const Departure& departure,
                                                std::uint64_t most);
  [[nodiscard]] QueueResult leave(Ticket& ticket);
  [[nodiscard]] base::Duration until(base::TimePoint at) const;
  void look();
  // These under the lock.
  void offer(const Departure& departure);
  void settle(const limit::Key& lane);
  [[nodiscard]] bool take_back(const Departure& departure);
  void wake_due();
  void ask_others();
  void rearm();

  const net::Executor executor_;
  const net::Clock& clock_;
  SharedQueue& shared_;
  limit::KeyTable& table_;
  redis::Store* const redis_;
  std::size_t index_ = 0;
  net::Timer timer_;
  base::TimePoint armed_for_ = base::TimePoint::max();  // read by others: under the lock
  bool asked_ = false;                                  // a look() is on its way here; under the lock
};

}  // namespace weir::proxy
