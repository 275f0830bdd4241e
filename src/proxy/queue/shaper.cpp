#include "weir/proxy/shaper.hpp"

#include <algorithm>
#include <cassert>

#include <boost/asio/post.hpp>

namespace weir::proxy {

// Removes the ticket from the queue. The ticket may still wait, because the destruction of an event loop also
// destroys the waiting coroutine frames and their tickets.
Shaper::Ticket::~Ticket() {
  if (!joined_) return;
  const std::lock_guard lock(shared_.mutex);
  if (waits())
    shared_.queue.leave(*this);
  else
    shared_.queue.forget(*this);
}

Shaper::Shaper(net::Executor executor, const net::Clock& clock, SharedQueue& shared, limit::KeyTable& table,
               redis::Store* redis)
    : executor_(executor), clock_(clock), shared_(shared), table_(table), redis_(redis), timer_(executor) {
  const std::lock_guard lock(shared_.mutex);
  const auto free = std::find(shared_.shapers.begin(), shared_.shapers.end(), nullptr);
  assert(free != shared_.shapers.end());
  index_ = static_cast<std::size_t>(free - shared_.shapers.begin());
  *free = this;
}

Shaper::~Shaper() {
  const std::lock_guard lock(shared_.mutex);
  shared_.shapers[index_] = nullptr;
}

std::size_t Shaper::waiting() const {
  const std::lock_guard lock(shared_.mutex);
  return shared_.queue.size();
}

net::Task<Shaper::QueueResult> Shaper::wait(Ticket& ticket, const Departure& departure, std::uint64_t most) {
  const auto refused = join(ticket, departure, most);
  if (refused) co_return *refused;
  co_await ticket.wake_.wait();
  if (ticket.departed_) co_return QueueResult{End::Departed};
  co_return leave(ticket);
}

// Adds the ticket and its departure to the queue, and returns nullopt. If the client already has `most`
// waiting requests, offers the departure to the lane and returns why the ticket did not join. The caller must
// not use the departure after this call, even if the call throws. ~Ticket() removes a ticket that has joined.
std::optional<Shaper::QueueResult> Shaper::join(Ticket& ticket, const Departure& departure,
                                                std::uint64_t most) {
  const auto& lane = departure.charge.key;
  const std::lock_guard lock(shared_.mutex);
  auto& queue = shared_.queue;
  std::optional<QueueResult> refused;
  const auto crowded_until = queue.crowded_until(lane, ticket.client(), most);
  if (!crowded_until) {
    try {
      queue.join(ticket, departure);
    } catch (...) {
      (void)take_back(departure);
      throw;
    }
    ticket.joined_ = true;
    queue.evict_overtaken(lane);
  } else {
    refused = QueueResult{End::Crowded, until(*crowded_until)};
    offer(departure);
  }
  settle(lane);
  return refused;
}

base::Duration Shaper::until(base::TimePoint at) const {
  return std::max(at - clock_.now(), base::Duration(0));
}

// Ends a wait that Ticket::leave() or an eviction has woken. Checks under the lock which of the two came
// first.
Shaper::QueueResult Shaper::leave(Ticket& ticket) {
  const std::lock_guard lock(shared_.mutex);
  ticket.joined_ = false;
  if (ticket.waits()) {
    const auto departure_at = shared_.queue.departure_behind(ticket);
    shared_.queue.leave(ticket);
    settle(ticket.departure().charge.key);
    return {End::Left, until(departure_at)};
  }
  shared_.queue.forget(ticket);
  switch (ticket.eviction()) {
    case Queue::Eviction::Overtaken:
      return {End::Overtaken, until(ticket.too_late_at())};
    case Queue::Eviction::Levelled:
      return {End::Levelled};
    default:
      return {End::Displaced};
  }
}

std::optional<Queue::Displacement> Shaper::displace(const Newcomer& newcomer,
                                                    const std::function<bool()>& charge_rest) {
  if (!may_displace(newcomer.priority)) return std::nullopt;
  auto& queue = shared_.queue;
  const std::lock_guard lock(shared_.mutex);
  if (!queue.has_departure_for(newcomer) || !charge_rest()) return std::nullopt;
  const auto won = queue.displace(newcomer);
  settle(newcomer.lane);
  return won;
}

void Shaper::pass_on(const Departure& departure) {
  const std::lock_guard lock(shared_.mutex);
  offer(departure);
  settle(departure.charge.key);
}

void Shaper::return_surplus(const limit::Key& lane) {
  const std::lock_guard lock(shared_.mutex);
  settle(lane);
}

// Adds a departure to its lane. If memory runs out, returns the departure to the store and throws
// std::bad_alloc.
void Shaper::offer(const Departure& departure) {
  try {
    shared_.queue.offer(departure, index_);
  } catch (...) {
    (void)take_back(departure);
    throw;
  }
}

void Shaper::check_queue() {
  const std::lock_guard lock(shared_.mutex);
  check_posted_ = false;
  wake_due();
  post_to_other_workers();
  rearm();
}

// Must be called after a lane has changed. Returns surplus departures to the store and wakes workers.
void Shaper::settle(const limit::Key& lane) {
  auto& queue = shared_.queue;
  while (const auto* last = queue.surplus(lane)) {
    if (!take_back(*last)) break;
    queue.drop_surplus(lane);
  }
  wake_due();
  post_to_other_workers();
  rearm();
}

// Gives the departure back to its store (the key table or Redis). Returns true if this process must no longer
// use the departure. The key table may decline, and then the result is false. For Redis the result is always
// true: Redis may promise the departure to another weir at once, so this function does not wait for the
// answer of Redis.
bool Shaper::take_back(const Departure& departure) {
  if (!departure.in_redis)
    return table_.refund(departure.charge, departure.promised, clock_.now(), departure.overflow);
  redis_->refund(departure.charge, departure.promised);
  return true;
}

// Wakes this worker's tickets that are due or evicted. All of them are of type Shaper::Ticket, so the casts
// are safe.
void Shaper::wake_due() {
  const auto now = clock_.now();
  while (auto* const taken = shared_.queue.take_due(index_, now)) {
    auto& ticket = static_cast<Ticket&>(*taken);  // NOLINT(cppcoreguidelines-pro-type-static-cast-downcast)
    ticket.departed_ = true;
    ticket.joined_ = false;
    ticket.wake_.raise();
  }
  while (auto* const evicted = shared_.queue.take_evicted(index_))
    static_cast<Ticket&>(*evicted).leave();  // NOLINT(cppcoreguidelines-pro-type-static-cast-downcast)
}

// Wakes each other worker that has an evicted ticket, or a departure that is due before the worker's timer
// ends.
void Shaper::post_to_other_workers() {
  for (std::size_t i = 0; i < shared_.shapers.size(); ++i) {
    auto* const other = shared_.shapers[i];
    if (other == nullptr || other == this || other->check_posted_) continue;
    if (shared_.queue.next_due(i) >= other->armed_for_ && !shared_.queue.has_evicted(i)) continue;
    net::asio::post(other->executor_, [other] { other->check_queue(); });
    other->check_posted_ = true;  // check_queue() resets the flag, but must first wait for the lock held here
  }
}

void Shaper::rearm() {
  const auto wanted = shared_.queue.next_due(index_);
  if (wanted == armed_for_) return;
  armed_for_ = base::TimePoint::max();
  if (wanted == base::TimePoint::max()) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(clock_.steady(wanted));
  timer_.async_wait([this](const net::ErrorCode& error) {
    if (error) return;
    {
      const std::lock_guard lock(shared_.mutex);
      armed_for_ = base::TimePoint::max();
    }
    check_queue();
  });
  armed_for_ = wanted;
}

}  // namespace weir::proxy
