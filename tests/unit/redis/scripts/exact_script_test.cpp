// Tests the scripts with numbers at their limits: sums beyond 2^53, where doubles are no longer exact, and
// sums beyond the largest cost of an entry. The numbers are fixed, because random numbers rarely reach the
// limits. The key table gets the same requests, and must return the same outcomes.
#include "unit/limit/random_case.hpp"
#include "unit/redis/scripts/timed_scripts.hpp"

#include "weir/limit/key_table.hpp"

#include <array>
#include <vector>

namespace weir::redis {
namespace {

using limit::Cost;
using limit::Outcome;
using limit::Ticks;
using namespace std::chrono_literals;

class ExactScript : public ::testing::Test {
 protected:
  // Charges the scripts and the key table, and expects equal outcomes.
  Outcome ask(const limit::Limiter& limiter, Cost cost = 1) {
    const limit::Charge line{key_, &limiter, cost};
    Outcome outcome, expected;
    base::TimePoint then;
    scripts_.set_clock(now_);
    EXPECT_EQ(read_outcomes(scripts_.charge({&line, 1}), {&line, 1}, {&outcome, 1}, then),
              ReplyReading::Answer);
    table_.charge({&line, 1}, now_, {&expected, 1});
    EXPECT_EQ(outcome, expected) << "cost " << cost << ", at " << now_.time_since_epoch().count();
    return outcome;
  }
  // Settles a charge of cost 1, which gets the cost `actual`.
  void settle(const limit::Limiter& limiter, base::TimePoint charged_at, Cost actual) {
    const limit::Charge line{key_, &limiter};
    scripts_.set_clock(now_);
    scripts_.refund({line, charged_at, actual});
    table_.settle(line, {charged_at, actual, now_});
  }

  Server server_;
  TimedScripts scripts_{server_};
  limit::KeyTable table_{1000};
  limit::Key key_ = limit::key_of(1);
  base::TimePoint now_{1'800'000'000s};
};

// The numbers of one comparison in a sliding window: previous * left / period <= room, where `left` is the
// rest of the current window. The products previous * left and room * period are up to 2^82. Rounded to
// doubles they are equal, but exactly they differ by `more`.
struct Weighed {
  std::int64_t period;
  Cost previous;
  std::int64_t left;
  Cost room;
  int more;  // the first product minus the second

  [[nodiscard]] bool is_so() const {
    return Ticks{previous} * static_cast<std::uint64_t>(left) ==
           Ticks{room} * static_cast<std::uint64_t>(period) + static_cast<Ticks>(more);
  }
  friend std::ostream& operator<<(std::ostream& out, const Weighed& w) {
    return out << w.previous << " * " << w.left << " / " << w.period << " and " << w.room;
  }
};

constexpr Weighed kWeighed[] = {
    {634'004'877'786'052, 999'999'937, 366'239'885'615'657, 577'660'954, 1},
    {695'712'783'021'116, 999'999'937, 336'739'925'670'329, 484'021'442, 1},
    {1'094'651'655'346'339, 999'999'937, 1'057'122'673'646'657, 965'715'990, -1},
    {990'357'832'518'683, 999'999'937, 75'187'194'941'071, 75'919'216, -1},
    {958'107'939'639'196, 999'999'937, 215'993'242'304'080, 225'437'260, 0},
    {229'489'985'542'130, 999'999'937, 120'214'227'940'530, 523'832'097, 0},
    {678'050'546'926'242, 4'294'967'291, 86'834'445'866'489, 550'034'369, 1},
    {920'346'643'657'529, 4'294'967'291, 175'300'076'086'167, 818'070'124, 1},
    {952'173'775'776'825, 4'294'967'291, 74'115'203'483'539, 334'311'218, -1},
    {1'018'138'307'243'864, 4'294'967'291, 17'725'169'565'677, 74'772'772, -1},
    {607'209'590'699'707, 4'294'967'291, 100'909'660'906'348, 713'762'924, 0},
    {335'522'844'772'920, 4'294'967'291, 30'794'608'159'560, 394'196'213, 0},
};

class ExactSlidingWindow : public ExactScript, public ::testing::WithParamInterface<Weighed> {
 protected:
  static constexpr Cost kLimit = 1'000'000'000;  // the highest limit that a configuration may have

  // Charges `previous` units in the second window. Settlements may raise the count above the limit.
  void spend_previous(const limit::Limiter& limiter) {
    now_ = base::TimePoint(base::Duration(GetParam().period));
    if (GetParam().previous <= kLimit) {
      EXPECT_TRUE(ask(limiter, GetParam().previous).allowed);
      return;
    }
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(ask(limiter).allowed);
    settle(limiter, now_, limit::kMaxCost);
    settle(limiter, now_, GetParam().previous - limit::kMaxCost);
  }
};

TEST_P(ExactSlidingWindow, RequestIsAdmittedExactlyAtTheCorrectMicrosecond) {
  const auto& weighed = GetParam();
  ASSERT_TRUE(weighed.is_so());
  const base::Duration period(weighed.period), left(weighed.left);
  const limit::Limiter limiter = limit::SlidingWindow::make({kLimit, period}).value();
  spend_previous(limiter);
  now_ = base::TimePoint(3 * period - left);
  if (weighed.more > 0) {
    EXPECT_EQ(ask(limiter, kLimit - weighed.room).retry_after, 1us);
    now_ += 1us;
  } else if (weighed.more == 0) {
    now_ -= 1us;
    EXPECT_EQ(ask(limiter, kLimit - weighed.room).retry_after, 1us);
    now_ += 1us;
  }
  EXPECT_TRUE(ask(limiter, kLimit - weighed.room).allowed);
  EXPECT_FALSE(ask(limiter, weighed.room).allowed);
  now_ += period;
  ask(limiter, kLimit / 2);
}

INSTANTIATE_TEST_SUITE_P(BoundaryCases, ExactSlidingWindow, ::testing::ValuesIn(kWeighed));

class LargestDebt : public ExactScript, public ::testing::WithParamInterface<std::uint64_t> {
 protected:
  static constexpr auto kPause = 10min;

  const limit::Limiter log_ = GetParam() == 0
                                  ? limit::SlidingLog::make({10, 1h}).value()
                                  : limit::Limiter(limit::SlidingLog::make({10, 1h}, GetParam()).value());

  void settle_to_the_most(base::TimePoint charged_at) { settle(log_, charged_at, limit::kMaxCost); }
  void charge_and_settle() {
    const auto first = now_;
    for (int i = 0; i < 3; ++i, now_ += kPause) EXPECT_TRUE(ask(log_).allowed);
    for (int i = 0; i < 3; ++i) settle_to_the_most(first + i * kPause);
  }
  // Compares the scripts and the key table until all entries have expired.
  void expect_alike_until_drained() {
    const auto end = now_ + 2h;
    for (; now_ < end; now_ += 5min) ask(log_, 3);
  }
};

TEST_P(LargestDebt, UsageAboveTheLimitIsBoundedInALogStoredAsAString) {
  charge_and_settle();
  EXPECT_FALSE(ask(log_).allowed);
  expect_alike_until_drained();
}

TEST_P(LargestDebt, UsageAboveTheLimitIsBoundedInALogStoredAsAList) {
  scripts_.forget_all();  // switches to the scripts that store a log of more than 2 entries as a list
  charge_and_settle();
  EXPECT_FALSE(ask(log_).allowed);
  expect_alike_until_drained();
}

// Redis has lost the log, and the first settlement creates it again. Once the log has the largest possible
// cost, further settlements must add no entry. An entry of cost 0 would expire later than the others.
TEST_P(LargestDebt, UsageAboveTheLimitIsBoundedInALogThatASettlementCreatesAgain) {
  const auto first = now_;
  now_ += 3 * kPause;
  for (int i = 0; i < 3; ++i) settle_to_the_most(first + i * kPause);
  EXPECT_FALSE(ask(log_).allowed);
  expect_alike_until_drained();
}

INSTANTIATE_TEST_SUITE_P(ExactAndBucketedLogs, LargestDebt, ::testing::Values(0, 6));

}  // namespace
}  // namespace weir::redis
