// ServerAttempt::wait_for_server(): waits in the queue of an upstream while none of its servers has room for
// another request.
#include "proxy/exchange/scoped_cancel_target.hpp"
#include "proxy/upstream/server_attempt.hpp"

#include "weir/net/use_task.hpp"

#include <algorithm>
#include <memory>

#include <boost/asio/post.hpp>

namespace weir::proxy {

namespace {

// The value of Retry-After if weir does not know when a server will be free. This is also how often the first
// request in the queue looks for a free server if nothing wakes the request.
constexpr base::Duration kPerhaps{1'000'000};

// One request in the queue, which any thread may wake. Waking has no effect if the wait has already ended.
struct ServerQueueWaiter {
  explicit ServerQueueWaiter(net::Executor executor) : timer(executor) {}
  net::Timer timer;
  bool is_woken = false;
};

upstream::ServerQueue::Wake wakes_waiter(net::Executor executor, std::weak_ptr<ServerQueueWaiter> at) {
  return [executor, at = std::move(at)] {
    net::asio::post(executor, [at] {
      const auto waiter = at.lock();
      if (waiter == nullptr) return;
      waiter->is_woken = true;
      waiter->timer.cancel();
    });
  };
}

}  // namespace

// Waits until a server has room, and leases the server. Returns false if no server is available, the queue is
// full, or the wait reaches or would exceed its limit.
net::Task<bool> ServerAttempt::wait_for_server(policy::Priority priority) {
  const auto& settings = pool.settings();
  auto& queue = pool.server_group().queue();
  auto& watch = context_.watch;
  if (queue.is_awaited() && !room_after) {
    room_after = kPerhaps;
    room_at_any_time_ = true;
  }
  const auto end = std::min(context_.now + settings.max_wait, last_moment());
  const auto waits = [&] {
    return room_after && context_.now < end && !watch.left() && !watch.late() && !context_.worker.hard_stop &&
           (room_at_any_time_ || context_.now + *room_after <= end);
  };
  if (!waits()) co_return false;
  lease = {};  // another request may use the place at the server during the wait
  const auto waiter = std::make_shared<ServerQueueWaiter>(context_.worker.executor);
  const auto place =
      queue.join(settings.queue, priority, tried != 0, wakes_waiter(context_.worker.executor, waiter));
  if (!place) co_return false;
  tallies.queued.add();
  const observe::ScopedCount waits_now(tallies.waiting);
  watch.disarm();
  watch.begin_cancellable_wait();
  const ScopedCancelTarget cancel_target(pause_, waiter->timer);
  bool leased = false;
  for (;;) {
    auto look = end;
    if (place->is_next()) {
      leased = lease_server();
      if (leased || !waits()) break;
      if (tried != 0) place->pass_on();
      look = std::min(end, context_.now + std::min(*room_after, kPerhaps));
    }
    waiter->timer.expires_after(std::max(look - context_.now, base::Duration{1}));
    if (!waiter->is_woken) {
      net::ErrorCode ended;
      co_await waiter->timer.async_wait(net::use_task(ended));
      (void)ended;  // a wake-up, the timeout or a cancellation ended the wait
    }
    waiter->is_woken = false;
    context_.read_clock();
    if (!waits()) break;
  }
  watch.end_cancellable_wait();
  co_return leased;
}

}  // namespace weir::proxy
