#include "server/redis_job.hpp"

namespace weir::server {

namespace {

// Looks at the charge first. If it would be admitted, a second look with a charge of zero returns the key's
// present state. A charge of zero alone would not report a key that owes units or has none left.
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
