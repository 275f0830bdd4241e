#include "server/redis_errand.hpp"

namespace weir::app {

namespace {

// Looks at the charge first. If it would be admitted, a second look with a charge of zero returns the key's
// present state. A charge of zero alone would not report a key that owes units or has none left.
net::Task<void> look(redis::Store& store, proxy::Look& look, bool standing) {
  auto& now = look.clock;
  if (!standing) look.held_here = store.holds_for(look.charge, look.outcome);
  if (look.held_here) {
    now = look.outcome.debited_at;
    co_return;
  }
  auto asked = look.charge;
  auto ec = co_await store.look(asked, look.outcome, now);
  if (!ec && standing && look.outcome.allowed) {
    asked.cost = 0;
    ec = co_await store.look(asked, look.outcome, now);
  }
  if (ec) look.error = ec.message();
}

}  // namespace

net::Task<void> carry_out(redis::Store& store, std::shared_ptr<RedisErrand> errand) {
  for (const auto& charge : errand->forget) store.forget(charge);
  for (auto& one : errand->looks) co_await look(store, one, errand->standing);
}

}  // namespace weir::app
