// The session's permits: what concurrency limits in Redis count of this worker.
#include "redis/session.hpp"

#include <new>
#include <utility>

namespace weir::redis {

// A bill was charged if no enforced line refused it.
void Store::Session::keep_permits(const Call& call) {
  bool charged = true;
  for (std::size_t i = 0; i < call.charges.size(); ++i)
    charged = charged && (call.outcomes[i].allowed || !call.charges[i].enforced);
  if (!charged) return;
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    if (!call.outcomes[i].allowed || !limit::holds(*call.charges[i].limiter)) continue;
    leases_.hold(call.charges[i], call.permit);
    renew_later();
  }
}

void Store::Session::hold(const limit::Charge& charge) {
  leases_.hold_unasked(charge);
  renew_later();
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
  if (stopped_ || std::exchange(renewing_, true)) return;
  renewal_timer_.expires_after(leases_.interval());
  renewal_timer_.async_wait([self = shared_from_this()](net::ErrorCode ec) {
    if (ec) return;
    self->renewing_ = false;
    self->renew_leases();
    if (!self->leases_.empty()) self->renew_later();
  });
}

// While Redis is away there is nobody to tell: it hears of all when it is back.
void Store::Session::renew_leases() {
  if (state() == StoreState::Up) leases_.renew([this](std::span<const Refund> lines) { refund(lines); });
}

void Store::Session::give_up_leases() {
  if (state() == StoreState::Up) leases_.give_up([this](std::span<const Refund> lines) { refund(lines); });
}

}  // namespace weir::redis
