// Compares stepwise buckets, windows and logs with slow definitions that store every admission.
#include "unit/limit/random_case.hpp"

#include "weir/limit/key_table.hpp"

#include <map>
#include <vector>

#include <boost/multiprecision/cpp_int.hpp>

namespace weir::limit {
namespace {

using Whole = boost::multiprecision::cpp_int;

constexpr int kWindowCases = 10'000;
constexpr std::uint64_t kMostRefills = 10'000;  // a bound, because the oracle counts refills one by one
constexpr int kWindowRequests = 24;

Whole whole_micros(TimePoint at) {
  return at.time_since_epoch().count();
}

// A bucket that gains tokens once a period. A period begins when the bucket stops being full.
class Steps {
 public:
  explicit Steps(const Case& c) : rule_(c), level_(c.capacity) {}
  bool ask(TimePoint now, Cost cost) {
    while (level_ < rule_.capacity && next_ <= now) {
      level_ = std::min(rule_.capacity, level_ + rule_.rate.count);
      next_ += rule_.rate.period;
    }
    if (cost > level_) return false;
    if (level_ == rule_.capacity) next_ = now + rule_.rate.period;
    level_ -= cost;
    return true;
  }
  [[nodiscard]] Whole remaining() const { return level_; }

 private:
  const Case& rule_;
  std::uint64_t level_;
  TimePoint next_{};
};

// Keeps one count for each window. Asks the limiter which day, week or month an instant belongs to; calendars
// have their own tests.
class Windows {
 public:
  explicit Windows(const Case& c) : rule_(c) {}
  bool ask(TimePoint now, Cost cost) {
    now_ = rule_.algorithm == Algorithm::FixedWindow ? start_by_epoch(now) : start_by_calendar(now);
    if (Whole(counts_[now_]) + cost > rule_.capacity) return false;
    counts_[now_] += cost;
    return true;
  }
  [[nodiscard]] Whole remaining() { return rule_.capacity - counts_[now_]; }

 private:
  [[nodiscard]] TimePoint start_by_epoch(TimePoint now) const {
    const Whole period = rule_.rate.period.count();
    return TimePoint(Duration(static_cast<std::int64_t>(Whole(whole_micros(now) / period * period))));
  }
  [[nodiscard]] TimePoint start_by_calendar(TimePoint now) const {
    const auto window = std::get<FixedWindow>(rule_.limiter).window_at(now);
    EXPECT_TRUE(window.start <= now && now < window.end);
    return window.start;
  }
  const Case& rule_;
  std::map<TimePoint, Cost> counts_;
  TimePoint now_{};
};

// Computes the count of a sliding window: previous × overlap + current. The overlap is a fraction of the
// period, so all counts are multiplied by the period, to stay whole numbers.
class Weights {
 public:
  explicit Weights(const Case& c) : rule_(c), period_(c.rate.period.count()) {}
  bool ask(TimePoint now, Cost cost) {
    index_ = whole_micros(now) / period_;
    left_ = period_ - whole_micros(now) % period_;
    if (weighed() + Whole(cost) * period_ > Whole(rule_.capacity) * period_) return false;
    counts_[index_] += cost;
    return true;
  }
  [[nodiscard]] Whole remaining() { return (Whole(rule_.capacity) * period_ - weighed()) / period_; }

 private:
  Whole weighed() { return counts_[index_ - 1] * left_ + counts_[index_] * period_; }
  const Case& rule_;
  Whole period_, index_, left_;
  std::map<Whole, Whole> counts_;
};

template <class Body>
void for_each_case_of_few_refills(Algorithm algorithm, Body body) {
  const auto seed = new_seed();
  Dice dice(seed);
  for (int i = 0; i < kWindowCases;) {
    const Case c = dice.limiter();
    if (c.algorithm != algorithm || c.capacity / c.rate.count > kMostRefills) continue;
    body(c, dice);
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed << ", case " << i << ": " << c;
    ++i;
  }
}

template <class Oracle>
void compare(Algorithm algorithm) {
  for_each_case_of_few_refills(algorithm, [](const Case& c, Dice& dice) {
    Oracle oracle(c);
    Cell cell;
    TimePoint now = dice.start();
    for (int i = 0; i < kWindowRequests; ++i) {
      const Cost cost = dice.cost(c);
      const Step s = step(c.limiter, cell, now, cost);
      ASSERT_EQ(s.outcome.allowed, oracle.ask(now, cost));
      ASSERT_EQ(Whole(s.outcome.remaining), oracle.remaining());
      cell = s.next;
      now += patience(c, s.outcome, dice);
    }
  });
}

TEST(WindowOracle, SteppedBucketAgreesWithAModelThatRefillsEachPeriod) {
  compare<Steps>(Algorithm::SteppedBucket);
}
TEST(WindowOracle, FixedWindowAgreesWithAModelThatCountsPerWindow) {
  compare<Windows>(Algorithm::FixedWindow);
}
TEST(WindowOracle, CalendarWindowAgreesWithAModelThatCountsPerDayWeekOrMonth) {
  compare<Windows>(Algorithm::Calendar);
}
TEST(WindowOracle, SlidingWindowAgreesWithAModelThatWeightsThePreviousWindow) {
  compare<Weights>(Algorithm::SlidingWindow);
}

// A list of all admissions. In a sliding log with buckets, an admission has the time at which its bucket
// begins.
class Everything {
 public:
  explicit Everything(const Case& c) : rule_(c), log_(std::get<SlidingLog>(c.limiter)) {}

  bool ask(TimePoint now, Cost cost) {
    if (!fits(now, cost)) return false;
    admitted_.push_back({now, cost});
    ends_.push_back(end_of(now));
    return true;
  }
  void take_back() {
    admitted_.pop_back();
    ends_.pop_back();
  }
  [[nodiscard]] Cost remaining(TimePoint now) const { return rule_.capacity - counted(now); }
  [[nodiscard]] bool fits(TimePoint at, Cost cost) const { return counted(at) + cost <= rule_.capacity; }
  [[nodiscard]] const std::vector<Admission>& admitted() const { return admitted_; }

 private:
  [[nodiscard]] Cost counted(TimePoint now) const {
    Cost sum = 0;
    for (std::size_t i = 0; i < ends_.size(); ++i)
      if (now < ends_[i]) sum += admitted_[i].cost;
    return sum;
  }
  // Returns the first microsecond at which an admission made at `at` has expired.
  [[nodiscard]] TimePoint end_of(TimePoint at) const {
    if (log_.is_exact()) return at + rule_.rate.period;
    const Whole n = log_.buckets();
    const Whole period = rule_.rate.period.count();
    const Whole sub_window = whole_micros(at) * n / period;
    const Whole end = ((sub_window + n) * period + n - 1) / n;
    return TimePoint(Duration(static_cast<std::int64_t>(end)));
  }
  const Case& rule_;
  const SlidingLog& log_;
  std::vector<Admission> admitted_;
  std::vector<TimePoint> ends_;
};

// Checks that the total cost in one period after any admission is at most the limit.
void expect_bounded_by_period(const Case& c, const std::vector<Admission>& admitted) {
  for (std::size_t i = 0; i < admitted.size(); ++i) {
    Whole spent = 0;
    for (std::size_t j = i; j < admitted.size() && admitted[j].at - admitted[i].at < c.rate.period; ++j)
      spent += admitted[j].cost;
    ASSERT_LE(spent, c.capacity);
  }
}

// Returns a pause of at most an eighth of the period; once in six calls, of at most two periods. So the
// traffic of a case lasts several periods, and entries expire.
Duration log_pause(const Case& c, Dice& dice) {
  const auto period = static_cast<std::uint64_t>(c.rate.period.count());
  return Duration(dice.one_in(6) ? dice.between(0, 2 * period) : dice.between(0, period / 8));
}

void compare_logs(Algorithm algorithm) {
  std::uint64_t client = 0;
  for_each_case_of_few_refills(algorithm, [&](const Case& c, Dice& dice) {
    KeyTable table(64);  // each case needs a new table, because a later case may begin at an earlier time
    Everything oracle(c);
    const auto key = key_of(++client);
    TimePoint now = dice.start() + 1us;
    for (int i = 0; i < 60; ++i) {
      const Charge charge{key, &c.limiter, dice.one_in(3) ? dice.cost(c) : 1 + c.capacity / 20};
      Outcome out;
      ASSERT_EQ(table.peek(charge, now).allowed, oracle.fits(now, charge.cost));
      const bool allowed = table.charge({&charge, 1}, now, {&out, 1});
      ASSERT_EQ(allowed, oracle.ask(now, charge.cost)) << "request " << i;
      ASSERT_EQ(out.remaining, oracle.remaining(now));
      ASSERT_FALSE(out.overflow);
      ASSERT_EQ(oracle.remaining(now + out.reset_after), c.capacity);
      if (out.reset_after > 0us) {
        ASSERT_LT(oracle.remaining(now + out.reset_after - 1us), c.capacity);
      }
      if (allowed) {
        ASSERT_GT(oracle.remaining(now + out.more_after), out.remaining);
        ASSERT_EQ(oracle.remaining(now + out.more_after - 1us), out.remaining);
        if (dice.one_in(4)) {
          table.refund(charge, now, now);
          oracle.take_back();
        }
      } else if (out.retry_after != base::kForever) {
        ASSERT_TRUE(oracle.fits(now + out.retry_after, charge.cost));
        ASSERT_FALSE(oracle.fits(now + out.retry_after - 1us, charge.cost));
        if (dice.one_in(3)) now += out.retry_after;
      }
      now += log_pause(c, dice);
    }
    if (algorithm == Algorithm::LoneLog) expect_bounded_by_period(c, oracle.admitted());
    ASSERT_EQ(table.stats().log_merged, 0);
    table.sweep(kNever - 1us, table.stats().slots);
    ASSERT_EQ(table.stats().keys, 0);
    ASSERT_EQ(table.stats().log_chunks_used, 0) << "chunks were lost";
  });
}

TEST(WindowOracle, SlidingLogAgreesWithAModelThatListsAdmissions) {
  compare_logs(Algorithm::LoneLog);
}
TEST(WindowOracle, BucketedWindowAgreesWithAModelThatListsSubWindows) {
  compare_logs(Algorithm::BucketedWindow);
}

}  // namespace
}  // namespace weir::limit
