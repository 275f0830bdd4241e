#include "redis/store/holding.hpp"

#include <new>
#include <random>

namespace weir::redis {

Holding::Holding(net::Executor executor, base::Duration lease, Teller& teller, StoreStats& stats)
    : leases_(std::uint64_t{std::random_device{}()} << 32 | std::random_device{}(), lease),
      teller_(teller),
      stats_(stats),
      timer_(executor) {}

// A bill was charged if no enforced line was refused. If memory runs out, a permit is not renewed and expires
// with its lease. The caller is answered in any case.
void Holding::keep(const Call& call) {
  if (!call.charged()) return;
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    if (!call.outcomes[i].allowed || !limit::holds(*call.charges[i].limiter)) continue;
    try {
      renew_later();
      leases_.hold(call.charges[i], call.permit);
    } catch (const std::bad_alloc&) {
      stats_.refunds_lost.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

// In this order, so that if memory runs out, no permit is held that nobody will release.
void Holding::hold(const limit::Charge& charge) {
  renew_later();
  leases_.hold_unasked(charge);
}

// Destructors call this. If memory runs out, the permit expires with its lease.
void Holding::release(const limit::Charge& charge) {
  const auto line = leases_.release(charge);
  if (!line) return;
  try {
    teller_.refund({&*line, 1});
  } catch (const std::bad_alloc&) {
    stats_.refunds_lost.fetch_add(1, std::memory_order_relaxed);
  }
}

void Holding::renew_later() {
  if (ended_ || waiting_) return;
  timer_.expires_after(leases_.interval());
  timer_.async_wait([weak = weak_from_this()](net::ErrorCode ec) {
    const auto self = weak.lock();
    if (ec || !self) return;
    self->waiting_ = false;
    self->renew();
    if (!self->leases_.empty()) self->renew_later();
  });
  waiting_ = true;
}

// While Redis is away, nothing is sent; all permits are renewed when it is back. If memory runs out, the next
// renewal is still in time.
void Holding::renew() {
  if (!teller_.is_there()) return;
  try {
    leases_.renew([this](std::span<const Refund> lines) { teller_.refund(lines); });
  } catch (const std::bad_alloc&) {
    stats_.refunds_lost.fetch_add(1, std::memory_order_relaxed);
  }
}

void Holding::give_up() {
  ended_ = true;
  timer_.cancel();
  if (teller_.is_there()) leases_.give_up([this](std::span<const Refund> lines) { teller_.refund(lines); });
}

}  // namespace weir::redis
