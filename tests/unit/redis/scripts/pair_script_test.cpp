// Tests two limiters of one rule (limit/pair.hpp). One of them decides about a request, and both count the
// admitted requests. Compares the scripts with the key table.
#include "unit/limit/random_pair.hpp"
#include "unit/redis/scripts/timed_scripts.hpp"

#include "weir/limit/key_table.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

namespace weir::redis {
namespace {

using limit::Charge;
using limit::Dice;
using limit::Limiter;
using limit::Outcome;
using limit::RandomPair;
using namespace std::chrono_literals;

constexpr limit::RuleIndex kRule = 3, kOther = 5;

class PairScript : public ::testing::Test {
 protected:
  struct Bill {
    std::vector<Charge> lines;
    std::vector<Outcome> outcomes{};
  };
  struct Paid {
    Charge line;
    base::TimePoint departure;
  };

  void begin(const RandomPair& pair) {
    scripts_.forget_all();
    paid_.clear();
    pair_ = std::make_unique<RandomPair>(pair);
    table_ = std::make_unique<limit::KeyTable>(64);
    now_ = base::TimePoint(base::Duration(dice_.between(1'600'000'000'000'000, 2'600'000'000'000'000)));
  }

  // Returns the two charges of the pair and a charge of another rule, which may refuse.
  Bill any_bill() {
    const auto most = std::min(quota(pair_->limiters[0]), quota(pair_->limiters[1]));
    const auto cost = dice_.one_in(6)   ? 0
                      : dice_.one_in(3) ? 1
                                        : dice_.magnitude(1, std::max<std::uint64_t>(most, 1));
    const auto lines =
        pair_->bill(static_cast<limit::LimiterId>(dice_.between(0, 1)), cost, kRule, !dice_.one_in(6));
    const limit::Cost of_other = dice_.one_in(6) ? 2'000'000 : 1;
    const Charge other{
        .key = limit::key_of(9, kOther), .limiter = &million_, .cost = of_other, .rule = kOther};
    Bill bill{{lines[0], lines[1]}};
    bill.lines.insert(dice_.one_in(2) ? bill.lines.begin() : bill.lines.end(), other);
    bill.outcomes.resize(bill.lines.size());
    return bill;
  }

  void ask_both(std::vector<Bill> bills) {
    scripts_.set_clock(now_);
    std::vector<BillRequest> demands;
    std::size_t all = 0;
    for (const auto& bill : bills) demands.push_back({bill.lines}), all += bill.lines.size();
    const auto reply = scripts_.charge(demands);
    std::size_t before = 0;
    for (std::size_t i = 0; i < bills.size(); ++i) {
      auto& [lines, outcomes] = bills[i];
      base::TimePoint then;
      ASSERT_EQ(read_outcomes(reply, {i, bills.size(), before, all}, lines, outcomes, then),
                ReplyReading::Answer);
      before += lines.size();
      std::vector<Outcome> expected(lines.size());
      const bool charged = table_->charge(lines, now_, expected);
      for (std::size_t j = 0; j < lines.size(); ++j) {
        ASSERT_EQ(outcomes[j], expected[j]) << "line " << j << " of bill " << i << ", cost " << lines[j].cost;
        if (charged && outcomes[j].allowed && lines[j].cost != 0 && lines[j].rule == kRule)
          paid_.push_back({lines[j], now_ + outcomes[j].delay});
      }
    }
  }

  void refund_both() {
    if (paid_.empty()) return;
    const auto at = paid_.begin() + static_cast<std::ptrdiff_t>(dice_.between(0, paid_.size() - 1));
    const auto paid = *at;
    paid_.erase(at);
    refund_both(paid);
  }
  void refund_both(const Paid& paid) {
    const auto& [line, departure] = paid;
    scripts_.set_clock(now_);
    scripts_.refund({line, departure});
    table_->refund(line, departure, now_);
  }

  Server server_;
  TimedScripts scripts_{server_};
  const std::uint64_t seed_ = limit::new_seed();
  Dice dice_{seed_};
  const Limiter million_ = limit::FixedWindow::make({1'000'000, 1us}).value();
  std::unique_ptr<RandomPair> pair_;
  std::unique_ptr<limit::KeyTable> table_;
  base::TimePoint now_{};
  std::vector<Paid> paid_;
};

TEST_F(PairScript, TwoLimitersOfARuleCountAsInLocalMemory) {
  for (int round = 0; round < 1'500; ++round) {
    const auto pair = random_pair_of_windows(dice_);
    SCOPED_TRACE(testing::Message() << "seed " << seed_ << " round " << round << ": "
                                    << describe(pair.limiters[0]) << " and " << describe(pair.limiters[1]));
    begin(pair);
    for (int request = 0; request < 16; ++request) {
      std::vector<Bill> bills{any_bill()};
      if (dice_.one_in(3)) bills.push_back(any_bill());
      ask_both(std::move(bills));
      if (dice_.one_in(4)) refund_both();
      ASSERT_FALSE(HasFailure()) << "request " << request;
      now_ +=
          base::Duration(dice_.one_in(4) ? dice_.between(0, 2 * pair_->period.count()) : dice_.between(0, 9));
    }
  }
}

// The two limiters have the same algorithm and random parameters. A bucket or queue that does not decide
// counts a request only if it has room for the request.
TEST_F(PairScript, AnyTwoLimitersOfOneAlgorithmCountAsInLocalMemory) {
  for (int round = 0; round < 700; ++round) {
    const auto own = dice_.limiter();
    auto other = dice_.limiter();
    while (other.algorithm != own.algorithm) other = dice_.limiter();
    SCOPED_TRACE(testing::Message() << "seed " << seed_ << " round " << round << ": " << own << " and "
                                    << other);
    begin({{own.limiter, other.limiter}, false, own.rate.period});
    for (int request = 0; request < 12; ++request) {
      ask_both({any_bill()});
      ASSERT_FALSE(HasFailure()) << "request " << request << ", at " << now_.time_since_epoch().count();
      // The last time of the test. 100 years later, doubles of microseconds are no longer exact.
      constexpr base::TimePoint kLast{base::Duration(5'800'000'000'000'000)};
      now_ = std::min(now_ + std::min<base::Duration>(dice_.pause(own), std::chrono::hours(24 * 366 * 30)),
                      kLast);
    }
  }
}

// One limiter of the rule counts but does not decide. Its count may exceed its limit, but must stop at the
// largest count that a state can store. Later refunds lower it. When the next window begins, a sliding window
// still weighs the previous count almost fully.
TEST_F(PairScript, CountOfAWindowBeyondItsLimitStopsAtTheLargestPossibleCount) {
  constexpr limit::Cost kMost = 1'000'000'000;
  for (const auto& make :
       {+[](limit::Rate limit) { return Limiter(limit::FixedWindow::make(limit).value()); },
        +[](limit::Rate limit) { return Limiter(limit::SlidingWindow::make(limit).value()); }}) {
    begin({{make({kMost, 1s}), make({kMost / 2, 1h})}, false, 1h});
    now_ = base::TimePoint(1'800'000'000s);  // the beginning of an hour
    const auto ask = [&](limit::LimiterId decider, limit::Cost cost) {
      const auto lines = pair_->bill(decider, cost, kRule);
      ask_both({Bill{{lines[0], lines[1]}, std::vector<Outcome>(2)}});
      now_ += 2s;
    };
    for (int i = 0; i < 5; ++i) ask(0, kMost);
    int back = 0;
    for (const auto& paid : paid_)
      if (paid.line.limiter_id == 1 && ++back < 5) refund_both(paid);
    ask(1, 1);
    for (int i = 0; i < 5; ++i) ask(0, kMost);
    now_ += 1h;
    ask(0, 1);
    ask(0, kMost);
    ask(1, 1);
    now_ += 1h;
    ask(1, 1);
    now_ += 59min;
    ask(1, 1);
  }
}

TEST_F(PairScript, ConcurrencyLimitCountsThePermitsOfBothLimiters) {
  const auto at_once = [](std::uint64_t limit) -> Limiter { return limit::Concurrency::make(limit).value(); };
  begin({{at_once(2), at_once(6)}, true, {}});
  scripts_.set_clock(now_);
  std::vector<PermitId> held;
  const auto ask = [&](limit::LimiterId decider) {
    const auto bill = pair_->bill(decider, 1, kRule);
    const PermitId hold{1, held.size() + 1, 10s};
    std::array<Outcome, 2> outcomes;
    base::TimePoint then;
    EXPECT_EQ(read_outcomes(scripts_.charge(bill, hold), bill, outcomes, then), ReplyReading::Answer);
    EXPECT_EQ(outcomes[1].allowed, outcomes[0].allowed);
    if (outcomes[0].allowed) held.push_back(hold);
    return outcomes[0].allowed;
  };
  const auto leave = [&](std::size_t which) {
    for (const auto& line : pair_->bill(0, 1, kRule)) scripts_.refund({line, {}, 0, held[which]});
  };
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(ask(1)) << i;
  EXPECT_FALSE(ask(1));
  for (std::size_t i = 0; i < 4; ++i) {
    leave(i);
    EXPECT_FALSE(ask(0)) << 5 - i << " were under way";
  }
  leave(4);
  EXPECT_TRUE(ask(0));
}

}  // namespace
}  // namespace weir::redis
