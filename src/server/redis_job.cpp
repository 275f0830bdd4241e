#include "server/redis_job.hpp"

namespace weir::server {

namespace {

// Reads the result that the charge would get. If `state_only` is true and the charge would be admitted, reads
// again with a charge of zero units. The second reply has the key's present state. A charge of zero units
// alone would not show whether a key has no units left or even owes units.
net::Task<void> look(redis::Store& store, proxy::RedisLookup& look, bool state_only) {
  auto& now = look.clock;
  if (!state_only) look.held_here = store.holds_for(look.charge, look.outcome);
  if (look.held_here) {
    now = look.outcome.debited_at;
    co_return;
  }
  auto asked = look.charge;
  auto ec = co_await store.look(asked, look.outcome, now);
  if (!ec && state_only && look.outcome.allowed) {
    asked.cost = 0;
    ec = co_await store.look(asked, look.outcome, now);
  }
  if (ec) look.error = ec.message();
}

}  // namespace

net::Task<void> run_job(redis::Store& store, std::shared_ptr<RedisJob> job) {
  for (const auto& charge : job->forget) store.forget(charge);
  for (auto& one : job->looks) co_await look(store, one, job->state_only);
}

}  // namespace weir::server
