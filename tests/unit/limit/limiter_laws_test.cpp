// Laws that every limiter must obey, for random parameters and traffic. Each promise about the future is
// checked by asking the limiter again at that time. The tests use no knowledge of how a limiter computes.
#include "unit/limit/random_case.hpp"

#include "weir/limit/limiter.hpp"

namespace weir::limit {
namespace {

constexpr int kLawCases = 40'000;
constexpr int kLawRequests = 12;  // requests in each case

// One request in random traffic, with the state before the request.
struct Moment {
  const Case& rule;
  Cell cell;
  TimePoint now;
  Cost cost;
  Step step;
};

bool is_queue(const Case& rule) {
  return rule.algorithm == Algorithm::LeakyBucket;
}

std::uint64_t largest_cost(const Case& rule) {
  return is_queue(rule) ? gcra_core(rule.limiter)->largest_cost() : rule.capacity;
}

// Returns how many units the limiter would admit at the instant `at`. For a queue, returns how many requests
// of cost `cost` it would admit.
Cost remaining_at(const Case& rule, const Cell& cell, TimePoint at, Cost cost = 1) {
  if (is_queue(rule)) {
    const auto outcome = step(rule.limiter, cell, at, cost).outcome;
    return outcome.allowed ? outcome.remaining + 1 : 0;
  }
  return step(rule.limiter, cell, at, rule.capacity + 1)
      .outcome.remaining;  // the limiter never admits this cost, so `remaining` shows the present state
}

template <class Law>
void for_each_moment(Law law) {
  const auto seed = new_seed();
  Dice dice(seed);
  for (int i = 0; i < kLawCases; ++i) {
    const Case rule = dice.limiter();
    Cell cell;
    TimePoint now = dice.start();
    for (int request = 0; request < kLawRequests; ++request) {
      const Cost cost = dice.cost(rule);
      const Step next = step(rule.limiter, cell, now, cost);
      law(Moment{rule, cell, now, cost, next}, dice);
      if (testing::Test::HasFailure())
        FAIL() << "seed " << seed << ", case " << i << ", request " << request << ": cost " << cost << " at "
               << now.time_since_epoch().count() << " of " << rule;
      cell = next.next;
      now += next.outcome.retry_after != base::kForever && dice.one_in(4) ? next.outcome.retry_after
                                                                          : dice.pause(rule);
    }
  }
}

TEST(LimiterLaws, RejectedRequestIsAdmittedAtItsRetryAfterAndNotEarlier) {
  int refusals = 0;
  for_each_moment([&](const Moment& m, Dice& dice) {
    const auto wait = m.step.outcome.retry_after;
    EXPECT_EQ(m.step.outcome.allowed, wait == 0us);
    EXPECT_EQ(wait == base::kForever, m.cost > largest_cost(m.rule));
    if (m.step.outcome.allowed || wait == base::kForever) return;
    ++refusals;
    const auto admitted_after = [&](Duration d) {
      return step(m.rule.limiter, m.cell, m.now + d, m.cost).outcome.allowed;
    };
    EXPECT_TRUE(admitted_after(wait));
    EXPECT_FALSE(admitted_after(wait - 1us));
    const auto earlier = Duration(dice.between(0, static_cast<std::uint64_t>(wait.count()) - 1));
    EXPECT_FALSE(admitted_after(earlier));
    const auto still = step(m.rule.limiter, m.cell, m.now + earlier, m.cost).outcome.retry_after;
    EXPECT_EQ(earlier + still, wait) << "the promised time changed while waiting";
  });
  EXPECT_GT(refusals, kLawCases);
}

TEST(LimiterLaws, UnusedKeyAdmitsEveryCostUpToTheCapacity) {
  for_each_moment([](const Moment& m, Dice&) {
    EXPECT_EQ(step(m.rule.limiter, Cell{}, m.now, m.cost).outcome.allowed, m.cost <= largest_cost(m.rule));
  });
}

TEST(LimiterLaws, RejectedRequestChangesNoStateOfItsKey) {
  for_each_moment([](const Moment& m, Dice&) {
    if (m.step.outcome.allowed) return;
    EXPECT_EQ(m.step.next, m.cell);
    EXPECT_EQ(m.step.outcome.more_after, m.step.outcome.retry_after);
    EXPECT_EQ(m.step.outcome.delay, 0us);
  });
}

// A limiter may get an earlier time than in the call before: a worker reads its clock before it gets the
// lock, and the machine's clock may be set back.
TEST(LimiterLaws, RequestWithAnEarlierTimeThanThePreviousRequestGetsNoAdditionalUnits) {
  int admitted = 0;
  for_each_moment([&](const Moment& m, Dice& dice) {
    const Cell& cell = m.step.next;
    const auto passed = static_cast<std::uint64_t>(m.now.time_since_epoch().count());
    const TimePoint earlier =
        m.now - Duration(dice.one_in(2) ? dice.magnitude(0, passed) : dice.between(0, passed));
    EXPECT_LE(remaining_at(m.rule, cell, earlier), remaining_at(m.rule, cell, m.now));
    const Step back = step(m.rule.limiter, cell, earlier, m.cost);
    if (!back.outcome.allowed) return;
    ++admitted;
    EXPECT_TRUE(step(m.rule.limiter, cell, m.now, m.cost).outcome.allowed);
    EXPECT_GE(drained_at(m.rule.limiter, back.next), drained_at(m.rule.limiter, cell));
  });
  EXPECT_GT(admitted, kLawCases / 10);
}

TEST(LimiterLaws, ExactlyTheRemainingUnitsCanBeSpentAtOnce) {
  for_each_moment([](const Moment& m, Dice&) {
    Cell cell = m.step.next;
    Cost left = m.step.outcome.remaining;
    const Cost unit = is_queue(m.rule) ? m.cost : 1;
    if (is_queue(m.rule) && left > 50) return;
    const auto spend = [&](Cost cost) {
      const Step s = step(m.rule.limiter, cell, m.now, cost);
      EXPECT_TRUE(s.outcome.allowed) << "remaining was too large by " << left;
      left -= cost / unit;
      EXPECT_EQ(s.outcome.remaining, left);
      cell = s.next;
    };
    if (left > 50) spend(left - 50);
    while (left > 0 && !testing::Test::HasFailure()) spend(unit);
    EXPECT_FALSE(step(m.rule.limiter, cell, m.now, unit).outcome.allowed) << "remaining was too small";
  });
}

TEST(LimiterLaws, RemainingUnitsIncreaseExactlyAtTheReportedTime) {
  for_each_moment([](const Moment& m, Dice&) {
    const auto& outcome = m.step.outcome;
    const auto remaining = outcome.remaining;
    const auto more = outcome.more_after;
    if (!outcome.allowed) return;
    ASSERT_GT(more, 0us);
    EXPECT_EQ(remaining_at(m.rule, m.step.next, m.now, m.cost), remaining);
    EXPECT_EQ(remaining_at(m.rule, m.step.next, m.now + more - 1us, m.cost), remaining);
    const Cost then = remaining_at(m.rule, m.step.next, m.now + more, m.cost);
    EXPECT_GT(then, remaining);
    const bool one_at_a_time = m.rule.rate.period.count() >= static_cast<std::int64_t>(m.rule.rate.count);
    EXPECT_TRUE(then == remaining + 1 || !one_at_a_time || !m.rule.is_paced())
        << then << " after " << remaining;
  });
}

TEST(LimiterLaws, LimitHasRefilledExactlyAtTheReportedResetTime) {
  for_each_moment([](const Moment& m, Dice&) {
    const auto reset = m.step.outcome.reset_after;
    EXPECT_EQ(m.step.drained_at, m.now + reset);
    // `reset` is at most window(limiter), except in queues and in calendar windows. A calendar day may have
    // 25 hours or more.
    EXPECT_TRUE(m.rule.algorithm == Algorithm::Calendar || is_queue(m.rule) ||
                reset <= window(m.rule.limiter));
    const auto after_charge = [&](const Cell& cell, TimePoint at) {
      return step(m.rule.limiter, cell, at, 1);
    };
    const TimePoint at = m.now + reset;
    EXPECT_EQ(after_charge(m.step.next, at).next, after_charge(Cell{}, at).next);
    EXPECT_EQ(after_charge(m.step.next, at).outcome, after_charge(Cell{}, at).outcome);
    EXPECT_LE(drained_at(m.rule.limiter, m.step.next), at);
    if (reset == 0us) return;
    EXPECT_EQ(drained_at(m.rule.limiter, m.step.next), at);
    const Step before = after_charge(m.step.next, at - 1us);
    EXPECT_TRUE(!before.outcome.allowed || before.next != after_charge(Cell{}, at - 1us).next)
        << "the state was unused earlier";
  });
}

TEST(LimiterLaws, RefundRestoresTheStateBeforeTheCharge) {
  for_each_moment([](const Moment& m, Dice& dice) {
    if (!m.step.outcome.allowed || (m.rule.merges() && m.cell != Cell{})) return;
    const Cell back = refund(m.rule.limiter, m.step.next, m.now + m.step.outcome.delay, m.cost);
    for (int i = 0; i < 4; ++i) {
      const auto at = m.now + (i == 0 ? 0us : dice.pause(m.rule));
      const Cost cost = dice.cost(m.rule);
      EXPECT_EQ(step(m.rule.limiter, back, at, cost).outcome, step(m.rule.limiter, m.cell, at, cost).outcome);
    }
  });
}

TEST(LimiterLaws, LimitRefillsAtTheSameTimeAfterItsStateIsConvertedToAnotherRate) {
  for_each_moment([](const Moment& m, Dice& dice) {
    const Case other = dice.limiter();
    if (!m.rule.is_paced() || !other.is_paced()) return;
    const Cell converted = carry_over(m.rule.limiter, m.step.next, other.limiter);
    EXPECT_EQ(drained_at(other.limiter, converted), drained_at(m.rule.limiter, m.step.next));
  });
}

// Windows of two different lengths cannot always drain at the same time. After a conversion the state may
// drain later, but never earlier. The number of used units stays the same.
TEST(LimiterLaws, LimitNeverRefillsEarlierAfterItsStateIsConvertedToAnotherWindowLength) {
  int carried_over = 0;
  for_each_moment([&](const Moment& m, Dice& dice) {
    const Case other = dice.limiter();
    if (m.rule.is_paced() || m.rule.limiter.index() != other.limiter.index()) return;
    ++carried_over;
    const Cell converted = carry_over(m.rule.limiter, m.step.next, other.limiter);
    const auto drains = drained_at(m.rule.limiter, m.step.next);
    EXPECT_GE(drained_at(other.limiter, converted), drains);
    if (drains <= m.now || m.rule.algorithm == Algorithm::SteppedBucket) return;
    const Cost counted = quota(m.rule.limiter) - remaining_at(m.rule, m.step.next, m.now);
    EXPECT_LE(remaining_at(other, converted, m.now), other.capacity - std::min(other.capacity, counted));
  });
  EXPECT_GT(carried_over, kLawCases / 10);
}

}  // namespace
}  // namespace weir::limit
