// What a store takes in advance, and how bills are paid from it: lines of a bill that can be paid here are,
// and the rest is asked of Redis. All or nothing over both: a unit of a bill that is refused there is put
// back.
#include "redis/session.hpp"
#include "redis/stock.hpp"

#include "weir/net/reactor.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <utility>

#include <boost/container/static_vector.hpp>

namespace weir::redis {

namespace {

using Charges = std::span<const limit::Charge>;
using Clock = std::chrono::steady_clock;

// Lines of a call that gives units back: a script of so many takes Redis less than a millisecond.
constexpr std::size_t kAtOnce = 256;

// The lines of a bill that Redis is asked for, and where they stand in it.
class Rest {
 public:
  void add(const limit::Charge& line, std::size_t place) noexcept {
    charges_.push_back(line);
    places_.push_back(place);
    outcomes_.emplace_back();
    told_.resize(told_.size() + kAnswerNumbers);
  }
  [[nodiscard]] bool empty() const noexcept { return charges_.empty(); }
  [[nodiscard]] Charges charges() const noexcept { return {charges_.data(), charges_.size()}; }
  [[nodiscard]] std::span<limit::Outcome> outcomes() noexcept { return {outcomes_.data(), outcomes_.size()}; }
  [[nodiscard]] std::span<std::int64_t> told() noexcept { return {told_.data(), told_.size()}; }
  [[nodiscard]] AnswerNumbers answer(std::size_t i) const noexcept {
    return AnswerNumbers(told_.data() + i * kAnswerNumbers, kAnswerNumbers);
  }

  [[nodiscard]] bool refused() const noexcept {
    bool refused = false;
    for (std::size_t i = 0; i < charges_.size(); ++i)
      refused = refused || (charges_[i].enforced && !outcomes_[i].allowed);
    return refused;
  }
  void hand_out(std::span<limit::Outcome> all) const noexcept {
    for (std::size_t i = 0; i < places_.size(); ++i) all[places_[i]] = outcomes_[i];
  }

 private:
  template <class T, std::size_t kMost = limit::kMaxCharges>
  using Upto = boost::container::static_vector<T, kMost>;
  Upto<limit::Charge> charges_;
  Upto<std::size_t> places_;
  Upto<limit::Outcome> outcomes_;
  Upto<std::int64_t, limit::kMaxCharges * kAnswerNumbers> told_;
};

// Pays what can be paid here; the rest is to be asked for.
void spend_here(UnitLeases& units, Charges charges, std::span<limit::Outcome> outcomes, Clock::time_point now,
                Rest& rest) {
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (charges[i].lease != 0 && units.spend(charges[i], now, outcomes[i])) continue;
    outcomes[i] = {};
    if (charges[i].lease != 0) units.note_trip(charges[i], now);
    rest.add(charges[i], i);
  }
}

void put_back(UnitLeases& units, Charges charges, std::span<const limit::Outcome> outcomes) {
  for (std::size_t i = 0; i < charges.size(); ++i)
    if (outcomes[i].lot != 0) units.put_back(charges[i], outcomes[i].lot);
}

void learn(UnitLeases& units, Rest& rest, Clock::time_point sent, base::TimePoint server_now) {
  const auto received = Clock::now();
  const bool charged = !rest.refused();
  for (std::size_t i = 0; i < rest.charges().size(); ++i) {
    const auto& line = rest.charges()[i];
    if (line.lease == 0) continue;
    auto outcome = rest.outcomes()[i];
    outcome.allowed = outcome.allowed && charged;
    units.learn(line, trip_of(line, sent, received, server_now, rest.answer(i)), outcome);
  }
}

}  // namespace

bool Store::has_leases(Charges charges) const noexcept {
  return session_->units() != nullptr &&
         std::any_of(charges.begin(), charges.end(), [](const auto& line) { return line.lease != 0; });
}

net::Task<net::ErrorCode> Store::charge_leased(std::shared_ptr<Session> session, Charges charges,
                                               Outcomes outcomes, base::TimePoint& server_now) {
  UnitLeases& units = *session->units();
  const auto now = Clock::now();
  Rest rest;
  spend_here(units, charges, outcomes, now, rest);
  Call call{rest.charges(), rest.outcomes()};
  call.told = rest.told();
  auto error = rest.empty() ? net::ErrorCode() : session->begin(call);
  const bool asked = !rest.empty() && !error;
  session->take_in_advance(charges, now);
  if (asked) {
    co_await Park{call};
    error = call.error;
  }
  if (asked && !error) learn(units, rest, now, call.server_now);
  if (error || (asked && rest.refused())) put_back(units, charges, outcomes);
  if (error) co_return error;
  rest.hand_out(outcomes);
  server_now = asked ? call.server_now : session->server_time(now);
  co_return error;
}

// Of a bill that can be paid here in part: the rest alone says whether it is refused.
bool Store::refuses_rest(Charges charges, Outcomes outcomes) noexcept {
  UnitLeases& units = *session_->units();
  const auto now = Clock::now();
  Rest rest;
  for (std::size_t i = 0; i < charges.size(); ++i)
    if (charges[i].lease == 0 || !units.peek(charges[i], now, outcomes[i])) rest.add(charges[i], i);
  if (rest.empty() || !session_->refuses(rest.charges(), rest.outcomes())) return false;
  rest.hand_out(outcomes);
  return true;
}

// What came from here goes back here. What a trip has charged a bucket with is looked at here as well: in
// Redis it may move slots that others hold. All else is refunded as ever, and all of it in a cluster, where
// nothing is taken in advance.
void Store::refund(const limit::Charge& charge, base::TimePoint charged_at, const limit::Outcome& outcome) {
  UnitLeases* units = session_ ? session_->units() : nullptr;
  if (units != nullptr && outcome.lot != 0) return units->put_back(charge, outcome.lot);
  if (units != nullptr && charge.lease != 0 && limit::spacing(*charge.limiter) != nullptr)
    return session_->give_back_units(units->adopt(charge, charged_at));
  const Refund line{charge, charged_at + base::Duration(outcome.ahead) + outcome.delay};
  tell({&line, 1});
}

// In the same turn of the loop as whatever else is asked, so that it shares the call. Where memory runs out
// nothing is taken: whoever asks has a bill under way, which has to be waited for.
void Store::Session::take_in_advance(Charges charges, Pipeline::Time now) noexcept {
  if (state() != StoreState::Up) return;
  for (const auto& line : charges) {
    const auto wanted = line.lease != 0 ? units_->wanted(line, now) : 0;
    if (wanted == 0) continue;
    auto lease = line;
    lease.cost = wanted;
    try {
      net::spawn(executor_, take(shared_from_this(), lease), [](const std::exception_ptr&) {});
    } catch (const std::bad_alloc&) {
      units_->failed(line, now);
    }
  }
}

net::Task<void> Store::Session::take(std::shared_ptr<Session> self, limit::Charge lease) {
  limit::Outcome outcome;
  std::array<std::int64_t, kAnswerNumbers> told{};
  const auto sent = Clock::now();
  Call call{{&lease, 1}, {&outcome, 1}};
  call.told = told;
  auto error = self->begin(call);
  if (!error) {
    ++self->taking_;
    co_await Park{call};
    --self->taking_;
    error = call.error;
  }
  const auto received = Clock::now();
  if (error) {
    self->units_->failed(lease, received);
    co_return;
  }
  const auto trip = trip_of(lease, sent, received, call.server_now, told);
  const auto back = self->units_->arrived(lease, trip, outcome);
  self->give_back_units(back);
}

// The workers' stores take turns: whoever comes first finds what is idle. While Redis is away it stays here.
void Store::Session::sweep_units_later() {
  units_timer_.expires_after(units_->hold() / 2);
  units_timer_.async_wait([self = shared_from_this()](net::ErrorCode ec) {
    if (ec || self->stopped_) return;
    if (self->state() == StoreState::Up) self->give_back_units(self->units_->sweep(Clock::now()));
    self->sweep_units_later();
  });
}

void Store::Session::give_back_units(std::span<const Refund> units) {
  for (; !units.empty(); units = units.subspan(std::min(units.size(), kAtOnce)))
    refund(units.first(std::min(units.size(), kAtOnce)));
}

}  // namespace weir::redis
