// Tests the settlement of a charge by a streamed answer, and the charges that a stream causes while it
// passes.
#include "unit/proxy/admission/reserved_charge.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

// A stream may be longer than max_body, which is 64 octets here.
TEST(StreamSettlements, SettlesTheLastCostInAStreamWhenTheStreamEnds) {
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

// The client may send its next request as soon as it has the last octet.
TEST(StreamSettlements, SettlesAStreamOfKnownLengthBeforeItsLastOctetIsSent) {
  Reserved one({by_body()});
  one.head.fields.push_back({"Content-Type", "application/x-ndjson"});
  ASSERT_TRUE(one.begins(Framing::Length, 15));
  one.pass({"{\"n\":1}\n{\"n\":"});
  EXPECT_EQ(one.spent(), kReserved);
  one.pass({"7}"});
  EXPECT_EQ(one.spent(), 7U);
}

TEST(StreamSettlements, KeepTheReserveOfAStreamThatIsCutOffOrCompressedOrTellsNothing) {
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

// An answer that is a stream, passed as a relay passes it. The bucket has 100 units, of which ten are
// reserved.
struct Streamed : Reserved {
  explicit Streamed(const std::vector<Settlement>& of_rules, const limit::Penalty* penalty = nullptr)
      : Reserved(of_rules, policy::Store::Memory, false, penalty) {
    head.fields.push_back({"Content-Type", "text/event-stream"});
    EXPECT_TRUE(begins(Framing::Chunked));
  }
  // Returns how many octets pass.
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

TEST(StreamSettlements, ChargeAStreamBeyondItsReserveWhileItPasses) {
  Streamed one({by_stream(false)});
  EXPECT_EQ(one.relay(kEvent), kEvent.size());
  EXPECT_EQ(one.spent(), 20U);
  EXPECT_EQ(one.relay(many_events(2)), 2 * kEvent.size());
  EXPECT_EQ(one.spent(), 60U);
  one.pass({"data: {\"n\":13}\n\n"});
  one.settlements.complete({});
  EXPECT_EQ(one.spent(), 13U) << "the stream has told its cost";
  EXPECT_TRUE(one.settled(Settled::Surplus));
}

TEST(StreamSettlements, ChargeWhatTheStreamTellsIfThatIsMoreThanItsEstimate) {
  Streamed one({by_stream(false)});
  (void)one.relay(many_events(2));
  one.pass({"data: {\"n\":77}\n\n"});
  one.settlements.complete({});
  EXPECT_EQ(one.spent(), 77U);
  EXPECT_TRUE(one.settled(Settled::Debt));
}

TEST(StreamSettlements, HoldTheEventThatTheBudgetDoesNotAdmit) {
  Streamed one({by_stream(true)});
  EXPECT_EQ(one.relay(many_events(7)), 5 * kEvent.size()) << "100 units are five events";
  EXPECT_TRUE(one.settlements.meter()->cuts());
  EXPECT_EQ(one.relay(many_events(2)), 0U);
  one.settlements.end();
  EXPECT_EQ(one.spent(), 100U) << "the held event costs nothing";
  EXPECT_TRUE(one.settled(Settled::Cut));
}

// A client cannot know where its budget ends within a stream.
TEST(StreamSettlements, CutStreamIsNoViolationOfARuleWithAPenalty) {
  const limit::Penalty penalty{.first = hours(1), .most = hours(1), .forget = hours(1)};
  Streamed one({by_stream(true)}, &penalty);
  EXPECT_EQ(one.relay(many_events(7)), 5 * kEvent.size());
  const auto stats = one.table.stats();
  EXPECT_EQ(stats.penalty_keys + stats.violations_lost, 0U);
}

TEST(StreamSettlements, HoldOnlyTheRestOfAnEventThatArrivesInPieces) {
  Streamed one({by_stream(true)});
  EXPECT_EQ(one.relay(many_events(5) + "data: "), 5 * kEvent.size() + 6);
  EXPECT_EQ(one.relay("{}\n"), 3U);
  EXPECT_EQ(one.relay("\n"), 0U) << "without its empty line the client does not see the event";
  EXPECT_TRUE(one.settlements.meter()->cuts());
}

TEST(StreamSettlements, StreamWithoutCutPassesAndItsEstimateIsOwed) {
  Streamed one({by_stream(false)});
  EXPECT_EQ(one.relay(many_events(9)), 9 * kEvent.size());
  one.settlements.complete({});
  EXPECT_FALSE(one.table.charge(one.bill.charges(), one.charged_at + hours(80), one.bill.outcomes()))
      << "180 units were charged";
  EXPECT_TRUE(one.table.charge(one.bill.charges(), one.charged_at + hours(91), one.bill.outcomes()));
  EXPECT_TRUE(one.settled(Settled::Estimated));
}

TEST(StreamSettlements, ReserveStandsIfAStreamIsBrokenOffBeforeItsEstimateReachesIt) {
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

TEST(StreamSettlements, CountOnlyEventsThatAreJsonObjects) {
  Streamed one({by_stream(true)});
  const std::string_view text =
      ": comment\n\ndata: [DONE]\n\nevent: ping\n\ndata:  \n\ndata\n\ndata: text\n\n";
  EXPECT_EQ(one.relay(text), text.size());
  EXPECT_EQ(one.spent(), kReserved);
}

TEST(StreamSettlements, ShadowRuleNeitherChargesNorCutsAStreamWhileItPasses) {
  Reserved one({by_stream(true), by_body()});
  one.rules[0].mode = policy::Mode::Shadow;
  one.head.fields.push_back({"Content-Type", "text/event-stream"});
  ASSERT_TRUE(one.begins(Framing::Chunked));
  const auto text = many_events(9);
  EXPECT_EQ(one.settlements.meter()->admit(text), text.size());
  EXPECT_EQ(one.spent(), kReserved);
}

TEST(StreamSettlements, StreamThatFindsNoMemoryCostsItsReserve) {
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

TEST(StreamSettlements, MemoryOfAStreamCountsUntilTheStreamIsSettled) {
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

TEST(StreamSettlements, EstimateSettlesAStreamThatFindsNoMemory) {
  Streamed one({by_stream(true)});
  one.body_memory.set_most(100);
  EXPECT_EQ(one.relay(many_events(3)), many_events(3).size());
  one.settlements.complete({});
  EXPECT_EQ(one.spent(), 3 * by_stream(true).stream->per_event);
  EXPECT_TRUE(one.settled(Settled::Estimated));
}

}  // namespace
}  // namespace weir::proxy
