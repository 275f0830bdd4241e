// Compares settling (correcting a charge when its actual cost is known) with slow definitions. A definition
// stores all charges. To settle, it corrects the cost of one charge and computes the state again from the
// first charge.
#include "unit/limit/random_case.hpp"

#include "weir/limit/key_table.hpp"
#include "weir/limit/settle.hpp"

#include <optional>
#include <vector>

#include <boost/multiprecision/cpp_int.hpp>

namespace weir::limit {
namespace {

using Whole = boost::multiprecision::cpp_int;

constexpr int kSettleCases = 20'000;
constexpr int kSettleRequests = 14;

struct Event {
  TimePoint at;
  Cost cost;
};

std::int64_t micros_since_epoch(TimePoint at) {
  return at.time_since_epoch().count();
}

// The state of a key after all its charges. `remaining`: the units that it can still spend. `was_full`: its
// bucket was full at some time since the first charge, and a full bucket forgets its earlier charges.
// `spent`: the used part of a bucket; in units for a stepped bucket, and in multiples of 1/period of a unit
// for other buckets.
struct Level {
  Cost remaining;
  bool was_full = false;
  Whole spent = 0;
};

// Computes the spent units of a bucket as multiples of 1/period of a unit (the period is in µs). In each
// microsecond, `count` such multiples refill.
Level bucket_level(const Case& c, const std::vector<Event>& events, TimePoint now) {
  const Whole period = c.rate.period.count();
  Whole spent = 0;
  TimePoint last = events.empty() ? now : events.front().at;
  bool was_full = false;
  const auto drain = [&](TimePoint to) {
    spent -= Whole(micros_since_epoch(to) - micros_since_epoch(last)) * c.rate.count;
    was_full = was_full || spent < 0;
    if (spent < 0) spent = 0;
    last = to;
  };
  for (const auto& event : events) {
    drain(event.at);
    spent += event.cost * period;
  }
  drain(now);
  const Whole room = c.capacity * period - spent;
  return {room > 0 ? static_cast<Cost>(room / period) : 0, was_full, spent};
}

Level stepped_level(const Case& c, const std::vector<Event>& events, TimePoint now) {
  Whole spent = 0;
  std::int64_t anchor = 0;
  bool was_full = false;
  const auto refill = [&](TimePoint to) {
    const auto periods = (micros_since_epoch(to) - anchor) / c.rate.period.count();
    spent -= Whole(periods) * c.rate.count;
    anchor += periods * c.rate.period.count();
    if (spent > 0) return;
    was_full = was_full || spent < 0;
    spent = 0;
  };
  for (const auto& event : events) {
    refill(event.at);
    if (spent == 0) anchor = micros_since_epoch(event.at);
    if (spent == 0 && &event != &events.front()) was_full = true;
    spent += event.cost;
  }
  refill(now);
  const Whole room = c.capacity - spent;
  return {room > 0 ? static_cast<Cost>(room) : 0, was_full, spent};
}

Level windowed_level(const Case& c, const std::vector<Event>& events, TimePoint now) {
  Whole spent = 0;  // a multiple of 1/period of a unit
  const auto period = c.rate.period.count();
  const auto* fixed = std::get_if<FixedWindow>(&c.limiter);
  const auto* log = std::get_if<SlidingLog>(&c.limiter);
  for (const auto& event : events) {
    Whole weight = 0;
    if (c.algorithm == Algorithm::Calendar) {
      weight = fixed->window_at(event.at) == fixed->window_at(now) ? period : 0;
    } else if (fixed != nullptr) {
      weight = micros_since_epoch(event.at) / period == micros_since_epoch(now) / period ? period : 0;
    } else if (log != nullptr) {
      const Whole n = log->is_exact() ? Whole(period) : Whole(log->buckets());
      const auto sub_window = [&](TimePoint at) { return Whole(micros_since_epoch(at) * n / period); };
      weight = sub_window(event.at) + n > sub_window(now) ? period : 0;
    } else {
      const auto windows = micros_since_epoch(now) / period - micros_since_epoch(event.at) / period;
      weight = windows == 0 ? period : windows == 1 ? period - micros_since_epoch(now) % period : 0;
    }
    spent += event.cost * weight;
  }
  const Whole room = Whole(c.capacity) * period - spent;
  return {room > 0 ? static_cast<Cost>(room / period) : 0};
}

Level level(const Case& c, const std::vector<Event>& events, TimePoint now) {
  if (c.is_paced()) return bucket_level(c, events, now);
  if (c.algorithm == Algorithm::SteppedBucket) return stepped_level(c, events, now);
  return windowed_level(c, events, now);
}

const Whole kCentury = kLongestDebt.count();

// Returns the TAT (theoretical arrival time) up to which a settlement may move the state of a bucket, in
// ticks of 1/count µs.
Whole latest_tat(const Case& c, TimePoint charged_at) {
  return (Whole(micros_since_epoch(charged_at)) + kCentury) * c.rate.count;
}

Whole tat(const Case& c, const Whole& spent, TimePoint now) {
  return Whole(micros_since_epoch(now)) * c.rate.count + spent;
}

// Returns true if a settlement that adds `more` units is reduced, because the bucket would need more than a
// hundred years to refill them. `spent`: as in Level, before the settlement.
bool is_reduced(const Case& c, const Whole& spent, Cost more, TimePoint charged_at, TimePoint now) {
  const Whole period = c.rate.period.count();
  if (c.is_paced()) return tat(c, spent, now) + more * period > latest_tat(c, charged_at);
  return c.algorithm == Algorithm::SteppedBucket && spent + more > kCentury / period * c.rate.count;
}

// Returns the largest actual cost to try. Each key has kSettleRequests charges. Even if all of them are
// settled at this cost, an entry of a lone log stays below 2^14, and a count of a window below 2^32. A bucket
// then needs less than a century to refill, unless its capacity takes decades to fill (see is_reduced()).
Cost most_settled(const Case& c) {
  if (c.algorithm == Algorithm::LoneLog) return 400;
  const Whole share = kCentury * c.rate.count / c.rate.period.count() / 32;
  const Cost most = Cost{1} << 27;
  return share < most ? static_cast<Cost>(share) : most;
}

class Traffic {
 public:
  Traffic(Dice& dice, KeyTable& table, Case c, std::uint64_t key)
      : dice_(dice), table_(table), case_(std::move(c)), key_(key_of(key)), now_(dice.start()) {}

  void run() {
    for (int i = 0; i < kSettleRequests && !testing::Test::HasFailure(); ++i) {
      request();
      now_ += pause();
      if (!under_way_.empty() && !dice_.one_in(3)) settle();
      compare();
    }
    while (!under_way_.empty()) settle();
    compare();
    ask_again();
  }

  // Number of comparisons. A bucket is no longer compared after it was full once, or after a settlement was
  // reduced.
  int exact = 0;
  int in_debt = 0;  // number of comparisons that found no unit left
  int reduced = 0;  // number of reduced settlements

 private:
  struct UnderWay {
    std::size_t event;
    Cost reserved;
  };
  [[nodiscard]] Charge charge(Cost cost) const { return {key_, &case_.limiter, cost}; }

  // Returns the time until the next step. Most times are short, so that buckets are seldom full in the
  // meantime.
  Duration pause() {
    const auto interval = static_cast<std::uint64_t>(case_.rate.period.count()) / case_.rate.count;
    return dice_.one_in(3) ? dice_.pause(case_) : Duration(dice_.between(0, interval / 2));
  }

  void request() {
    const Cost cost = dice_.cost(case_);
    const Charge one[] = {charge(cost)};
    Outcome outcomes[1];
    if (!table_.charge(one, now_, outcomes)) return;
    under_way_.push_back({events_.size(), cost});
    events_.push_back({now_, cost});
  }

  void settle() {
    const auto which = dice_.between(0, under_way_.size() - 1);
    const auto [event, reserved] = under_way_[which];
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(which));
    const Cost most = std::max(reserved, most_settled(case_));
    const Cost actual = dice_.one_in(3) ? 0 : dice_.one_in(4) ? reserved : dice_.magnitude(0, most);
    // A bucket that is full before or after the change forgets its earlier charges.
    note_full();
    const auto before = level(case_, events_, now_).spent;
    const auto charged_at = events_[event].at;
    table_.settle(charge(reserved), {charged_at, actual, now_});
    if (!is_lost() && actual > reserved && is_reduced(case_, before, actual - reserved, charged_at, now_)) {
      ++reduced;
      if (case_.is_paced()) expect_tat(std::max(tat(case_, before, now_), latest_tat(case_, charged_at)));
    }
    events_[event].cost = actual;
    note_full();
  }

  void expect_tat(const Whole& expected) {
    const Whole ahead = expected - tat(case_, 0, now_);
    const Whole micros = (ahead + case_.rate.count - 1) / case_.rate.count;
    EXPECT_EQ(table_.current_outcome(charge(1), now_).reset_after,
              Duration(static_cast<std::int64_t>(micros)));
  }

  // Returns true if the test cannot predict the state any more.
  [[nodiscard]] bool is_lost() const { return was_full_ || reduced != 0; }

  void note_full() { was_full_ = was_full_ || level(case_, events_, now_).was_full; }

  void compare() {
    note_full();
    const auto expected = level(case_, events_, now_).remaining;
    const auto current_outcome = table_.current_outcome(charge(1), now_);
    if (is_lost()) return;
    ++exact;
    if (expected == 0 && !current_outcome.allowed) ++in_debt;
    ASSERT_EQ(current_outcome.remaining, expected);
    ASSERT_EQ(current_outcome.allowed, expected > 0);
    const Cost cost = dice_.cost(case_);
    ASSERT_EQ(table_.peek(charge(cost), now_).allowed, cost <= expected) << "cost " << cost;
  }

  // Without other traffic, a request must be rejected before retry_after and admitted at retry_after. The
  // limit must have refilled at reset_after.
  void ask_again() {
    const auto cost = dice_.between(1, case_.capacity);
    const auto outcome = table_.peek(charge(cost), now_);
    if (!outcome.allowed) {
      EXPECT_TRUE(table_.peek(charge(cost), now_ + outcome.retry_after).allowed);
      EXPECT_FALSE(table_.peek(charge(cost), now_ + outcome.retry_after - 1us).allowed);
    }
    const auto current_outcome = table_.current_outcome(charge(1), now_);
    EXPECT_EQ(table_.current_outcome(charge(1), now_ + current_outcome.reset_after), full(case_.limiter));
    if (current_outcome.reset_after == 0us) return;
    EXPECT_NE(table_.current_outcome(charge(1), now_ + current_outcome.reset_after - 1us),
              full(case_.limiter));
    EXPECT_EQ(table_.current_outcome(charge(1), now_ + current_outcome.more_after - 1us).remaining,
              current_outcome.remaining);
    EXPECT_GT(table_.current_outcome(charge(1), now_ + current_outcome.more_after).remaining,
              current_outcome.remaining);
  }

  Dice& dice_;
  KeyTable& table_;
  const Case case_;
  const Key key_;
  TimePoint now_;
  std::vector<Event> events_;
  std::vector<UnderWay> under_way_;
  bool was_full_ = false;
};

struct Totals {
  int exact = 0;
  int in_debt = 0;
  int reduced = 0;
};

void compare_with_definition(std::uint64_t seed, Totals& totals) {
  Dice dice(seed);
  auto table = std::make_unique<KeyTable>(1 << 16);
  for (std::uint64_t i = 0; i < kSettleCases; ++i) {
    Case c = dice.limiter();
    while (!settles(c.limiter)) c = dice.limiter();
    std::ostringstream name;
    name << c;
    Traffic traffic(dice, *table, c, i);
    traffic.run();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ", case " << i << " of " << name.str();
    totals.exact += traffic.exact;
    totals.in_debt += traffic.in_debt;
    totals.reduced += traffic.reduced;
  }
  EXPECT_EQ(table->stats().overflowed, 0U);
  EXPECT_GT(totals.exact, kSettleCases * 4);
  EXPECT_GT(totals.in_debt, kSettleCases);
}

TEST(SettleOracle, SettledStateEqualsTheStateAfterChargingTheActualCost) {
  Totals totals;
  compare_with_definition(new_seed(), totals);
}

// With this seed, a bucket takes 99.6 years to fill. A settlement would raise its time to refill above a
// hundred years, so the settlement is reduced. Other compilers and options draw other cases from the same
// seed, because C++ does not say in which order arguments are evaluated.
TEST(SettleOracle, DebtAfterASettlementIsPaidWithinAHundredYearsOfTheCharge) {
  Totals totals;
  compare_with_definition(1'408'553'684, totals);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_GT(totals.reduced, 0);
#endif
}

}  // namespace
}  // namespace weir::limit
