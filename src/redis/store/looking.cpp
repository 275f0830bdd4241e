// What a store is asked without anything being charged, and what it is told to forget.
#include "redis/connection/backend.hpp"
#include "redis/prefetch/leasing.hpp"

#include "weir/redis/store.hpp"

namespace weir::redis {

net::Task<net::ErrorCode> Store::look(limit::Charge charge, limit::Outcome& outcome,
                                      base::TimePoint& server_now) {
  Call call{{&charge, 1}, {&outcome, 1}};
  call.looks = true;
  const auto refused = backend_->begin(call);
  if (refused) co_return refused;
  co_await Park{call};
  // From here on the store itself may be gone: only the call is touched.
  if (!call.error) server_now = call.server_now;
  co_return call.error;
}

bool Store::holds_for(const limit::Charge& charge, limit::Outcome& outcome) const {
  return leasing_ && leasing_->holds_for(charge, outcome);
}

void Store::forget(const limit::Charge& charge) {
  const bool told = backend_->forget(charge);
  if (told && leasing_ && charge.lease != 0) leasing_->forget(charge);
}

}  // namespace weir::redis
