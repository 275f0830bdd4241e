#include "server/redis_errand.hpp"

namespace weir::app {

namespace {

// A cost of nothing tells how a key stands, but not of one that owes something or has nothing left.
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
