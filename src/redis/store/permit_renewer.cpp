#include "redis/store/permit_renewer.hpp"

#include <new>
#include <random>

namespace weir::redis {

PermitRenewer::PermitRenewer(net::Executor executor, base::Duration lease, RefundSink& refund_sink,
                             StoreStats& stats)
    : permits_(std::uint64_t{std::random_device{}()} << 32 | std::random_device{}(), lease),
      refund_sink_(refund_sink),
      stats_(stats),
      timer_(executor) {}

// Stores the permits of a bill (the charges of one request), so that they are renewed. If memory runs out, a
// permit is not renewed and expires after its lease. The caller gets the outcome of the bill in any case.
void PermitRenewer::keep(const Call& call) {
  if (!call.charged()) return;
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    const auto& charge = call.charges[i];
    if (!call.outcomes[i].allowed || charge.cost == 0 || !limit::holds(*charge.limiter)) continue;
    try {
      renew_later();
      permits_.hold(charge, call.permit);
    } catch (const std::bad_alloc&) {
      stats_.refunds_lost.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

// Sets the timer before it stores the permit, so that no permit is stored if the timer throws.
void PermitRenewer::hold(const limit::Charge& charge) {
  renew_later();
  permits_.hold_without_redis(charge);
}

// Releases a permit of the charge. Must not throw, because destructors call it. If memory runs out, the
// permit is not released but expires after its lease.
void PermitRenewer::release(const limit::Charge& charge) {
  const auto refund = permits_.release(charge);
  if (!refund) return;
  try {
    refund_sink_.refund({&*refund, 1});
  } catch (const std::bad_alloc&) {
    stats_.refunds_lost.fetch_add(1, std::memory_order_relaxed);
  }
}

void PermitRenewer::renew_later() {
  if (ended_ || waiting_) return;
  timer_.expires_after(permits_.interval());
  timer_.async_wait([weak = weak_from_this()](net::ErrorCode ec) {
    const auto self = weak.lock();
    if (ec || !self) return;
    self->waiting_ = false;
    self->renew();
    if (!self->permits_.empty()) self->renew_later();
  });
  waiting_ = true;
}

// Renews all permits. Sends nothing while Redis is unavailable; all permits are renewed when it is available
// again. If memory runs out, the next renewal still comes before the permits expire.
void PermitRenewer::renew() {
  if (!refund_sink_.is_available()) return;
  try {
    permits_.renew([this](std::span<const Refund> lines) { refund_sink_.refund(lines); });
  } catch (const std::bad_alloc&) {
    stats_.refunds_lost.fetch_add(1, std::memory_order_relaxed);
  }
}

void PermitRenewer::give_up() {
  ended_ = true;
  timer_.cancel();
  if (refund_sink_.is_available())
    permits_.give_up([this](std::span<const Refund> lines) { refund_sink_.refund(lines); });
}

}  // namespace weir::redis
