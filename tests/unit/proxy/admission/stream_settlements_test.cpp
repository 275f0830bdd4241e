// Tests the settlement of a charge by a streamed answer, and the charges that a stream causes while weir
// forwards it.
#include "unit/net/sockets.hpp"
#include "unit/proxy/admission/reserved_charge.hpp"

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

// max_body, which is 64 octets here, does not bound the length of a stream.
TEST(StreamSettlements, LastCostInAStreamIsSettledWhenTheStreamEnds) {
  Reserved one({by_body(), by_header(), by_body(1)});
  one.head.fields.push_back({"X-Cost", "3"});
  one.head.fields.push_back({"Content-Type", "text/event-stream; charset=utf-8"});
  one.head.framing = Framing::Chunked;
  EXPECT_TRUE(one.answered()) << "the header settles one charge";
  one.pass({"data: {\"n\":4", "2}\n", "\nda", "ta: {\"text\":\"" + std::string(200, 'x') + "\"}\n\n",
            "data: {\"n\":44}\n\n"});
  EXPECT_EQ(one.spent(), kReserved) << "the stream may continue";
  one.settlements.watch()->complete({});
  EXPECT_EQ(one.spent(0), 44U);
  EXPECT_EQ(one.spent(1), 3U);
  EXPECT_EQ(one.spent(2), 44U);
  EXPECT_EQ(one.settlements.watch(), nullptr);
  one.settlements.end();
  EXPECT_TRUE(one.settled(Settled::Debt, 0));
  EXPECT_TRUE(one.settled(Settled::Surplus, 1));
  EXPECT_TRUE(one.settled(Settled::Debt, 2));
}

// The charge must be settled early, because the client may send its next request as soon as it has the last
// octet.
TEST(StreamSettlements, StreamOfKnownLengthIsSettledBeforeItsLastOctetIsSent) {
  Reserved one({by_body()});
  one.head.fields.push_back({"Content-Type", "application/x-ndjson"});
  ASSERT_TRUE(one.begins(Framing::Length, 15));
  one.pass({"{\"n\":1}\n{\"n\":"});
  EXPECT_EQ(one.spent(), kReserved);
  one.pass({"7}"});
  EXPECT_EQ(one.spent(), 7U);
}

TEST(StreamSettlements, ReserveStaysChargedIfAStreamIsTruncatedCompressedOrHasNoCost) {
  Reserved cut({by_body()});
  cut.head.fields.push_back({"Content-Type", "text/event-stream"});
  ASSERT_TRUE(cut.begins(Framing::Chunked));
  cut.pass({"data: {\"n\":4}\n\n"});
  cut.settlements.end();
  EXPECT_EQ(cut.spent(), kReserved);
  EXPECT_TRUE(cut.settled(Settled::Unreadable));
  Reserved coded({by_body()});
  coded.head.fields.push_back({"Content-Type", "text/event-stream"});
  coded.head.fields.push_back({"Content-Encoding", "gzip"});
  EXPECT_FALSE(coded.begins(Framing::Chunked));
  EXPECT_TRUE(coded.settled(Settled::Unreadable));
  Reserved silent({by_body()});
  silent.head.fields.push_back({"Content-Type", "text/event-stream"});
  ASSERT_TRUE(silent.begins(Framing::Chunked));
  silent.pass({"data: {\"m\":4}\n\ndata: [DONE]\n\n"});
  silent.settlements.watch()->complete({});
  EXPECT_EQ(silent.spent(), kReserved);
  EXPECT_TRUE(silent.settled(Settled::Untold));
}

Settlement by_stream(bool cut) {
  auto settlement = by_body();
  settlement.stream = {.per_event = 20, .cut = cut};
  return settlement;
}

// A streamed answer, which the test forwards as a relay does. The bucket has 100 units, of which ten are
// reserved.
struct Streamed : Reserved {
  explicit Streamed(const std::vector<Settlement>& of_rules, const limit::Penalty* penalty = nullptr)
      : Reserved(of_rules, policy::Store::Memory, false, penalty) {
    head.fields.push_back({"Content-Type", "text/event-stream"});
    EXPECT_TRUE(begins(Framing::Chunked));
  }
  // Returns how many octets weir may forward.
  std::size_t relay(std::string_view octets) {
    const auto passed = settlements.meter()->admit(octets);
    settlements.see(octets.substr(0, passed));
    return passed;
  }
};
constexpr std::string_view kEvent = "data: {}\n\n";
std::string many_events(std::size_t count) {
  std::string text;
  while (count-- > 0) text += kEvent;
  return text;
}

TEST(StreamSettlements, StreamIsChargedBeyondItsReserveWhileWeirForwardsIt) {
  Streamed one({by_stream(false)});
  EXPECT_EQ(one.relay(kEvent), kEvent.size());
  EXPECT_EQ(one.spent(), 20U);
  EXPECT_EQ(one.relay(many_events(2)), 2 * kEvent.size());
  EXPECT_EQ(one.spent(), 60U);
  one.pass({"data: {\"n\":13}\n\n"});
  one.settlements.complete({});
  EXPECT_EQ(one.spent(), 13U) << "the stream has stated its cost";
  EXPECT_TRUE(one.settled(Settled::Surplus));
}

TEST(StreamSettlements, StreamIsChargedItsStatedCostIfThatExceedsTheEstimate) {
  Streamed one({by_stream(false)});
  (void)one.relay(many_events(2));
  one.pass({"data: {\"n\":77}\n\n"});
  one.settlements.complete({});
  EXPECT_EQ(one.spent(), 77U);
  EXPECT_TRUE(one.settled(Settled::Debt));
}

TEST(StreamSettlements, FirstEventBeyondTheBudgetIsNotForwarded) {
  Streamed one({by_stream(true)});
  EXPECT_EQ(one.relay(many_events(7)), 5 * kEvent.size()) << "100 units are five events";
  EXPECT_TRUE(one.settlements.meter()->cuts());
  EXPECT_EQ(one.relay(many_events(2)), 0U);
  one.settlements.end();
  EXPECT_EQ(one.spent(), 100U) << "the held event costs nothing";
  EXPECT_TRUE(one.settled(Settled::Cut));
}

// Returns true if exactly `units` units are spent, even if the bucket has only 100. The bill costs ten units,
// so it is refused while more than 90 units are spent. One unit refills an hour. So the bill must be refused
// one minute before (`units` - 90) hours have passed, and admitted when they have passed.
bool owes(Reserved& one, limit::Cost units) {
  const auto paid = one.charged_at + hours(units - 90);
  return !one.table.charge(one.bill.charges(), paid - minutes(1), one.bill.outcomes()) &&
         one.table.charge(one.bill.charges(), paid, one.bill.outcomes());
}

TEST(StreamSettlements, CutStreamIsChargedItsStatedCostIfThatExceedsTheEstimate) {
  Streamed one({by_stream(true)});
  EXPECT_EQ(one.relay("data: {\"n\":150}\n\n" + many_events(6)), 17 + 4 * kEvent.size());
  one.settlements.end();
  EXPECT_TRUE(owes(one, 150));
  EXPECT_TRUE(one.settled(Settled::Cut));
}

TEST(StreamSettlements, CutStreamIsChargedItsEstimateIfTheStatedCostIsLower) {
  Streamed one({by_stream(true)});
  (void)one.relay("data: {\"n\":15}\n\n" + many_events(6));
  one.settlements.end();
  EXPECT_TRUE(owes(one, 100));
  EXPECT_TRUE(one.settled(Settled::Cut));
}

// If one rule cuts the stream, every other rule charges the cost that the stream has stated so far, but at
// least its reserve.
TEST(StreamSettlements, StreamThatOneRuleCutsIsChargedAtLeastTheReserveByOtherRules) {
  auto cheap = by_stream(true);
  cheap.stream->per_event = 1;
  Streamed silent({by_stream(true), cheap, by_body()});
  EXPECT_EQ(silent.relay(many_events(6)), 5 * kEvent.size());
  silent.settlements.end();
  EXPECT_TRUE(silent.settled(Settled::Cut, 0));
  EXPECT_EQ(silent.spent(1), kReserved);
  EXPECT_TRUE(silent.settled(Settled::Estimated, 1));
  EXPECT_EQ(silent.spent(2), kReserved);
  EXPECT_TRUE(silent.settled(Settled::Untold, 2));

  Streamed told({by_stream(true), cheap, by_body()});
  (void)told.relay("data: {\"n\":40}\n\n" + many_events(6));
  told.settlements.end();
  EXPECT_TRUE(told.settled(Settled::Cut, 0));
  for (const std::size_t rule : {1U, 2U}) {
    EXPECT_EQ(told.spent(rule), 40U);
    EXPECT_TRUE(told.settled(Settled::Debt, rule));
  }
}

const limit::Limiter kElastic = limit::TokenBucket::make({1, hours(1)}, 1000).value();

// A stream under an elastic rule, which has two buckets. The elastic bucket of 1,000 units decides. The
// rule's own bucket of 100 units does not decide, but is charged too until its units are spent. Another
// request of the client has taken 60 units from the rule's own bucket.
struct ElasticStream : LoneWorker {
  ElasticStream() : LoneWorker({}) {
    rule.settlement = by_stream(false);
    for (const bool own : {false, true}) {
      const auto* limiter = own ? &kHundred : &kElastic;
      policy::AppliedLimiter applied{.limiter = limiter, .advertised = limiter};
      applied.counted = own;
      bill.add({&rule, applied}, {.key = {1, own ? 8U : 7U},
                                  .limiter = limiter,
                                  .cost = kReserved,
                                  .enforced = !own,
                                  .limiter_id = own ? 0U : 1U,
                                  .counted = own});
    }
    auto other = own_charge();
    other.cost = 60;
    other.counted = false;
    limit::Outcome outcome;
    EXPECT_TRUE(table.charge({&other, 1}, charged_at, {&outcome, 1}));
    EXPECT_TRUE(table.charge(bill.charges(), charged_at, bill.outcomes()));
    settlements.begin(bill, Settlements::Store::Table, charged_at);
    head.fields.push_back({"Content-Type", "text/event-stream"});
    head.framing = Framing::Chunked;
    EXPECT_FALSE(settlements.answered(200, &head, charged_at));
  }
  [[nodiscard]] const limit::Charge& own_charge() const { return bill.charges()[1]; }
  [[nodiscard]] limit::Cost spent() const {
    return 100 - table.current_outcome(own_charge(), charged_at).remaining;
  }

  policy::Rule rule{.name = "r", .limiter = kHundred};
  const base::TimePoint charged_at = clock.now();
  ExchangeBuffers buffers{worker};
  policy::Bill& bill = buffers.evaluation.local;
  Settlements settlements{worker, buffers};
  http::ResponseHead head;
};

TEST(StreamSettlements, EachLimiterOfAnElasticRuleIsRefundedAtMostItsCharge) {
  ElasticStream one;
  EXPECT_EQ(one.settlements.meter()->admit(many_events(2), one.charged_at), 2 * kEvent.size());
  EXPECT_EQ(one.spent(), 100U);
  EXPECT_EQ(one.settlements.meter()->admit(kEvent, one.charged_at), kEvent.size())
      << "the rule's own bucket has no units left";
  one.settlements.see("data: {\"n\":15}\n\n");
  one.settlements.complete({});
  EXPECT_EQ(one.spent(), 75U);
}

// A stream under a rule in a Redis that does not answer.
struct WithoutRedis : Reserved {
  WithoutRedis(policy::OnStoreFailure on_failure, bool cut)
      : Reserved({by_stream(cut)}, policy::Store::Redis) {
    rules[0].on_store_failure = on_failure;
    head.fields.push_back({"Content-Type", "text/event-stream"});
    EXPECT_TRUE(begins(Framing::Chunked));
  }
  StreamMeter& meter() { return *settlements.meter(); }
  // Makes the charge in Redis for the event that is held back. Returns the time from which the meter asks
  // Redis again.
  base::TimePoint ask_redis(base::TimePoint now) {
    bool done = false;
    net::spawn(context.get_executor(), meter().charge_in_redis(now),
               [&](const std::exception_ptr&) { done = true; });
    EXPECT_TRUE(net::turn_until(
        context, [&] { return done; }, std::chrono::seconds(20)));
    return meter().metered(rules[0], StreamMeter::Store::Redis)->ask_again;
  }
};

TEST(StreamSettlements, EventsAreForwardedUnchargedAfterARedisFailureUntilWeirCallsRedisAgain) {
  using policy::OnStoreFailure;
  const auto moment = base::Duration(1);
  for (const auto& [on_failure, cut] :
       {std::pair(OnStoreFailure::Open, true), std::pair(OnStoreFailure::Local, true),
        std::pair(OnStoreFailure::Closed, false)}) {
    WithoutRedis one(on_failure, cut);
    EXPECT_EQ(one.meter().admit(kEvent, one.charged_at), 0U) << "the event needs a charge";
    const auto again = one.ask_redis(one.charged_at);
    EXPECT_EQ(one.meter().admit(kEvent, again - moment), kEvent.size());
    EXPECT_EQ(one.meter().admit(many_events(9), again - moment), 9 * kEvent.size());
    EXPECT_EQ(one.meter().admit(kEvent, again), 0U) << "the meter asks again";
    EXPECT_FALSE(one.meter().cuts());
    EXPECT_GE(one.ask_redis(again), again);
    EXPECT_EQ(one.counters.store_failures.value(), 2U);
  }
}

TEST(StreamSettlements, StreamIsCutIfRedisDoesNotAnswerAndOnStoreFailureIsClosed) {
  WithoutRedis one(policy::OnStoreFailure::Closed, true);
  EXPECT_EQ(one.meter().admit(kEvent, one.charged_at), 0U);
  const auto again = one.ask_redis(one.charged_at);
  EXPECT_TRUE(one.meter().cuts());
  EXPECT_EQ(one.meter().admit(kEvent, again), 0U);
  one.settlements.end();
  EXPECT_TRUE(one.settled(Settled::Cut));
}

// A cut stream is no violation, because a client cannot know where its budget ends within a stream.
TEST(StreamSettlements, CutStreamDoesNotCountTowardsAPenalty) {
  const limit::Penalty penalty{.first = hours(1), .most = hours(1), .forget = hours(1)};
  Streamed one({by_stream(true)}, &penalty);
  EXPECT_EQ(one.relay(many_events(7)), 5 * kEvent.size());
  const auto stats = one.table.stats();
  EXPECT_EQ(stats.penalty_keys + stats.violations_lost, 0U);
}

TEST(StreamSettlements, OnlyTheEndOfAnEventThatArrivesInPiecesIsHeldBack) {
  Streamed one({by_stream(true)});
  EXPECT_EQ(one.relay(many_events(5) + "data: "), 5 * kEvent.size() + 6);
  EXPECT_EQ(one.relay("{}\n"), 3U);
  EXPECT_EQ(one.relay("\n"), 0U) << "without its empty line the client does not see the event";
  EXPECT_TRUE(one.settlements.meter()->cuts());
}

TEST(StreamSettlements, StreamThatMayNotBeCutIsForwardedCompletelyAndOwesItsEstimate) {
  Streamed one({by_stream(false)});
  EXPECT_EQ(one.relay(many_events(9)), 9 * kEvent.size());
  one.settlements.complete({});
  EXPECT_FALSE(one.table.charge(one.bill.charges(), one.charged_at + hours(80), one.bill.outcomes()))
      << "180 units were charged";
  EXPECT_TRUE(one.table.charge(one.bill.charges(), one.charged_at + hours(91), one.bill.outcomes()));
  EXPECT_TRUE(one.settled(Settled::Estimated));
}

TEST(StreamSettlements, StreamThatBreaksOffBelowItsReserveIsChargedTheReserve) {
  auto cheap = by_stream(true);
  cheap.stream->per_event = 1;
  Streamed broken({cheap});
  (void)broken.relay(many_events(3));
  broken.settlements.end();
  EXPECT_EQ(broken.spent(), kReserved);
  EXPECT_TRUE(broken.settled(Settled::Estimated));
  Streamed whole({cheap});
  (void)whole.relay(many_events(3));
  whole.settlements.complete({});
  EXPECT_EQ(whole.spent(), 3U);
}

TEST(StreamSettlements, OnlyEventsThatAreJsonObjectsCount) {
  Streamed one({by_stream(true)});
  const std::string_view text =
      ": comment\n\ndata: [DONE]\n\nevent: ping\n\ndata:  \n\ndata\n\ndata: text\n\n";
  EXPECT_EQ(one.relay(text), text.size());
  EXPECT_EQ(one.spent(), kReserved);
}

TEST(StreamSettlements, ShadowRuleNeitherChargesNorCutsAStreamBeforeItsEnd) {
  Reserved one({by_stream(true), by_body()});
  one.rules[0].mode = policy::Mode::Shadow;
  one.head.fields.push_back({"Content-Type", "text/event-stream"});
  ASSERT_TRUE(one.begins(Framing::Chunked));
  const auto text = many_events(9);
  EXPECT_EQ(one.settlements.meter()->admit(text), text.size());
  EXPECT_EQ(one.spent(), kReserved);
}

TEST(StreamSettlements, StreamIsChargedItsReserveIfMemoryIsTooShortToReadItsCost) {
  Reserved one({by_body(), by_body()});
  one.body_memory.set_most(100);
  one.head.fields.push_back({"Content-Type", "text/event-stream"});
  ASSERT_TRUE(one.begins(Framing::Chunked));
  one.pass({"data: {\"n\":4}\n\n", "data: {\"n\":5}\n\n"});
  EXPECT_FALSE(one.settlements.needs_answer()) << "nothing is left to read";
  one.settlements.watch()->complete({});
  for (std::size_t rule = 0; rule < 2; ++rule) {
    EXPECT_EQ(one.spent(rule), kReserved);
    EXPECT_TRUE(one.settled(Settled::Unreadable, rule));
  }
  EXPECT_EQ(one.counters.body_memory_refused.value(), 1U);
  EXPECT_EQ(one.body_memory.taken(), 0U);
}

TEST(StreamSettlements, MemoryOfAStreamCountsAsBodyMemoryUntilTheStreamIsSettled) {
  const auto taken_by = [](const std::vector<Settlement>& of_rules) {
    Reserved one(of_rules);
    one.head.fields.push_back({"Content-Type", "text/event-stream"});
    EXPECT_TRUE(one.begins(Framing::Chunked));
    one.pass({"data: {\"n\":4}\n\n"});
    const auto taken = one.body_memory.taken();
    EXPECT_EQ(static_cast<std::uint64_t>(one.counters.body_memory.value()), taken);
    one.settlements.watch()->complete({});
    EXPECT_EQ(one.body_memory.taken(), 0U);
    EXPECT_EQ(one.counters.body_memory.value(), 0);
    EXPECT_EQ(one.spent(), 4U);
    return taken;
  };
  const auto taken = taken_by({by_body()});
  EXPECT_GT(taken, 0U);
  EXPECT_EQ(taken_by({by_body(), by_body()}), 2 * taken);
}

TEST(StreamSettlements, StreamIsChargedByItsNumberOfEventsIfMemoryIsTooShortToReadItsCost) {
  Streamed one({by_stream(true)});
  one.body_memory.set_most(100);
  EXPECT_EQ(one.relay(many_events(3)), many_events(3).size());
  one.settlements.complete({});
  EXPECT_EQ(one.spent(), 3 * by_stream(true).stream->per_event);
  EXPECT_TRUE(one.settled(Settled::Estimated));
}

}  // namespace
}  // namespace weir::proxy
