#include "weir/upstream/server_queue.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace weir::upstream {

ServerQueue::Place::Place(ServerQueue& queue, policy::Priority priority, bool choosy, Wake wake)
    : queue_(queue), priority_(priority), choosy_(choosy), wake_(std::move(wake)) {}

ServerQueue::Place::~Place() {
  const std::scoped_lock lock(queue_.mutex_);
  queue_.places_.erase(queue_.places_.iterator_to(*this));
  --queue_.waiting_;
  if (choosy_) --queue_.choosy_;
  queue_.wake(queue_.places_.begin());
}

bool ServerQueue::Place::is_next() const {
  const std::scoped_lock lock(queue_.mutex_);
  const auto first = std::find_if(queue_.places_.begin(), queue_.places_.end(),
                                  [this](const Place& each) { return &each == this || !each.choosy_; });
  return &*first == this;
}

void ServerQueue::Place::pass_on() {
  const std::scoped_lock lock(queue_.mutex_);
  queue_.wake(std::next(queue_.places_.iterator_to(*this)));
}

std::unique_ptr<ServerQueue::Place> ServerQueue::join(std::size_t most, policy::Priority priority,
                                                      bool choosy, Wake wake) {
  const std::scoped_lock lock(mutex_);
  if (waiting_ >= most) return nullptr;
  std::unique_ptr<Place> place(new Place(*this, priority, choosy, std::move(wake)));
  auto before = places_.end();
  while (before != places_.begin() && std::prev(before)->priority_ > priority) --before;
  places_.insert(before, *place);
  if (choosy) ++choosy_;
  ++waiting_;
  return place;
}

void ServerQueue::freed() noexcept {
  if (waiting_ == 0) return;
  const std::scoped_lock lock(mutex_);
  wake(places_.begin());
}

// If memory runs out, no wake-up is sent. Waiting requests look once a second anyway.
void ServerQueue::wake(const List::const_iterator& at) const noexcept {
  if (at == places_.end()) return;
  try {
    at->wake_();
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace weir::upstream
