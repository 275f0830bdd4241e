#include "redis/prefetch/prefetching_store.hpp"

#include "redis/prefetch/grant_cache.hpp"

#include "weir/net/reactor.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include <boost/container/static_vector.hpp>

namespace weir::redis {

namespace {

using Charges = std::span<const limit::Charge>;
using Clock = std::chrono::steady_clock;

// About how many refunds are sent at a time: a quarter of the default StoreTuning::max_pending, so that
// charges can be sent, too.
constexpr std::size_t kRefundsAtOnce = 1024;

// Those charges of one bill that Redis must decide, because prefetched units do not pay for them. Each charge
// is stored with its index in the bill.
class RemainingCharges {
 public:
  void add(const limit::Charge& charge, std::size_t entry) noexcept {
    charges_.push_back(charge);
    entries_.push_back(entry);
    outcomes_.emplace_back();
  }
  [[nodiscard]] bool empty() const noexcept { return charges_.empty(); }
  [[nodiscard]] Charges charges() const noexcept { return {charges_.data(), charges_.size()}; }
  [[nodiscard]] std::span<limit::Outcome> outcomes() noexcept { return {outcomes_.data(), outcomes_.size()}; }

  // Stores which charges got no answer from Redis: bit i of `lines` stands for charges()[i].
  void set_unanswered(limit::ChargeSet lines) noexcept { unanswered_ = lines; }
  [[nodiscard]] bool has_answer(std::size_t i) const noexcept { return (unanswered_ >> i & 1U) == 0; }
  // Returns which charges got no answer from Redis: bit i of the result stands for charge i of the bill.
  [[nodiscard]] limit::ChargeSet unanswered() const noexcept {
    limit::ChargeSet lines = 0;
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (!has_answer(i)) lines |= limit::ChargeSet{1} << entries_[i];
    return lines;
  }
  [[nodiscard]] bool refused() const noexcept {
    bool refused = false;
    for (std::size_t i = 0; i < charges_.size(); ++i)
      refused = refused || (has_answer(i) && charges_[i].enforced && !outcomes_[i].allowed);
    return refused;
  }
  void copy_to(std::span<limit::Outcome> all) const noexcept {
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (has_answer(i)) all[entries_[i]] = outcomes_[i];
  }

 private:
  template <class T>
  using UpTo = boost::container::static_vector<T, limit::kMaxCharges>;
  UpTo<limit::Charge> charges_;
  UpTo<std::size_t> entries_;
  UpTo<limit::Outcome> outcomes_;
  limit::ChargeSet unanswered_ = 0;
};

// Returns true and sets `outcome` if the charge is a check that the prefetched units can decide. Otherwise
// returns false.
bool check_here(SharedGrants& units, const limit::Charge& charge, Clock::time_point now,
                limit::Outcome& outcome) {
  return charge.lease != 0 && charge.cost == 0 && units.peek(charge, now, outcome);
}

// Pays charges of the bill with prefetched units, and adds all other charges to `rest`.
void spend_here(SharedGrants& units, Charges charges, std::span<limit::Outcome> outcomes,
                Clock::time_point now, RemainingCharges& rest) {
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (check_here(units, charges[i], now, outcomes[i])) continue;
    const bool pays = charges[i].lease != 0 && charges[i].cost != 0;
    if (pays && units.spend(charges[i], now, outcomes[i])) continue;
    outcomes[i] = {};
    if (pays) units.note_trip(charges[i], now);
    rest.add(charges[i], i);
  }
}

// Makes the times of all outcomes relative to `server_now`. Before this call, the times of a charge that was
// paid with prefetched units are relative to another clock: the grant's estimate of Redis's clock.
void align_clocks(std::span<limit::Outcome> outcomes, base::TimePoint server_now) noexcept {
  for (auto& outcome : outcomes)
    if (outcome.prefetched)
      outcome.ahead = clock_ahead(outcome.debited_at + base::Duration(outcome.ahead), server_now);
}

void learn(SharedGrants& units, RemainingCharges& rest) {
  for (std::size_t i = 0; i < rest.charges().size(); ++i)
    if (rest.charges()[i].lease != 0 && rest.has_answer(i))
      units.learn(rest.charges()[i], rest.outcomes()[i]);
}

}  // namespace

Store::PrefetchingStore::PrefetchingStore(net::Executor executor, std::shared_ptr<Backend> backend,
                                          SharedGrants& units)
    : executor_(executor), backend_(std::move(backend)), units_(units), timer_(executor) {
  units_.enter();
}

void Store::PrefetchingStore::start() {
  if (!ends_) sweep_later();
}

// Ends this worker's use of the shared units. Returns true if no other worker uses the units any more. Then
// this worker can refund all units, because no other worker waits for a grant.
bool Store::PrefetchingStore::leave() noexcept {
  if (!is_last_) is_last_ = units_.leave();
  return *is_last_;
}

bool Store::PrefetchingStore::finish() {
  ends_ = true;
  timer_.cancel();
  if (pending_prefetches_ != 0) return false;
  if (!leave() || !backend_->is_available()) return true;
  if (!backend_->is_quiet()) return false;
  const auto units = units_.give_up(Clock::now(), kRefundsAtOnce);
  send_refunds(units);
  return units.empty();
}

void Store::PrefetchingStore::stop() {
  if (std::exchange(stopped_, true)) return;
  ends_ = true;
  timer_.cancel();
  if (leave() && backend_->is_available()) send_refunds(units_.give_up(Clock::now()));
}

bool Store::PrefetchingStore::may_prefetch(Charges charges) noexcept {
  return std::any_of(charges.begin(), charges.end(), [](const auto& charge) { return charge.lease != 0; });
}

net::Task<net::ErrorCode> Store::PrefetchingStore::charge(Charges charges, Outcomes outcomes,
                                                          base::TimePoint& server_now,
                                                          limit::ChargeSet& unanswered) {
  const auto self = shared_from_this();  // the store may be destroyed during co_await
  const auto now = Clock::now();
  RemainingCharges rest;
  spend_here(units_, charges, outcomes, now, rest);
  prefetch(charges, now);
  server_now = backend_->server_time(charges.front().key, now);
  unanswered = 0;
  if (rest.empty()) {
    align_clocks(outcomes, server_now);
    co_return net::ErrorCode();
  }
  auto failed = limit::all_charges(rest.charges().size());
  base::TimePoint clock;
  net::ErrorCode error;
  try {
    error = co_await backend_->charge(rest.charges(), rest.outcomes(), clock, failed);
  } catch (...) {  // memory has run out, so the request is not admitted
    put_back(charges, outcomes);
    throw;
  }
  if (error) rest.set_unanswered(failed);
  unanswered = rest.unanswered();
  if (!error || failed != limit::all_charges(rest.charges().size())) server_now = clock;
  align_clocks(outcomes, server_now);
  learn(units_, rest);
  if (rest.refused()) put_back(charges, outcomes);
  rest.copy_to(outcomes);
  co_return error;
}

// Puts back the prefetched units that paid for the charges. If memory runs out, some units may remain
// charged.
void Store::PrefetchingStore::put_back(Charges charges, std::span<const limit::Outcome> outcomes) noexcept {
  for (std::size_t i = 0; i < charges.size(); ++i) try {
      if (outcomes[i].prefetched) refund(charges[i], outcomes[i]);
    } catch (const std::bad_alloc&) {
    }
}

std::optional<base::TimePoint> Store::PrefetchingStore::refuses(Charges charges, Outcomes outcomes) noexcept {
  const auto now = Clock::now();
  RemainingCharges rest;
  for (std::size_t i = 0; i < charges.size(); ++i)
    if (charges[i].lease == 0 || !units_.peek(charges[i], now, outcomes[i])) rest.add(charges[i], i);
  if (rest.empty()) return std::nullopt;
  const auto clock = backend_->refuses(rest.charges(), rest.outcomes());
  if (!clock) return std::nullopt;
  for (auto& outcome : outcomes) outcome.ahead = clock_ahead(outcome.debited_at, *clock);
  rest.copy_to(outcomes);
  return clock;
}

bool Store::PrefetchingStore::holds_for(const limit::Charge& charge, limit::Outcome& outcome) const {
  return charge.lease != 0 && units_.peek(charge, Clock::now(), outcome);
}

// Starts to prefetch units for each charge that needs more of them. If memory runs out, takes no units and
// does not throw, because charge() must still send its bill and wait for it.
void Store::PrefetchingStore::prefetch(Charges charges, Pipeline::Time now) noexcept {
  if (ends_ || !backend_->is_available()) return;
  for (const auto& charge : charges) {
    const auto wanted = charge.lease != 0 && charge.cost != 0 ? units_.wanted(charge, now) : 0;
    if (wanted == 0) continue;
    auto lease = charge;
    lease.cost = wanted;
    try {
      net::spawn(executor_, take(shared_from_this(), lease), [](const std::exception_ptr&) {});
    } catch (const std::bad_alloc&) {
      units_.failed(charge, now);
    }
  }
}

// Prefetches units for one key from Redis. The request for units shares a script call with the bill that
// found too few units, and comes after this bill.
net::Task<void> Store::PrefetchingStore::take(std::shared_ptr<PrefetchingStore> self, limit::Charge lease) {
  ++self->pending_prefetches_;
  limit::Outcome outcome;
  const auto sent = Clock::now();
  Call call{{&lease, 1}, {&outcome, 1}};
  call.prefetched = true;
  net::ErrorCode error = StoreError::Overloaded;
  try {
    error = self->backend_->begin(call);
  } catch (const std::bad_alloc&) {  // nothing was sent
  }
  if (!error) {
    co_await AwaitReply{call};
    error = call.error;
  }
  --self->pending_prefetches_;
  const auto received = Clock::now();
  if (error) {
    self->units_.failed(lease, received);
    co_return;
  }
  const RoundTrip trip{sent, received, call.server_now, outcome.slots_begin};
  self->send_refunds(self->units_.arrived(lease, trip, outcome));
}

// Refunds idle units regularly. Each worker has a timer, and the first timer that expires refunds the idle
// units of all workers. While Redis is unavailable, no units are refunded.
void Store::PrefetchingStore::sweep_later() {
  timer_.expires_after(units_.hold() / 2);
  timer_.async_wait([self = shared_from_this()](net::ErrorCode ec) {
    if (ec || self->ends_) return;
    if (self->backend_->is_available()) self->send_refunds(self->units_.sweep(Clock::now(), kRefundsAtOnce));
    self->sweep_later();
  });
}

void Store::PrefetchingStore::send_refunds(std::span<const Refund> units) {
  if (!units.empty()) backend_->refund(units);
}

}  // namespace weir::redis
