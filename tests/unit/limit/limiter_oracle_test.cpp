// Compares the limiters with slow definitions in exact fractions: a bucket with a level, the flow chart of
// ITU-T I.371, and a list of departures. Each definition computes in another way than the limiter does.
#include "unit/limit/random_case.hpp"

#include "weir/limit/limiter.hpp"

#include <deque>
#include <vector>

#include <boost/multiprecision/cpp_int.hpp>

namespace weir::limit {
namespace {

using Fraction = boost::multiprecision::cpp_rational;
using Whole = boost::multiprecision::cpp_int;

constexpr int kOracleCases = 10'000;
constexpr int kOracleRequests = 16;

// Every operand must be a fraction: Boost 1.81 computes 1/n divided by a whole number incorrectly.
Fraction units(std::uint64_t n) {
  return Fraction(Whole(n), Whole(1));
}
Fraction micros(Duration d) {
  return units(static_cast<std::uint64_t>(d.count()));
}
Fraction micros(TimePoint t) {
  return micros(t.time_since_epoch());
}
Fraction interval(const Rate& rate) {
  return Fraction(Whole(rate.period.count()), Whole(rate.count));
}
Whole floor(const Fraction& f) {
  return numerator(f) / denominator(f);
}  // truncation rounds down, because f ≥ 0
Whole ceil(const Fraction& f) {
  return (numerator(f) + denominator(f) - 1) / denominator(f);
}

// A token bucket that stores its number of tokens.
class TokenLevel {
 public:
  explicit TokenLevel(const Case& c)
      : capacity_(units(c.capacity)), interval_(interval(c.rate)), level_(capacity_) {}
  bool ask(TimePoint now, Cost cost) {
    level_ = std::min<Fraction>(capacity_, level_ + (micros(now) - last_) / interval_);
    last_ = micros(now);
    if (level_ < units(cost)) return false;
    level_ -= units(cost);
    return true;
  }
  [[nodiscard]] Whole remaining() const { return floor(level_); }

 private:
  Fraction capacity_, interval_, level_, last_ = 0;
};

// The virtual scheduling of ITU-T I.371. Its "cells" are units of data. A cell is admitted unless it arrives
// before TAT - tolerance (TAT: its theoretical arrival time). A request of cost n stands for n cells that
// arrive together. All of them must be admitted.
class VirtualScheduling {
 public:
  explicit VirtualScheduling(const Case& c)
      : interval_(interval(c.rate)), tolerance_(interval_ * units(c.capacity - 1)) {}
  bool ask(TimePoint now, Cost cost) {
    const Fraction arrival = micros(now);
    const Fraction first = std::max(tat_, arrival);
    const Fraction last = first + interval_ * units(cost - 1);  // the TAT for the last cell
    if (arrival < last - tolerance_) return false;
    tat_ = last + interval_;
    return true;
  }

 private:
  Fraction interval_, tolerance_, tat_ = 0;
};

// A queue as a list of promised departures. Each unit of cost occupies the server for one interval.
class PromisedDepartures {
 public:
  explicit PromisedDepartures(const Case& c) : rule_(c), interval_(interval(c.rate)) {}
  std::optional<Fraction> ask(TimePoint now, Cost cost) {
    const Fraction arrival = micros(now);
    while (!promised_.empty() && promised_.front().ends <= arrival) promised_.pop_front();
    const Fraction departs = promised_.empty() ? arrival : promised_.back().ends;
    const Fraction wait = departs - arrival;
    if (rule_.max_wait != base::kForever && wait > micros(rule_.max_wait)) return std::nullopt;
    // `need` is the time for which the request occupies the server. The request may wait at most
    // `capacity` − 1 times as long.
    const Fraction need = interval_ * units(cost);
    // the highest cost that a client may declare
    if (cost > std::max<std::uint64_t>(rule_.capacity, 1000)) return std::nullopt;
    if (wait > need * units(rule_.capacity - 1)) return std::nullopt;
    if (wait + need > Fraction(Whole(36'525) * 86'400 * 1'000'000)) return std::nullopt;
    promised_.push_back({departs, departs + need, cost});
    return wait;
  }
  void withdraw_last() { promised_.pop_back(); }
  [[nodiscard]] std::size_t waiting(TimePoint now, Cost cost) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        promised_, [&](const Promise& p) { return p.departs > micros(now) && p.cost == cost; }));
  }

 private:
  struct Promise {
    Fraction departs, ends;
    Cost cost;
  };
  Case rule_;
  Fraction interval_;
  std::deque<Promise> promised_;
};

// Checks every interval between two admissions: the admitted cost must be at most capacity + rate × length of
// the interval.
void expect_bounded_by_rate(const Case& c, const std::vector<Admission>& admitted) {
  for (std::size_t i = 0; i < admitted.size(); ++i) {
    Whole spent = 0;
    for (std::size_t j = i; j < admitted.size(); ++j) {
      spent += admitted[j].cost;
      const Whole length = Whole((admitted[j].at - admitted[i].at).count());
      ASSERT_LE(spent * c.rate.period.count(),
                Whole(c.capacity) * c.rate.period.count() + length * c.rate.count);
    }
  }
}

template <class Body>
void for_each_case(Algorithm algorithm, Body body) {
  const auto seed = new_seed();
  Dice dice(seed);
  for (int i = 0; i < kOracleCases;) {
    const Case c = dice.limiter();
    if (c.algorithm != algorithm) continue;
    body(c, dice);
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed << ", case " << i << ": " << c;
    ++i;
  }
}

TEST(LimiterOracle, TokenBucketAgreesWithAModelThatCountsTokens) {
  for_each_case(Algorithm::TokenBucket, [](const Case& c, Dice& dice) {
    TokenLevel oracle(c);
    Cell cell;
    std::vector<Admission> admitted;
    TimePoint now = dice.start();
    for (int i = 0; i < kOracleRequests; ++i) {
      const Cost cost = dice.cost(c);
      const Step s = step(c.limiter, cell, now, cost);
      ASSERT_EQ(s.outcome.allowed, oracle.ask(now, cost));
      ASSERT_EQ(Whole(s.outcome.remaining), oracle.remaining());
      if (s.outcome.allowed) admitted.push_back({now, cost});
      cell = s.next;
      now += patience(c, s.outcome, dice);
    }
    expect_bounded_by_rate(c, admitted);
  });
}

TEST(LimiterOracle, GcraAgreesWithTheVirtualSchedulingAlgorithm) {
  for_each_case(Algorithm::Gcra, [](const Case& c, Dice& dice) {
    VirtualScheduling oracle(c);
    Cell cell;
    std::vector<Admission> admitted;
    TimePoint now = dice.start();
    for (int i = 0; i < kOracleRequests; ++i) {
      const Cost cost = dice.cost(c);
      const Step s = step(c.limiter, cell, now, cost);
      ASSERT_EQ(s.outcome.allowed, oracle.ask(now, cost));
      if (s.outcome.allowed) admitted.push_back({now, cost});
      cell = s.next;
      now += patience(c, s.outcome, dice);
    }
    expect_bounded_by_rate(c, admitted);
  });
}

TEST(LimiterOracle, LeakyBucketAgreesWithAModelThatQueuesDepartures) {
  for_each_case(Algorithm::LeakyBucket, [](const Case& c, Dice& dice) {
    PromisedDepartures oracle(c);
    Cell cell;
    TimePoint now = dice.start();
    for (int i = 0; i < kOracleRequests; ++i) {
      const Cost cost = dice.cost(c);
      const Step s = step(c.limiter, cell, now, cost);
      const auto wait = oracle.ask(now, cost);
      ASSERT_EQ(s.outcome.allowed, wait.has_value());
      if (wait) {
        ASSERT_EQ(Whole(s.outcome.delay.count()), ceil(*wait));
        ASSERT_LE(s.outcome.delay, c.max_wait);
        ASSERT_LE(oracle.waiting(now, cost), quota(c.limiter));
      }
      cell = s.next;
      if (wait && dice.one_in(4)) {
        cell = refund(c.limiter, cell, now + s.outcome.delay, cost);
        oracle.withdraw_last();
      }
      now += patience(c, s.outcome, dice);
    }
  });
}

}  // namespace
}  // namespace weir::limit
