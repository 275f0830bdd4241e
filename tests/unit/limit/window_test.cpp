// Tests of stepwise buckets, windows and logs: sequences of requests with known outcomes, long runs and
// extreme numbers. limit_vectors.hpp has more sequences.
#include "unit/limit/traffic.hpp"

#include "weir/limit/key_table.hpp"

#include <array>
#include <limits>

namespace weir::limit {
namespace {

using Align = FixedWindow::Align;

constexpr TimePoint kHour{1'700'000'000s - 1'700'000'000s % 3'600s};  // the start of an hour

// A client with one key in a table. The client sends its requests one after another.
class TableClient {
 public:
  explicit TableClient(Limiter limiter, TimePoint start = kHour)
      : limiter_(std::move(limiter)), start_(start) {}
  Outcome ask(Duration at, Cost cost = 1) {
    const Charge charge{key_of(1), &limiter_, cost};
    Outcome out;
    table_.charge({&charge, 1}, start_ + at, {&out, 1});
    return out;
  }
  void give_back(Duration at, Cost cost = 1) {
    table_.refund({key_of(1), &limiter_, cost}, start_ + at, start_ + at);
  }

 private:
  const Limiter limiter_;
  const TimePoint start_;
  KeyTable table_{64};
};

TEST(FixedWindow, ChargeOfThePreviousWindowIsNotRefunded) {
  TableClient client(fixed_window("3/min"));
  EXPECT_TRUE(client.ask(50s, 2).allowed);
  EXPECT_TRUE(client.ask(60s, 2).allowed);
  client.give_back(55s, 2);
  EXPECT_EQ(client.ask(61s).remaining, 0);
}

TEST(FixedWindow, DayOf25HoursIsOneWindow) {
  // Days count from 1970-01-01. On day 100, the clocks of this zone are set back by one hour, so the offset
  // of one hour applies from day 101 on.
  const auto zone = std::make_shared<Calendar>(
      "Somewhere", std::vector<Calendar::Run>{{-1, std::chrono::hours(2)}, {101, std::chrono::hours(1)}});
  const auto limiter = FixedWindow::make(10, Align::Day, zone).value();
  const TimePoint midnight{std::chrono::days(100) - 2h};
  EXPECT_EQ(limiter.window_at(midnight), (Interval{midnight, midnight + 25h}));
  EXPECT_EQ(limiter.window_at(midnight + 25h - 1us).start, midnight);
  EXPECT_EQ(limiter.window_at(midnight + 25h).end, midnight + 49h);
  EXPECT_EQ(limiter.window_at(midnight - 1us).end, midnight);
}

TEST(FixedWindow, WeekBeginsOnMondayAndMayHave169Hours) {
  // Days count from 1970-01-01. On day 101, a Sunday, the clocks of this zone are set back by one hour, so
  // the offset of one hour applies from day 102 on.
  const auto zone = std::make_shared<Calendar>(
      "Somewhere", std::vector<Calendar::Run>{{-1, std::chrono::hours(2)}, {102, std::chrono::hours(1)}});
  const auto limiter = FixedWindow::make(10, Align::Week, zone).value();
  const TimePoint monday{std::chrono::days(95) - 2h};
  ASSERT_EQ(std::chrono::weekday(std::chrono::sys_days{std::chrono::days(95)}), std::chrono::Monday);
  EXPECT_EQ(limiter.window_at(monday), (Interval{monday, monday + 169h}));
  EXPECT_EQ(limiter.window_at(monday + 169h - 1us).start, monday);
  EXPECT_EQ(limiter.window_at(monday + 169h), (Interval{monday + 169h, monday + 337h}));
  EXPECT_EQ(limiter.window_at(monday - 1us), (Interval{monday - 168h, monday}));
  EXPECT_EQ(limiter.window(), 168h);
}

TEST(FixedWindow, WeekOfTheUnixEpochBeginsOnTheMondayBefore) {
  const auto utc = std::make_shared<Calendar>("UTC", std::vector<Calendar::Run>{{-1, 0h}});
  const auto limiter = FixedWindow::make(10, Align::Week, utc).value();
  const TimePoint monday{std::chrono::sys_days{std::chrono::year{1969} / 12 / 29}};
  EXPECT_EQ(limiter.window_at(TimePoint{}), (Interval{monday, monday + 168h}));
}

TEST(SlidingWindow, PreviousWindowCountsByItsOverlapWithTheLastPeriod) {
  TableClient client(sliding_window("100/h"));
  ASSERT_TRUE(client.ask(30min, 84).allowed);
  ASSERT_TRUE(client.ask(60min, 1).allowed);
  EXPECT_FALSE(client.ask(74min, 35).allowed) << "84 × 46/60 + 1 + 35 are more than 100";
  ASSERT_TRUE(client.ask(75min, 35).allowed);
  // The previous window has 84 units, the present one 36. A quarter of the present window has passed, so
  // 84 × ¾ + 36 = 99 of 100 units count. The limiter admits one more unit, but not two.
  EXPECT_EQ(client.ask(75min, 2).remaining, 1);
  const auto one = client.ask(75min);
  EXPECT_TRUE(one.allowed);
  EXPECT_EQ(one.remaining, 0);
  EXPECT_EQ(one.more_after, 42'857'143us)
      << "until the weighted count of 84 decreases by one: 3600 s / 84, rounded up";
  EXPECT_EQ(one.reset_after, 105min) << "the end of the next window";
  EXPECT_FALSE(client.ask(75min + 42'857'142us).allowed);
  EXPECT_TRUE(client.ask(75min + 42'857'143us).allowed);
}

TEST(SlidingWindow, ChargeOfThePresentOrPreviousWindowCanBeRefunded) {
  TableClient client(sliding_window("100/h"));
  client.ask(30min, 80);
  client.ask(61min, 1);
  client.give_back(30min, 80);
  EXPECT_EQ(client.ask(61min).remaining, 98);
  client.give_back(61min, 1);
  client.give_back(61min, 1);
  EXPECT_EQ(client.ask(62min, 101).reset_after, 0s) << "all charges were refunded";
}

// The state has the counts of two windows. A charge in any other window is not refunded.
TEST(SlidingWindow, ChargeOfAnEarlierWindowIsNotRefunded) {
  const auto limiter = SlidingWindow::make(rate("100/h")).value();
  Cell cell = limiter.step({}, kHour, 30).next;
  EXPECT_EQ(limiter.refund(cell, kHour + 1h, 10), cell)
      << "the charge is of the next window, which has not begun";
  EXPECT_EQ(limiter.refund(cell, kHour - 1us, 10), cell) << "the charge is of a window without a count";
  cell = limiter.step(cell, kHour + 1h, 20).next;
  const auto left = [&](const Cell& then) { return limiter.step(then, kHour + 1h, 0).outcome.remaining; };
  ASSERT_EQ(left(cell), 50);
  EXPECT_EQ(left(limiter.refund(cell, kHour, 10)), 60) << "the first instant of the previous window";
  EXPECT_EQ(left(limiter.refund(cell, kHour + 1h - 1us, 10)), 60);
  EXPECT_EQ(left(limiter.refund(cell, kHour + 1h, 10)), 60);
  EXPECT_EQ(left(limiter.refund(cell, kHour + 2h - 1us, 20)), 70);
  EXPECT_EQ(limiter.refund(cell, kHour - 1us, 10), cell);
  EXPECT_EQ(limiter.refund(cell, kHour + 2h, 10), cell);
}

TEST(BucketedWindow, SubWindowsOfFractionalLengthAreNotRounded) {
  TableClient client(bucketed_window("1/s", 3));
  ASSERT_TRUE(client.ask(333'333us).allowed);  // the first sub-window lasts 333,333⅓ µs
  EXPECT_EQ(client.ask(333'334us).retry_after, 666'666us);
  EXPECT_TRUE(client.ask(1s).allowed);
  ASSERT_TRUE(client.ask(2s + 333'334us).allowed);  // the first instant of the next sub-window
  EXPECT_EQ(client.ask(2s + 333'334us).retry_after, 1s);
}

// Sends requests for a given time, each as soon as the limiter admits it. Returns the number of admitted
// units.
template <class Ask>
std::uint64_t greedy_admissions(Ask ask, Duration how_long) {
  std::uint64_t admitted = 0;
  for (Duration at{0}; at < how_long;) {
    const Outcome outcome = ask(at);
    if (outcome.allowed) ++admitted;
    at += outcome.retry_after;
  }
  return admitted;
}

std::uint64_t greedy_cell(const Limiter& limiter, Duration how_long) {
  Cell cell;
  return greedy_admissions(
      [&](Duration at) {
        const Step s = step(limiter, cell, kHour + at, 1);
        cell = s.next;
        return s.outcome;
      },
      how_long);
}

std::uint64_t greedy_log(const Limiter& limiter, Duration how_long) {
  TableClient client(limiter);
  return greedy_admissions([&](Duration at) { return client.ask(at); }, how_long);
}

TEST(LongRun, WindowsAndStepwiseBucketsAreExactOverLongPeriods) {
  constexpr auto kYear = std::chrono::duration_cast<Duration>(365 * 24h);
  constexpr std::uint64_t kPeriods = 31'536'000 / 7;  // a year consists of this many periods, and six seconds
  EXPECT_EQ(greedy_cell(stepped_bucket("3/7s", 3), kYear), 3 * (kPeriods + 1));
  // kHour is 4 s after the start of a window of 7 s. The 4 s and the year's remaining 6 s are more than one
  // window, so the year touches kPeriods + 2 windows.
  ASSERT_EQ(kHour.time_since_epoch() % 7s, 4s);
  EXPECT_EQ(greedy_cell(fixed_window("3/7s"), kYear), 3 * (kPeriods + 2));
  EXPECT_EQ(greedy_cell(fixed_window("10000/h"), 24h * 30), 10'000U * 24 * 30);
  // 30 days consist of this many periods, and five seconds.
  constexpr std::uint64_t kPeriodsIn30Days = 30 * 86'400 / 7;
  EXPECT_EQ(greedy_log(sliding_log("3/7s"), 30 * 24h), 3 * (kPeriodsIn30Days + 1));
  EXPECT_EQ(greedy_log(bucketed_window("3/7s", 7), 30 * 24h), 3 * (kPeriodsIn30Days + 1));
}

TEST(Extremes, LargestCostsAndPeriodsDoNotOverflow) {
  const auto century = Duration(std::chrono::hours(24 * 36'500));
  const std::array limiters = {stepped_bucket("1000000000/us", 1),
                               Limiter(SteppedBucket::make({1, century}, 1).value()),
                               Limiter(SteppedBucket::make({1'000'000'000, century}, 1'000'000'000).value()),
                               fixed_window("1000000000/us"),
                               Limiter(FixedWindow::make({1'000'000'000, century}).value()),
                               sliding_window("1000000000/us"),
                               Limiter(SlidingWindow::make({1'000'000'000, century}).value()),
                               Limiter(SlidingLog::make({1'000'000'000, century}, 1'000).value()),
                               Limiter(SlidingLog::make({10'000, SlidingLog::kLongest}).value()),
                               sliding_log("1/us")};
  for (const auto& limiter : limiters) {
    SCOPED_TRACE(describe(limiter));
    for (const auto start : {TimePoint{}, kHour, TimePoint(Duration(3'000'000'000'000'000'000))}) {
      KeyTable table(64);
      Outcome out;
      const auto ask = [&](Duration at, Cost cost) {
        const Charge charge{key_of(1), &limiter, cost};
        return table.charge({&charge, 1}, start + at, {&out, 1});
      };
      EXPECT_EQ(ask(0us, kMaxCost), quota(limiter) >= kMaxCost);
      ASSERT_TRUE(ask(0us, quota(limiter)));
      EXPECT_EQ(out.remaining, 0);
      ASSERT_FALSE(ask(0us, 1));
      const auto wait = out.retry_after;
      ASSERT_GT(wait, 0us);
      EXPECT_LE(wait, 2 * century);
      EXPECT_FALSE(ask(wait - 1us, 1));
      EXPECT_TRUE(ask(wait, 1));
    }
  }
}

TEST(WindowLimiters, LimiterCannotBeMadeWithImpossibleParameters) {
  const auto long_log = SlidingLog::make(rate("10001/h"));
  ASSERT_FALSE(long_log);
  EXPECT_NE(long_log.error().message.find("sliding_window"), std::string::npos);
  EXPECT_FALSE(SlidingLog::make(rate("10/3653day")));
  EXPECT_FALSE(SlidingLog::make(rate("10/us"), 2));
  EXPECT_FALSE(SlidingLog::make(rate("10/s"), 1));
  EXPECT_FALSE(SlidingLog::make(rate("10/s"), 1'001));
  EXPECT_FALSE(SteppedBucket::make(rate("10/s"), 0));
  EXPECT_FALSE(SteppedBucket::make(rate("1/36500day"), 2)) << "refilling takes two hundred years";
  EXPECT_FALSE(FixedWindow::make(1, Align::Day, nullptr));
  EXPECT_FALSE(Concurrency::make(0));
  EXPECT_FALSE(AdaptiveConcurrency::make(0, 5));
  EXPECT_FALSE(AdaptiveConcurrency::make(6, 5));
  EXPECT_FALSE(AdaptiveConcurrency::make(1, 10'001));
}

}  // namespace
}  // namespace weir::limit
