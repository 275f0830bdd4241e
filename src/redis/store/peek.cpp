// The functions of a store that make no charge: peek(), holds_for() and forget().
#include "redis/connection/backend.hpp"
#include "redis/prefetch/prefetching_store.hpp"

#include "weir/redis/store.hpp"

namespace weir::redis {

net::Task<net::ErrorCode> Store::peek(limit::Charge charge, limit::Outcome& outcome,
                                      base::TimePoint& server_now) {
  Call call{{&charge, 1}, {&outcome, 1}};
  call.peeks = true;
  const auto refused = backend_->begin(call);
  if (refused) co_return refused;
  co_await AwaitReply{call};
  // Only `call` may be used after co_await, because the store may have been destroyed meanwhile.
  if (!call.error) server_now = call.server_now;
  co_return call.error;
}

bool Store::holds_for(const limit::Charge& charge, limit::Outcome& outcome) const {
  return prefetching_ && prefetching_->holds_for(charge, outcome);
}

void Store::forget(const limit::Charge& charge) {
  const bool sent = backend_->forget(charge);
  if (sent && prefetching_ && charge.lease != 0) prefetching_->forget(charge);
}

}  // namespace weir::redis
