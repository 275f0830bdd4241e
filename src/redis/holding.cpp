// The session's permits: what concurrency limits in Redis count of this worker.
#include "redis/session.hpp"

#include <new>
#include <utility>

namespace weir::redis {

// A bill was charged if no enforced line refused it. What there is no memory to renew ends with its lease;
// its caller is answered all the same.
void Store::Session::keep_permits(const Call& call) {
  bool charged = true;
  for (std::size_t i = 0; i < call.charges.size(); ++i)
    charged = charged && (call.outcomes[i].allowed || !call.charges[i].enforced);
  if (!charged) return;
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    if (!call.outcomes[i].allowed || !limit::holds(*call.charges[i].limiter)) continue;
    try {
      renew_later();
      leases_.hold(call.charges[i], call.permit);
    } catch (const std::bad_alloc&) {
      count(stats_.refunds_lost);
    }
  }
}

// In this order: where memory runs out, nothing is held that nobody will release.
void Store::Session::hold(const limit::Charge& charge) {
  renew_later();
  leases_.hold_unasked(charge);
}

// From destructors: where there is no memory to tell Redis with, the lease ends by itself.
void Store::Session::release(const limit::Charge& charge) {
  const auto line = leases_.release(charge);
  if (!line) return;
  try {
    refund({&*line, 1});
  } catch (const std::bad_alloc&) {
    count(stats_.refunds_lost);
  }
}

void Store::Session::renew_later() {
  if (stopped_ || renewing_) return;
  renewal_timer_.expires_after(leases_.interval());
  renewal_timer_.async_wait([self = shared_from_this()](net::ErrorCode ec) {
    if (ec) return;
    self->renewing_ = false;
    self->renew_leases();
    if (!self->leases_.empty()) self->renew_later();
  });
  renewing_ = true;
}

// While Redis is away there is nobody to tell: it hears of all when it is back. Where there is no memory to
// tell it with, the next renewal is in time as well.
void Store::Session::renew_leases() {
  if (state() != StoreState::Up) return;
  try {
    leases_.renew([this](std::span<const Refund> lines) { refund(lines); });
  } catch (const std::bad_alloc&) {
    count(stats_.refunds_lost);
  }
}

void Store::Session::give_up_leases() {
  if (state() == StoreState::Up) leases_.give_up([this](std::span<const Refund> lines) { refund(lines); });
}

}  // namespace weir::redis
