#include "server/redis_job.hpp"

namespace weir::server {

namespace {

// Reads the result that the charge would get, and charges nothing. If `state_only` is true and Redis would
// admit the charge, replaces the result by the key's present state: the result of a charge of zero units. If
// Redis would refuse the charge, keeps its result, which shows that the key has no units left or owes units.
// The result of a charge of zero units would not show this.
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
