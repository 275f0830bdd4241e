// Requests of all workers that wait for a server of an upstream to have room. Higher priorities come first,
// then earlier requests.
//
// Thread-safe. A wake-up does not reserve room: the first request in the queue wakes up and must check for
// room. If there is none, the request keeps its place in the queue.
#pragma once

#include "weir/policy/route.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

#include <boost/intrusive/list.hpp>

namespace weir::upstream {

class ServerQueue {
 public:
  // Tells a waiting request to look for room. May be called from any thread and under a lock, so it may only
  // post.
  using Wake = std::function<void()>;

  // A waiting request's place in the queue. The destructor gives up the place and wakes the first request in
  // the queue, because there may be more room. The queue must outlive the place.
  class Waiter : public boost::intrusive::list_base_hook<> {
   public:
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    // Returns true if this request may take room: every request before it in the queue is choosy.
    [[nodiscard]] bool is_next() const;
    // Wakes the next request, because the announced room does not suit this one.
    void pass_on();

   private:
    friend class ServerQueue;
    Waiter(ServerQueue& queue, policy::Priority priority, bool choosy, Wake wake);

    ServerQueue& queue_;
    const policy::Priority priority_;
    const bool choosy_;
    const Wake wake_;
  };

  // Joins the queue. `most`: the most requests that may wait, including this one. `choosy`: some servers do
  // not suit the request, so it does not hold up others. Returns null if the queue is full.
  [[nodiscard]] std::unique_ptr<Waiter> join(std::size_t most, policy::Priority priority, bool choosy,
                                             Wake wake);

  // Returns true if a request that took room now would overtake a waiting one.
  [[nodiscard]] bool is_awaited() const noexcept { return waiting_ != choosy_; }
  [[nodiscard]] std::size_t size() const noexcept { return waiting_; }

  // Wakes the first request in the queue. Must be called after the room became free. Otherwise one request
  // could find no room and join the queue while this call finds the queue empty.
  void freed() noexcept;

 private:
  using List = boost::intrusive::list<Waiter>;

  // REQUIRES the mutex.
  void wake(const List::const_iterator& at) const noexcept;

  mutable std::mutex mutex_;
  List waiters_;                         // under the mutex
  std::atomic<std::size_t> waiting_{0};  // written under the mutex
  std::atomic<std::size_t> choosy_{0};   // written under the mutex
};

}  // namespace weir::upstream
