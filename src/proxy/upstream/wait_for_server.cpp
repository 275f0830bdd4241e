// The part of an exchange that waits for a server with room.
#include "proxy/client/session.hpp"
#include "proxy/exchange/scoped_cancel_target.hpp"
#include "proxy/upstream/attempt.hpp"

#include "weir/net/signal.hpp"

#include <algorithm>
#include <memory>

#include <boost/asio/post.hpp>

namespace weir::proxy {

namespace {

// What Retry-After says where nobody knows; and how often whoever is first looks though it was not woken.
constexpr base::Duration kPerhaps{1'000'000};

// At the worker's door: from any thread, and for somebody who may have gone.
struct ServerQueueWaiter {
  explicit ServerQueueWaiter(net::Executor executor) : timer(executor) {}
  net::Timer timer;
  bool heard = false;
};

upstream::ServerQueue::Wake wakes_waiter(net::Executor executor, std::weak_ptr<ServerQueueWaiter> at) {
  return [executor, at = std::move(at)] {
    net::asio::post(executor, [at] {
      const auto waiter = at.lock();
      if (waiter == nullptr) return;
      waiter->heard = true;
      waiter->timer.cancel();
    });
  };
}

struct Counted {
  explicit Counted(observe::UpstreamTallies& tallies) noexcept : waiting(tallies.waiting) {
    tallies.queued.add();
    waiting.add();
  }
  ~Counted() { waiting.remove(); }
  observe::Gauge& waiting;
};

}  // namespace

// False: there is no server, or it would have to wait for too long, or has, or the queue is full.
net::Task<bool> Exchange::wait_for_server(upstream::Pool& pool, Attempt& attempt) {
  const auto& settings = pool.settings();
  const bool overtakes = pool.server_group().queue().is_awaited();
  if (overtakes && !attempt.room_after) {
    attempt.room_after = kPerhaps;
    attempt.room_at_any_time = true;
  }
  const auto end = std::min(context_.now + settings.max_wait, attempt.deadline);
  const auto waits = [&] {
    return attempt.room_after && context_.now < end && !context_.watch.left() && !context_.watch.late() &&
           !context_.worker.hard_stop &&
           (attempt.room_at_any_time || context_.now + *attempt.room_after <= end);
  };
  if (!waits()) co_return false;
  lease_ = {};  // another request may have its place meanwhile
  const auto waiter = std::make_shared<ServerQueueWaiter>(context_.worker.executor);
  const auto place = pool.server_group().queue().join(settings.queue, priority_, attempt.tried != 0,
                                                      wakes_waiter(context_.worker.executor, waiter));
  if (!place) co_return false;
  const Counted counted(tallies());
  context_.watch.disarm();
  context_.watch.begin_cancellable_wait();
  const ScopedCancelTarget cancel_target(pause_, waiter->timer);
  bool leased = false;
  for (;;) {
    auto look = end;
    if (place->is_next()) {
      leased = lease_server(pool, attempt);
      if (leased || !waits()) break;
      if (attempt.tried != 0) place->pass_on();
      look = std::min(end, context_.now + std::min(*attempt.room_after, kPerhaps));
    }
    waiter->timer.expires_after(std::max(look - context_.now, base::Duration{1}));
    if (!waiter->heard) {
      const auto ended = co_await net::TimerWait(waiter->timer);
      (void)ended;  // by whoever knocked, or who ends the session
    }
    waiter->heard = false;
    context_.read_clock();
    if (!waits()) break;
  }
  context_.watch.end_cancellable_wait();
  co_return leased;
}

}  // namespace weir::proxy
