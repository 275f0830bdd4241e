// What a store is asked without anything being charged, and what it is told to forget.
#include "redis/cluster.hpp"
#include "redis/session.hpp"

#include "weir/redis/store.hpp"

#include <chrono>

namespace weir::redis {

net::Task<net::ErrorCode> Store::look(limit::Charge charge, limit::Outcome& outcome,
                                      base::TimePoint& server_now) {
  charge.lease = 0;
  Call call{{&charge, 1}, {&outcome, 1}};
  call.looks = true;
  const auto refused = cluster_ ? cluster_->begin(call) : session_->begin(call);
  if (refused) co_return refused;
  co_await Park{call};
  // From here on the store itself may be gone: only the call is touched.
  if (!call.error) server_now = call.server_now;
  co_return call.error;
}

bool Store::holds_for(const limit::Charge& charge, limit::Outcome& outcome) const {
  UnitLeases* const units = session_ ? session_->units() : nullptr;
  return units != nullptr && charge.lease != 0 &&
         units->peek(charge, std::chrono::steady_clock::now(), outcome);
}

void Store::forget(const limit::Charge& charge) {
  if (cluster_) return cluster_->forget(charge);
  session_->forget(charge);
}

}  // namespace weir::redis
