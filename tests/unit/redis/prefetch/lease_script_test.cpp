// Tests how the real scripts take back prefetched units. The units of a bucket have time slots: the times at
// which they refill.
#include "redis/prefetch/grant.hpp"
#include "unit/redis/scripts/timed_scripts.hpp"

#include "weir/limit/limiter.hpp"

#include <array>
#include <chrono>
#include <vector>

namespace weir::redis {
namespace {

using namespace std::chrono_literals;
using limit::Cost;
using limit::Limiter;

class LeaseScript : public ::testing::Test {
 protected:
  static constexpr base::TimePoint kNow{base::Duration(1'700'000'000'000'000)};
  // This bucket refills one unit a second, so each time slot is one second long.
  static inline const Limiter kFull = limit::TokenBucket::make({1, 1s}, 100).value();
  static limit::Ticks ticks(int seconds) { return limit::gcra_core(kFull)->ticks(kNow + seconds * 1s); }
  const Grant::Time here_{1000s};

  Server server_;
  TimedScripts scripts_{server_};

  limit::Charge line(const Limiter& limiter, Cost cost) const {
    return {.key = {1, 2}, .limiter = &limiter, .cost = cost, .lease = 100};
  }
  limit::Outcome charge(const Limiter& limiter, Cost cost, RoundTrip* trip = nullptr) {
    return charge(line(limiter, cost), trip);
  }
  limit::Outcome charge(const limit::Charge& line, RoundTrip* trip = nullptr) {
    const std::array bill{line};
    std::array<limit::Outcome, 1> outcomes;
    base::TimePoint now;
    const auto reply = scripts_.charge(bill);
    EXPECT_EQ(read_outcomes(reply, bill, outcomes, now), ReplyReading::Answer);
    if (trip != nullptr) *trip = {here_, here_, now, outcomes[0].slots_begin};
    return outcomes[0];
  }
  Grant take(const Limiter& limiter, Cost units) {
    RoundTrip trip;
    const auto outcome = charge(limiter, units, &trip);
    EXPECT_TRUE(outcome.allowed);
    return Grant(1, line(limiter, units), trip, outcome.reset_after);
  }
  // Makes a gap of `units` free time slots, between `before` charged slots and `behind` charged slots.
  void make_gap(Cost before, Cost units, Cost behind) {
    scripts_.set_clock(kNow);
    charge(kFull, before);
    const auto gap = take(kFull, units);
    take(kFull, behind);
    EXPECT_TRUE(refund_grant(kFull, gap));
  }
  // Refunds the unspent units of the grant. Returns true if Redis accepted the refund.
  bool refund_grant(const Limiter& limiter, const Grant& grant) {
    const auto refund = grant.refund_of_unspent(line(limiter, 1), here_);
    EXPECT_TRUE(refund);
    return refund && scripts_.refund(*refund).numbers.at(0) == 1;
  }
};

// At this rate of 700 units in 3 s, only every seventh time slot begins on a whole microsecond.
TEST_F(LeaseScript, BucketAcceptsReturnedTimeSlotsAtAnyPosition) {
  const Limiter limiter = limit::TokenBucket::make({700, 3s}, 500).value();
  scripts_.set_clock(kNow);
  charge(limiter, 101);
  auto first = take(limiter, 23);
  const auto second = take(limiter, 31);
  limit::Outcome spent;
  first.spend(8, here_, spent);
  EXPECT_TRUE(refund_grant(limiter, first)) << "the second grant was charged after the first";
  EXPECT_FALSE(refund_grant(limiter, first)) << "the slots were already returned";
  EXPECT_EQ(charge(limiter, 1).remaining, 500U - 101 - 23 - 31 - 1)
      << "the charge took returned slots, a fraction of a microsecond late";
  EXPECT_TRUE(refund_grant(limiter, second));
  EXPECT_EQ(charge(limiter, 1).remaining, 500U - 101 - 8 - 1 - 1) << "both ranges were merged";
}

TEST_F(LeaseScript, ChargesUseReturnedTimeSlotsIfTheyFit) {
  make_gap(10, 5, 85);
  const auto refused = charge(kFull, 6);
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.retry_after, 6s) << "the request does not fit into the returned slots";
  RoundTrip trip;
  EXPECT_TRUE(charge(kFull, 3, &trip).allowed);
  EXPECT_EQ(trip.begin, ticks(10));
  EXPECT_TRUE(charge(kFull, 1, &trip).allowed);
  EXPECT_EQ(trip.begin, ticks(13));
  EXPECT_FALSE(charge(kFull, 2).allowed);
  EXPECT_TRUE(charge(kFull, 1).allowed);
  EXPECT_FALSE(charge(kFull, 1).allowed);
}

TEST_F(LeaseScript, ReturnedTimeSlotsExpire) {
  scripts_.set_clock(kNow);
  const auto gap = take(kFull, 5);
  take(kFull, 95);
  EXPECT_TRUE(refund_grant(kFull, gap));
  scripts_.set_clock(kNow + 2500ms);
  RoundTrip trip;
  EXPECT_FALSE(charge(kFull, 3).allowed);
  EXPECT_TRUE(charge(kFull, 2, &trip).allowed);
  EXPECT_EQ(trip.begin, ticks(2) + ticks(1) / 2 - ticks(0) / 2);
  EXPECT_TRUE(charge(kFull, 2, &trip).allowed) << "units that were refilled meanwhile";
  EXPECT_EQ(trip.begin, ticks(100)) << "the charge is after all others";
  EXPECT_FALSE(charge(kFull, 1).allowed);
}

TEST_F(LeaseScript, AdjacentReturnedTimeSlotsAreMerged) {
  scripts_.set_clock(kNow);
  charge(kFull, 10);
  const std::array grants{take(kFull, 5), take(kFull, 5), take(kFull, 5)};
  take(kFull, 75);
  for (const auto i : {0U, 2U, 1U}) EXPECT_TRUE(refund_grant(kFull, grants[i]));
  EXPECT_FALSE(charge(kFull, 16).allowed);
  EXPECT_TRUE(charge(kFull, 15).allowed);
}

// Redis has lost the state. Since then, other charges have got the same time slots.
TEST_F(LeaseScript, TimeSlotsChargedBeforeALossOfTheStateAreNotAccepted) {
  scripts_.set_clock(kNow);
  charge(kFull, 10);
  const auto lost = take(kFull, 5);
  scripts_.forget({1, 2});
  scripts_.set_clock(kNow + 1ms);
  EXPECT_EQ(charge(kFull, 20).remaining, 80U);
  EXPECT_FALSE(refund_grant(kFull, lost));
  EXPECT_EQ(charge(kFull, 1).remaining, 79U);
}

// Restores the state from before the grant. A promoted replica that has missed the charge of the grant has
// this state.
TEST_F(LeaseScript, TimeSlotsWhoseChargeIsMissingOnAPromotedReplicaAreNotAccepted) {
  scripts_.set_clock(kNow);
  take(kFull, 10);
  const auto name = key_name("w", {1, 2});
  const auto before = scripts_.connection().ask({"GET", name}).text;
  const auto unknown = take(kFull, 5);
  scripts_.connection().ask({"SET", name, before});
  charge(kFull, 4);
  EXPECT_FALSE(refund_grant(kFull, unknown));
  EXPECT_EQ(charge(kFull, 1).remaining, 85U);
}

TEST_F(LeaseScript, KeyWithAStateInAnUnknownFormatCountsAsUnused) {
  scripts_.set_clock(kNow);
  scripts_.connection().ask({"SET", key_name("w", {1, 2}), "\t" + std::string(40, 'x')});
  EXPECT_EQ(charge(kFull, 1).remaining, 99U);
}

TEST_F(LeaseScript, ShortestRangeOfReturnedTimeSlotsIsDroppedIfTheBucketHasTooManyRanges) {
  scripts_.set_clock(kNow);
  charge(kFull, 10);
  std::vector<Grant> grants;
  for (int i = 0; i < 17; ++i) {
    grants.push_back(take(kFull, i == 8 ? 1 : 2));
    charge(kFull, 1);
  }
  charge(kFull, 100 - 10 - 33 - 17);
  for (std::size_t i = 0; i < grants.size(); ++i)
    EXPECT_EQ(gaps_lost(scripts_.refund(*grants[i].refund_of_unspent(line(kFull, 1), here_))),
              i == 16 ? 1U : 0U);
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(charge(kFull, 2).allowed);
  EXPECT_FALSE(charge(kFull, 1).allowed);
}

// If the charge shortened the time to live, the key would expire although time slots after the gap are
// charged.
TEST_F(LeaseScript, ChargeInReturnedTimeSlotsDoesNotChangeTheTimeToLiveOfItsKey) {
  make_gap(10, 5, 60);
  scripts_.set_clock(kNow + 1s);
  for (const Cost cost : {4U, 1U}) {
    EXPECT_TRUE(charge(kFull, cost).allowed);
    EXPECT_GE(kNow + 1s + scripts_.life_of({1, 2}), kNow + 75s);
    EXPECT_LE(kNow + 1s + scripts_.life_of({1, 2}), kNow + 75s + 2ms);
  }
}

// At this rate of 700 units in 3 s, most time slots begin between two whole microseconds.
TEST_F(LeaseScript, ReplyHasTheExactTimeSlotOfAChargeInReturnedTimeSlots) {
  const Limiter limiter = limit::TokenBucket::make({700, 3s}, 500).value();
  const auto& gcra_core = *limit::gcra_core(limiter);
  scripts_.set_clock(kNow);
  charge(limiter, 101);
  const auto gap = take(limiter, 23);
  take(limiter, 31);
  EXPECT_TRUE(refund_grant(limiter, gap));
  RoundTrip trip;
  for (unsigned i = 101; i < 124; i += i == 102 ? 22 : 1) {
    charge(limiter, i == 102 ? 22 : 1, &trip);
    EXPECT_TRUE(trip.begin == gcra_core.ticks(kNow) + limit::Ticks{i} * 3'000'000U) << i;
  }
  charge(limiter, 1, &trip);
  EXPECT_TRUE(trip.begin == gcra_core.ticks(kNow) + limit::Ticks{155} * 3'000'000U)
      << "the returned slots are used to the last tick";
}

TEST_F(LeaseScript, ReturnedTimeSlotsAreNeverLongerAfterAChangeOfTheRate) {
  const Limiter before = limit::TokenBucket::make({700, 3s}, 500).value();
  const Limiter after = limit::TokenBucket::make({1, 1s}, 500).value();
  scripts_.set_clock(kNow);
  charge(before, 101);
  const auto gap = take(before, 350);
  take(before, 31);
  EXPECT_TRUE(refund_grant(before, gap));
  RoundTrip trip;
  charge(after, 1, &trip);
  EXPECT_EQ(trip.begin, limit::gcra_core(after)->ticks(kNow + 432'858us)) << "rounded up from 432,857.14";
  EXPECT_TRUE(charge(after, 1).allowed)
      << "the charge is at the end, because less than a second is left of the returned slots";
  charge(before, 116, &trip);
  EXPECT_TRUE(trip.begin == limit::gcra_core(before)->ticks(kNow + 1'432'858us))
      << "all returned slots except the last microsecond";
}

// A gap consists of free time slots between charged time slots. After the burst was reduced, a gap may be
// farther ahead than the new burst allows. No charge may use that gap.
TEST_F(LeaseScript, ReturnedTimeSlotsBeyondAReducedBurstAreNotUsed) {
  scripts_.set_clock(kNow);
  charge(kFull, 10);
  const auto near = take(kFull, 5);
  charge(kFull, 55);
  const auto far = take(kFull, 5);
  charge(kFull, 25);
  EXPECT_TRUE(refund_grant(kFull, near));
  EXPECT_TRUE(refund_grant(kFull, far));
  const Limiter cut = limit::TokenBucket::make({1, 1s}, 50).value();
  EXPECT_TRUE(charge(cut, 5).allowed);
  EXPECT_FALSE(charge(cut, 1).allowed);
  EXPECT_TRUE(charge(kFull, 5).allowed);
}

// A reload may remove `lease` from a rule while instances hold prefetched units. These units can then neither
// be refunded nor used.
TEST_F(LeaseScript, ChargeOfARuleWithoutLeaseRemovesReturnedTimeSlots) {
  make_gap(10, 5, 75);
  const auto out = take(kFull, 6);
  auto plain = line(kFull, 4);
  plain.lease = 0;
  EXPECT_EQ(charge(plain).remaining, 0U);
  EXPECT_FALSE(refund_grant(kFull, out));
  scripts_.refund({plain, kNow});
  EXPECT_EQ(charge(plain).remaining, 0U);
  scripts_.set_clock(kNow + 1s);
  EXPECT_TRUE(charge(kFull, 1).allowed) << "a charge with a lease again";
  EXPECT_FALSE(refund_grant(kFull, out)) << "units charged before";
  EXPECT_FALSE(charge(kFull, 1).allowed);
}

// The state is left from the time when the rule had a `lease`.
TEST_F(LeaseScript, RefundForARuleWithoutLeaseDoesNotChangeAStateWithTimeSlots) {
  make_gap(10, 5, 80);
  auto plain = line(kFull, 4);
  plain.lease = 0;
  EXPECT_EQ(scripts_.refund({plain, kNow}).numbers.at(0), 0);
  EXPECT_TRUE(charge(kFull, 5).allowed);
  EXPECT_EQ(charge(kFull, 1).remaining, 4U);
}

TEST_F(LeaseScript, WindowAcceptsTheReturnOfAllItsUnits) {
  const std::array<Limiter, 3> limiters{limit::FixedWindow::make({500, 10s}).value(),
                                        limit::SlidingWindow::make({500, 10s}).value(),
                                        limit::SlidingLog::make({500, 10s}, 5).value()};
  for (const auto& limiter : limiters) {
    scripts_.forget_all();
    scripts_.set_clock(kNow + 1s);
    charge(limiter, 101);
    auto first = take(limiter, 23);
    const auto second = take(limiter, 31);
    limit::Outcome spent;
    first.spend(8, here_, spent);
    scripts_.set_clock(kNow + 1100ms);
    EXPECT_TRUE(refund_grant(limiter, first));
    EXPECT_TRUE(refund_grant(limiter, second));
    EXPECT_EQ(charge(limiter, 1).remaining, 500U - 101 - 8 - 1);
  }
}

}  // namespace
}  // namespace weir::redis
