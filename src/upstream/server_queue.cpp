#include "weir/upstream/server_queue.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace weir::upstream {

ServerQueue::Waiter::Waiter(ServerQueue& queue, policy::Priority priority, bool needs_another_server,
                            Wake wake)
    : queue_(queue),
      priority_(priority),
      needs_another_server_(needs_another_server),
      wake_(std::move(wake)) {}

ServerQueue::Waiter::~Waiter() {
  const std::scoped_lock lock(queue_.mutex_);
  queue_.waiters_.erase(queue_.waiters_.iterator_to(*this));
  --queue_.waiting_;
  if (needs_another_server_) --queue_.needs_another_server_;
  queue_.wake(queue_.waiters_.begin());
}

bool ServerQueue::Waiter::is_next() const {
  const std::scoped_lock lock(queue_.mutex_);
  const auto first = std::find_if(queue_.waiters_.begin(), queue_.waiters_.end(), [this](const Waiter& each) {
    return &each == this || !each.needs_another_server_;
  });
  return &*first == this;
}

void ServerQueue::Waiter::pass_on() {
  const std::scoped_lock lock(queue_.mutex_);
  queue_.wake(std::next(queue_.waiters_.iterator_to(*this)));
}

std::unique_ptr<ServerQueue::Waiter> ServerQueue::join(std::size_t most, policy::Priority priority,
                                                       bool needs_another_server, Wake wake) {
  const std::scoped_lock lock(mutex_);
  if (waiting_ >= most) return nullptr;
  std::unique_ptr<Waiter> waiter(new Waiter(*this, priority, needs_another_server, std::move(wake)));
  auto before = waiters_.end();
  while (before != waiters_.begin() && std::prev(before)->priority_ > priority) --before;
  waiters_.insert(before, *waiter);
  if (needs_another_server) ++needs_another_server_;
  ++waiting_;
  return waiter;
}

void ServerQueue::freed() noexcept {
  if (waiting_ == 0) return;
  const std::scoped_lock lock(mutex_);
  wake(waiters_.begin());
}

// Wakes the request at this position of the queue. If memory runs out, does not wake it; this is harmless,
// because the first waiting request checks for room once a second.
void ServerQueue::wake(const List::const_iterator& at) const noexcept {
  if (at == waiters_.end()) return;
  try {
    at->wake_();
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace weir::upstream
