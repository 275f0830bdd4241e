// Requests that wait for a server of an upstream to have room, those of all workers in one order: the higher
// priority first, and among equals who came first.
//
// Any thread may ask and tell. Room is not handed over but told of: whoever is next is woken and looks for
// itself, so that a wake-up which comes to nobody costs a look and no place.
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
  // Tells one that waits to look whether there is room. From any thread and under a lock: it may only post.
  using Wake = std::function<void()>;

  // One that waits, until it is destroyed. Then whoever is first is woken: there may be more room, and what
  // this one was told of may be left. The queue outlives it.
  class Place : public boost::intrusive::list_base_hook<> {
   public:
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // Nobody stands before it who would take any room that it could take.
    [[nodiscard]] bool is_next() const;
    // There is room perhaps that is none for this one: who stands behind it may look.
    void pass_on();

   private:
    friend class ServerQueue;
    Place(ServerQueue& queue, policy::Priority priority, bool choosy, Wake wake);

    ServerQueue& queue_;
    const policy::Priority priority_;
    const bool choosy_;
    const Wake wake_;
  };

  // `most`: that may wait, this one among them. `choosy`: some servers are none for it, so it holds nobody
  // up. Null: it is full.
  [[nodiscard]] std::unique_ptr<Place> join(std::size_t most, policy::Priority priority, bool choosy,
                                            Wake wake);

  // Whether somebody waits who would be overtaken by whoever took room now.
  [[nodiscard]] bool is_awaited() const noexcept { return waiting_ != choosy_; }
  [[nodiscard]] std::size_t size() const noexcept { return waiting_; }

  // There is room, or may be. After it has been made: of two, one who joins and finds none and one who makes
  // it and finds nobody waiting, there is at most one.
  void freed() noexcept;

 private:
  using List = boost::intrusive::list<Place>;

  // REQUIRES the mutex.
  void wake(const List::const_iterator& at) const noexcept;

  mutable std::mutex mutex_;
  List places_;                          // under the mutex
  std::atomic<std::size_t> waiting_{0};  // written under it
  std::atomic<std::size_t> choosy_{0};   // likewise
};

}  // namespace weir::upstream
