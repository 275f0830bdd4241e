#include "server/redis_job.hpp"

namespace weir::server {

namespace {

// Reads the result that the charge would get. If `state_only` is true and Redis would admit the charge, then
// reads the present state of the key, by a charge of zero units. If Redis would refuse the charge, keeps the
// first result. A charge of zero units would not show whether the key has no units left, or even owes units.
net::Task<void> lookup(redis::Store& store, proxy::RedisLookup& lookup, bool state_only) {
  auto& now = lookup.clock;
  if (!state_only) lookup.held_here = store.holds_for(lookup.charge, lookup.outcome);
  if (lookup.held_here) {
    now = lookup.outcome.debited_at;
    co_return;
  }
  auto charge = lookup.charge;
  auto ec = co_await store.peek(charge, lookup.outcome, now);
  if (!ec && state_only && lookup.outcome.allowed) {
    charge.cost = 0;
    ec = co_await store.peek(charge, lookup.outcome, now);
  }
  if (ec) lookup.error = ec.message();
}

}  // namespace

net::Task<void> run_job(redis::Store& store, std::shared_ptr<RedisJob> job) {
  for (const auto& charge : job->forget) store.forget(charge);
  for (auto& one : job->lookups) co_await lookup(store, one, job->state_only);
}

}  // namespace weir::server
