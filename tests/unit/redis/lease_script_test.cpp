// What goes back of a lease, by the very scripts.
#include "redis/lot.hpp"
#include "unit/redis/timed_scripts.hpp"

#include "weir/limit/limiter.hpp"

#include <array>
#include <chrono>

namespace weir::redis {
namespace {

using namespace std::chrono_literals;
using limit::Cost;
using limit::Limiter;

class LeaseScript : public ::testing::Test {
 protected:
  static constexpr base::TimePoint kNow{base::Duration(1'700'000'000'000'000)};
  const Lot::Time here_{1000s};

  Server server_;
  TimedScripts scripts_{server_};

  limit::Charge line(const Limiter& limiter, Cost cost) const {
    return {.key = {1, 2}, .limiter = &limiter, .cost = cost, .lease = 100};
  }
  limit::Outcome charge(const Limiter& limiter, Cost cost, Trip* trip = nullptr) {
    const std::array bill{line(limiter, cost)};
    std::array<limit::Outcome, 1> outcomes;
    base::TimePoint now;
    const auto reply = scripts_.charge(bill);
    EXPECT_EQ(read_outcomes(reply, bill, outcomes, now), Reading::Answer);
    if (trip != nullptr)
      *trip = trip_of(bill[0], here_, here_, now,
                      AnswerNumbers(answers_of(reply, {0, 1, 0, 1}, 1).data(), kAnswerNumbers));
    return outcomes[0];
  }
  Lot take(const Limiter& limiter, Cost units) {
    Trip trip;
    const auto outcome = charge(limiter, units, &trip);
    EXPECT_TRUE(outcome.allowed);
    return Lot(1, line(limiter, units), trip, outcome.reset_after);
  }
  // Whether it was taken back.
  bool give_back(const Limiter& limiter, const Lot& lot) {
    const auto refund = lot.return_of(line(limiter, 1), here_);
    EXPECT_TRUE(refund);
    return refund && scripts_.refund(*refund).numbers.at(0) == 1;
  }
};

// 700 in 3 s: no slot begins on a whole microsecond but every seventh.
TEST_F(LeaseScript, ABucketTakesBackItsLastSlotsAlone) {
  const Limiter limiter = limit::TokenBucket::make({700, 3s}, 500).value();
  scripts_.set_clock(kNow);
  charge(limiter, 101);
  auto first = take(limiter, 23);
  const auto second = take(limiter, 31);
  first.spend(8, here_);
  EXPECT_FALSE(give_back(limiter, first)) << "the second stands behind it";
  EXPECT_TRUE(give_back(limiter, second));
  EXPECT_TRUE(give_back(limiter, first));
  EXPECT_EQ(charge(limiter, 1).remaining, 500U - 101 - 8 - 1);
}

TEST_F(LeaseScript, AWindowTakesBackWhateverItCounts) {
  const std::array<Limiter, 3> limiters{limit::FixedWindow::make({500, 10s}).value(),
                                        limit::SlidingWindow::make({500, 10s}).value(),
                                        limit::SlidingLog::make({500, 10s}, 5).value()};
  for (const auto& limiter : limiters) {
    scripts_.forget_all();
    scripts_.set_clock(kNow + 1s);
    charge(limiter, 101);
    auto first = take(limiter, 23);
    const auto second = take(limiter, 31);
    first.spend(8, here_);
    scripts_.set_clock(kNow + 1100ms);
    EXPECT_TRUE(give_back(limiter, first));
    EXPECT_TRUE(give_back(limiter, second));
    EXPECT_EQ(charge(limiter, 1).remaining, 500U - 101 - 8 - 1);
  }
}

}  // namespace
}  // namespace weir::redis
