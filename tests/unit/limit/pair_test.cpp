// A rule with an elastic limit has two limiters: the normal one and the elastic one. The load selects which
// of them decides, and both count every admission.
#include "weir/limit/pair.hpp"

#include "unit/limit/admissions.hpp"
#include "unit/limit/random_pair.hpp"

#include "weir/limit/key_table.hpp"
#include "weir/limit/permit.hpp"

#include <array>
#include <list>
#include <vector>

namespace weir::limit {
namespace {

constexpr RuleIndex kRule = 3, kOther = 5;

class Pairs {
 public:
  Pairs(Dice& dice, const RandomPair& pair) : dice_(dice), pair_(pair) {}

  void go(int requests) {
    for (int i = 0; i < requests && !testing::Test::HasFatalFailure(); ++i) {
      now_ += Duration(dice_.one_in(4) ? dice_.between(0, 2 * pair_.period.count()) : dice_.between(0, 9));
      request();
      if (pair_.alike && dice_.one_in(4)) refund();
    }
  }

 private:
  struct Charged {
    std::array<Charge, 2> bill;
    std::array<Outcome, 2> outcomes;
    TimePoint at;
  };

  // Charges both limiters of the pair and a limiter of another rule, which may reject all of these charges.
  void request() {
    const bool shadow = dice_.one_in(6), passes = !dice_.one_in(6);
    const auto bill =
        pair_.bill(static_cast<LimiterId>(dice_.between(0, 1)), dice_.between(1, 3), kRule, !shadow);
    const Charge other{.key = key_of(9, kOther),
                       .limiter = &million_,
                       .cost = passes ? Cost{1} : Cost{2'000'000},
                       .rule = kOther};
    const std::array lines{other, bill[0], bill[1]};
    std::array<Outcome, 3> outcomes;
    const bool fits = admitted_.fit(*bill[0].limiter, now_, bill[0].cost);
    ASSERT_EQ(table_.charge(lines, now_, outcomes), passes && (fits || shadow))
        << "limiter ID " << bill[0].limiter_id;
    ASSERT_EQ(outcomes[1].allowed, fits) << "limiter ID " << bill[0].limiter_id;
    ASSERT_EQ(outcomes[2].allowed, fits) << "each limiter counts the admissions of the other";
    if (!passes || !fits) return;
    admitted_.add(now_, bill[0].cost);
    charged_.push_back({bill, {outcomes[1], outcomes[2]}, now_});
  }

  void refund() {
    if (charged_.empty()) return;
    const auto which = static_cast<std::ptrdiff_t>(dice_.between(0, charged_.size() - 1));
    const auto& [bill, outcomes, at] = charged_[static_cast<std::size_t>(which)];
    table_.refund(bill, at, outcomes, now_);
    charged_.erase(charged_.begin() + which);
    admitted_.all.erase(admitted_.all.begin() + which);
  }

  const Limiter million_ = FixedWindow::make({1'000'000, 1us}).value();
  Dice& dice_;
  const RandomPair& pair_;
  KeyTable table_{64};
  TimePoint now_ = kStart;
  Admissions admitted_;
  std::vector<Charged> charged_;
};

TEST(LimiterPair, EachOfTwoLimitersOfARuleAlsoCountsTheAdmissionsOfTheOther) {
  const auto seed = new_seed();
  Dice dice(seed);
  for (int round = 0; round < 10'000 && !testing::Test::HasFatalFailure(); ++round) {
    const auto pair = random_pair_of_windows(dice);
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round << ": "
                                    << describe(pair.limiters[0]) << " and " << describe(pair.limiters[1]));
    Pairs(dice, pair).go(40);
  }
}

// The limiter with the higher limit has admitted six requests. Then the load rises, and the limiter with a
// limit of two decides. A new request must wait until fewer than two of the six requests are in flight.
TEST(LimiterPair, ConcurrencyLimitCountsThePermitsOfBothLimiters) {
  const auto seed = new_seed();
  Dice dice(seed);
  for (int round = 0; round < 10'000; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    const auto own = dice.between(1, 4), more = own + dice.between(0, 6);
    const bool adaptive = dice.one_in(3);
    const auto at_once = [&](std::uint64_t limit) -> Limiter {
      if (adaptive) return AdaptiveConcurrency::make(limit, limit).value();
      return Concurrency::make(limit).value();
    };
    const RandomPair pair{{at_once(own), at_once(more)}, true, {}};
    KeyTable table(64);
    std::list<std::array<Permit, 2>> flying;
    for (int i = 0; i < 30; ++i) {
      const auto decider = static_cast<LimiterId>(dice.between(0, 1));
      const auto bill = pair.bill(decider, 1, kRule);
      std::array<Outcome, 2> outcomes;
      const bool fits = flying.size() < (decider == 0 ? own : more);
      ASSERT_EQ(table.charge(bill, kStart, outcomes), fits) << flying.size() << " under way";
      ASSERT_EQ(outcomes[1].allowed, fits);
      if (fits)
        flying.push_back({Permit(table, bill[0], kStart, false), Permit(table, bill[1], kStart, false)});
      if (!flying.empty() && dice.one_in(2))
        flying.erase(
            std::next(flying.begin(), static_cast<std::ptrdiff_t>(dice.between(0, flying.size() - 1))));
    }
    flying.clear();
    const auto bill = pair.bill(0, own, kRule);
    EXPECT_TRUE(table.peek(bill[0], kStart).allowed) << "a permit was lost";
  }
}

// A bucket that does not decide is charged at most the units that it has left. If the bucket were charged
// beyond its limit, it would refuse everything for an hour after an hour of admissions at twice its rate.
TEST(LimiterPair, BucketIsNotChargedBeyondItsLimitByAdmissionsOfTheOtherLimiter) {
  const RandomPair pair{{token_bucket("1/s", 5), token_bucket("2/s", 10)}, false, {}};
  KeyTable table(64);
  std::array<Outcome, 2> outcomes;
  for (int i = 0; i < 7'200; ++i)
    ASSERT_TRUE(table.charge(pair.bill(1, 1, kRule), kStart + i * 500ms, outcomes)) << i;
  const auto then = kStart + 3'600s;
  EXPECT_FALSE(table.charge(pair.bill(0, 3, kRule), then, outcomes))
      << "admissions of the other limiter did not count";
  EXPECT_TRUE(table.charge(pair.bill(0, 1, kRule), then + 1s, outcomes));
}

TEST(LimiterPair, SlidingLogHasAtMostAsManyEntriesAsTheLargerLimitAdmits) {
  const RandomPair pair{
      {SlidingLog::make(rate("5/day")).value(), SlidingLog::make(rate("20/s")).value()}, false, {}};
  KeyTable table(64);
  std::array<Outcome, 2> outcomes;
  for (int i = 0; i < 20'000; ++i)
    ASSERT_TRUE(table.charge(pair.bill(1, 1, kRule), kStart + i * 50ms, outcomes)) << i;
  EXPECT_LE(table.stats().log_chunks_used, 10) << "a chunk has seven entries";
  const auto last = kStart + 19'999 * 50ms;
  EXPECT_FALSE(table.charge(pair.bill(0, 1, kRule), last + 24h - 201ms, outcomes));
  EXPECT_TRUE(table.charge(pair.bill(0, 1, kRule), last + 24h - 200ms, outcomes))
      << "the fifth entry from the end has expired";
}

// The rule's normal log allows two requests in ten seconds. The elastic limiter admits a third request. The
// normal log stores the third request at its own time, and keeps the entry until it expires.
TEST(LimiterPair, EntriesOfASlidingLogExpireOnTimeEvenIfItIsChargedBeyondItsLimit) {
  const RandomPair pair{
      {SlidingLog::make(rate("2/10s")).value(), SlidingLog::make(rate("3/10s")).value()}, false, {}};
  KeyTable table(64);
  std::array<Outcome, 2> outcomes;
  for (const auto at : {0s, 5s, 9s}) ASSERT_TRUE(table.charge(pair.bill(1, 1, kRule), kStart + at, outcomes));
  const auto own = pair.bill(0, 1, kRule)[0];
  EXPECT_EQ(table.peek(own, kStart + 9s).retry_after, 6s)
      << "the entries of the fifth and the ninth second count";
  EXPECT_TRUE(table.peek(own, kStart + 15s).allowed)
      << "the entry of the fifth second was entered at the ninth";
  table.sweep(kStart + 16s, table.stats().slots);
  EXPECT_EQ(table.peek(own, kStart + 16s).remaining, 0) << "the entry of the ninth second was lost";
  table.sweep(kStart + 19s, table.stats().slots);
  EXPECT_EQ(table.stats().keys, 0U);
}

}  // namespace
}  // namespace weir::limit
