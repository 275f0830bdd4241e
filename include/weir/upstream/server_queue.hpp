// ServerQueue orders the requests of all workers that wait until a server of an upstream has room. Higher
// priorities come first, then earlier requests.
//
// The ServerGroups of the upstream, before and after a reload, own the queue together. Thread-safe. A wake-up
// does not reserve room at a server. The woken request must check for room, and keeps its position in the
// queue if it finds none.
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
  // Makes a waiting request check for room. May be called from any thread and under a lock, so it must only
  // post a task to the request's worker.
  using Wake = std::function<void()>;

  // A waiting request's position in the queue. The destructor removes the request and wakes the first request
  // in the queue, because there may be room for it. The queue must outlive the Waiter.
  class Waiter : public boost::intrusive::list_base_hook<> {
   public:
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    // Returns true if this request may use a server with room now: it is the first in the queue, or all
    // requests before it need another server (see join()).
    [[nodiscard]] bool is_next() const;
    // Wakes the next request in the queue. Must be called if this request must not use the server that has
    // room.
    void pass_on();

   private:
    friend class ServerQueue;
    Waiter(ServerQueue& queue, policy::Priority priority, bool needs_another_server, Wake wake);

    ServerQueue& queue_;
    const policy::Priority priority_;
    const bool needs_another_server_;
    const Wake wake_;
  };

  // Adds a request to the queue. `most`: the largest number of waiting requests, including this one.
  // `needs_another_server`: true if the request must not use some of the servers, for example because they
  // have failed for it. Later requests may overtake this request, because the server with room may be one
  // that this request must not use. Returns null if the queue is full.
  [[nodiscard]] std::unique_ptr<Waiter> join(std::size_t most, policy::Priority priority,
                                             bool needs_another_server, Wake wake);

  // Returns true if a new request must not use room now, because it would overtake a waiting request.
  [[nodiscard]] bool is_awaited() const noexcept { return waiting_ != needs_another_server_; }
  [[nodiscard]] std::size_t size() const noexcept { return waiting_; }

  // Wakes the first request in the queue. Must be called after a server has got room, not before: a request
  // could otherwise find no room and join the queue after the call, and nothing would wake it.
  void freed() noexcept;

 private:
  using List = boost::intrusive::list<Waiter>;

  // REQUIRES that the caller has locked the mutex.
  void wake(const List::const_iterator& at) const noexcept;

  mutable std::mutex mutex_;
  List waiters_;                                      // protected by the mutex
  std::atomic<std::size_t> waiting_{0};               // written only under the mutex
  std::atomic<std::size_t> needs_another_server_{0};  // written only under the mutex
};

}  // namespace weir::upstream
