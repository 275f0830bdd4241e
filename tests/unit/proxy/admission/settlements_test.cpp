// Tests the settlement of a charge by an answer: by the head, by the body, or by an answer that states no
// cost. The tests need no sockets, because they pass the answers in directly.
#include "proxy/admission/settlements.hpp"

#include "unit/proxy/lone_worker.hpp"

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using http::Framing;
using observe::Settled;
using policy::Settlement;
using std::chrono::hours;
using std::chrono::minutes;

// A bucket with a capacity of 100 units that refills one unit an hour. Each request reserves ten units.
constexpr limit::Cost kReserved = 10;
const limit::Limiter kHundred = limit::TokenBucket::make({1, hours(1)}, 100).value();

Settlement by_status() {
  return {.charged = {{200, 299}}};
}
Settlement by_header() {
  return {.charged = {{200, 299}}, .kind = Settlement::Kind::Header, .name = "X-Cost"};
}
Settlement by_body(std::uint64_t most = 64) {
  return {.kind = Settlement::Kind::Json, .name = "/n", .max_body = most};
}

// An exchange whose charge is settled when its answer arrives.
struct Reserved : LoneWorker {
  explicit Reserved(const std::vector<Settlement>& of_rules, policy::Store a_store = policy::Store::Memory)
      : LoneWorker({}, &nowhere()), in(a_store) {
    for (const auto& settlement : of_rules) {
      const auto index = static_cast<limit::RuleIndex>(rules.size());
      rules.push_back({.name = "r", .index = index, .cells = index, .limiter = kHundred});
      rules.back().settlement = settlement;
    }
    for (const auto& rule : rules) bill.add({&rule, {&kHundred, &kHundred}}, charge_of(rule));
    EXPECT_TRUE(table.charge(bill.charges(), charged_at, bill.outcomes()));
    settlements.begin(bill,
                      in == policy::Store::Memory ? Settlements::Store::Table : Settlements::Store::Redis,
                      charged_at);
  }
  bool answered(unsigned status = 200, base::Duration after = minutes(30)) {
    return settlements.answered(status, &head, charged_at + after);
  }
  bool says(std::string_view cost) {
    head.fields.push_back({"X-Cost", cost});
    return answered();
  }
  // Passes the head of an answer. Returns true if the settlement needs the body.
  bool begins(Framing framing, std::uint64_t length = 0) {
    head.framing = framing;
    head.content_length = length;
    EXPECT_FALSE(answered()) << "no charge is settled yet";
    return settlements.watch() != nullptr;
  }
  void pass(std::initializer_list<std::string_view> pieces) {
    ASSERT_NE(settlements.watch(), nullptr);
    for (const auto piece : pieces) settlements.see(piece);
  }
  // Returns true if the charge was settled exactly once, with the result `as`. If `as` is nullopt, returns
  // true if the charge was never settled.
  [[nodiscard]] bool settled(std::optional<Settled> as, std::size_t rule = 0) const {
    bool right = true;
    for (std::size_t i = 0; i < observe::kSettled; ++i) {
      const auto way = static_cast<Settled>(i);
      const auto times = counters.settlements(static_cast<limit::RuleIndex>(rule), way).value();
      right = right && times == (way == as ? 1U : 0U);
    }
    return right;
  }
  [[nodiscard]] limit::Cost spent(std::size_t rule = 0) const {
    return 100 - table.current_outcome(charge_of(rules[rule]), charged_at).remaining;
  }
  static limit::Charge charge_of(const policy::Rule& rule) {
    return {.key = {rule.index + 1U, 7}, .limiter = &kHundred, .cost = kReserved, .rule = rule.cells};
  }
  static const redis::RedisSettings& nowhere() {
    static const redis::RedisSettings settings;
    return settings;
  }

  const policy::Store in;
  std::vector<policy::Rule> rules;
  const base::TimePoint charged_at = clock.now();
  ExchangeBuffers space{worker};
  policy::Bill& bill = space.evaluation.local;
  Settlements settlements{worker, space};
  http::ResponseHead head;
};

TEST(Settlements, RefundsAllIfTheStatusIsNotCharged) {
  Reserved one({by_status()});
  EXPECT_TRUE(one.settlements.due());
  EXPECT_TRUE(one.answered(404));
  EXPECT_FALSE(one.settlements.due());
  one.settlements.end();
  EXPECT_EQ(one.spent(), 0U);
  EXPECT_TRUE(one.settled(Settled::Refunded));
}

TEST(Settlements, KeepsTheChargeIfTheStatusIsCharged) {
  Reserved one({by_status()});
  EXPECT_FALSE(one.answered(200));
  EXPECT_EQ(one.spent(), kReserved);
  EXPECT_TRUE(one.settled(Settled::Charged));
}

TEST(Settlements, SettlesTheCostInAResponseHeader) {
  const std::pair<const char*, std::pair<limit::Cost, Settled>> cases[] = {
      {"4", {4, Settled::Surplus}},  {"10", {10, Settled::Charged}},      {"25", {25, Settled::Debt}},
      {"0", {0, Settled::Refunded}}, {"many", {10, Settled::Unreadable}},
  };
  for (const auto& [text, expected] : cases) {
    SCOPED_TRACE(text);
    Reserved one({by_header()});
    EXPECT_EQ(one.says(text), expected.first != kReserved);
    EXPECT_EQ(one.spent(), expected.first);
    EXPECT_TRUE(one.settled(expected.second));
  }
}

TEST(Settlements, KeepsTheReservedChargeIfTheResponseStatesNoCost) {
  Reserved silent({by_header()});
  EXPECT_FALSE(silent.answered());
  EXPECT_TRUE(silent.settled(Settled::Untold));
  Reserved ours({by_header()});
  EXPECT_FALSE(ours.settlements.answered(200, nullptr, ours.charged_at));
  EXPECT_TRUE(ours.settled(Settled::Untold));
  Reserved bodiless({by_body()});
  EXPECT_FALSE(bodiless.answered());
  EXPECT_TRUE(bodiless.settled(Settled::Untold));
  EXPECT_EQ(bodiless.settlements.watch(), nullptr);
  Reserved broken({by_body()});
  broken.settlements.end();
  EXPECT_TRUE(broken.settled(Settled::Unanswered));
  for (const auto* one : {&silent, &ours, &bodiless, &broken}) EXPECT_EQ(one->spent(), kReserved);
}

TEST(Settlements, DoesNotSettleACanceledCharge) {
  Reserved one({by_header()});
  one.settlements.cancel();
  EXPECT_FALSE(one.settlements.due());
  one.settlements.end();
  EXPECT_TRUE(one.settled(std::nullopt));
  EXPECT_EQ(one.spent(), kReserved) << "a canceled charge is not changed";
}

// `reset_after` is measured from the time of the charge, however late the answer arrives. `remaining` is the
// number of units at the time of the answer.
TEST(Settlements, ReportsTheRemainingCountAtTheTimeOfTheResponse) {
  Reserved one({by_header()});
  one.head.fields.push_back({"X-Cost", "4"});
  ASSERT_TRUE(one.answered(200, hours(2)));
  const auto& told = one.bill.outcomes()[0];
  EXPECT_EQ(told.remaining, 98U) << "two of the four units were refunded";
  EXPECT_EQ(told.reset_after, hours(4));
  EXPECT_TRUE(told.allowed);
  const auto& noted = one.space.journal.amendments;
  ASSERT_EQ(noted.size(), 1U);
  EXPECT_EQ(noted[0].kind, observe::Amendment::Kind::Settle);
  EXPECT_EQ(noted[0].cost, 4U);
  EXPECT_EQ(noted[0].at, one.charged_at + hours(2));
  EXPECT_NE(noted[0].timestamp, 0U);
}

TEST(Settlements, RequestThatCostsMoreThanRemainsIsReportedAsAdmitted) {
  Reserved one({by_header()});
  ASSERT_TRUE(one.says("150"));
  const auto& told = one.bill.outcomes()[0];
  EXPECT_EQ(told.remaining, 0U);
  EXPECT_EQ(told.reset_after, hours(150));
  EXPECT_TRUE(told.allowed) << "the request had been admitted";
}

TEST(Settlements, SettlesTheCostInTheBodyWhenTheBodyIsComplete) {
  Reserved one({by_body()});
  EXPECT_TRUE(one.settlements.want_body());
  ASSERT_TRUE(one.begins(Framing::Chunked, 6)) << "Content-Length is ignored with chunked framing";
  EXPECT_FALSE(one.settlements.want_body()) << "the cost is already known";
  one.pass({R"({"n")", ":4", "2}"});
  EXPECT_EQ(one.spent(), kReserved) << "the body may continue";
  one.settlements.watch()->complete();
  EXPECT_EQ(one.spent(), 42U);
  EXPECT_EQ(one.bill.outcomes()[0].remaining, 58U);
  EXPECT_LE(one.space.journal.amendments.at(0).at, one.clock.now())
      << "the amendment has the time of the settlement";
  EXPECT_EQ(one.settlements.watch(), nullptr);
  one.settlements.end();
  EXPECT_TRUE(one.settled(Settled::Debt));
}

// The client may send its next request when it has received the last byte. By then the charge of this request
// must be settled.
TEST(Settlements, SettlesABodyOfKnownLengthAtItsLastByte) {
  Reserved one({by_body()});
  ASSERT_TRUE(one.begins(Framing::Length, 7));
  one.pass({R"({"n":)"});
  EXPECT_EQ(one.spent(), kReserved);
  one.pass({"4}"});
  EXPECT_EQ(one.spent(), 4U);
  one.settlements.complete();
  EXPECT_TRUE(one.settled(Settled::Surplus));
}

TEST(Settlements, KeepsTheChargeIfTheBodyIsTruncated) {
  for (const auto framing : {Framing::Length, Framing::Chunked, Framing::UntilClose}) {
    Reserved one({by_body()});
    ASSERT_TRUE(one.begins(framing, framing == Framing::Length ? 30 : 0));
    one.pass({R"({"n":4})"});
    one.settlements.end();
    EXPECT_EQ(one.spent(), kReserved);
    EXPECT_TRUE(one.settled(Settled::Unreadable));
  }
}

TEST(Settlements, DoesNotReadACompressedBody) {
  for (const auto* coding : {"gzip", "br", "GZIP"}) {
    Reserved one({by_body()});
    one.head.fields.push_back({"Content-Encoding", coding});
    EXPECT_FALSE(one.begins(Framing::Chunked)) << coding;
    EXPECT_TRUE(one.settled(Settled::Unreadable));
  }
  Reserved plain({by_body()});
  plain.head.fields.push_back({"content-encoding", "Identity"});
  EXPECT_TRUE(plain.begins(Framing::Chunked));
}

TEST(Settlements, ReadsABodyOfTheMaximumSize) {
  const std::string body = R"({"n":4})" + std::string(57, ' ');
  for (const auto framing : {Framing::Length, Framing::Chunked}) {
    Reserved one({by_body(64)});
    ASSERT_TRUE(one.begins(framing, framing == Framing::Length ? 64 : 0));
    one.pass({body});
    one.settlements.complete();
    EXPECT_EQ(one.spent(), 4U);
  }
}

TEST(Settlements, KeepsTheChargeIfTheBodyIsTooLong) {
  Reserved announced({by_body(64)});
  EXPECT_FALSE(announced.begins(Framing::Length, 65));
  EXPECT_TRUE(announced.settled(Settled::Unreadable));
  Reserved chunked({by_body(64)});
  ASSERT_TRUE(chunked.begins(Framing::Chunked));
  chunked.pass({std::string(60, ' '), "12345", R"({"n":4})"});
  EXPECT_TRUE(chunked.space.copy.empty()) << "the copy of the body is dropped";
  chunked.settlements.complete();
  EXPECT_TRUE(chunked.settled(Settled::Unreadable));
  for (const auto* one : {&announced, &chunked}) EXPECT_EQ(one->spent(), kReserved);
}

// Each rule reads the body up to its own maximum size. Each rule is settled once: by the head or by the body.
TEST(Settlements, EachRuleReadsTheBodyUpToItsOwnBound) {
  const std::string body = R"({"n":4})" + std::string(20, ' ');
  for (const auto framing : {Framing::Length, Framing::Chunked}) {
    Reserved both({by_body(64), by_body(20), by_header()});
    both.head.framing = framing;
    both.head.content_length = framing == Framing::Length ? body.size() : 0;
    EXPECT_TRUE(both.says("3")) << "the cost in the header";
    both.pass({body});
    both.settlements.complete();
    EXPECT_EQ(both.spent(0), 4U);
    EXPECT_TRUE(both.settled(Settled::Surplus, 0));
    EXPECT_EQ(both.spent(1), kReserved);
    EXPECT_TRUE(both.settled(Settled::Unreadable, 1));
    EXPECT_EQ(both.spent(2), 3U);
    EXPECT_TRUE(both.settled(Settled::Surplus, 2));
  }
}

TEST(Settlements, CostInTheBodyDoesNotChargeARuleThatTheStatusRefunded) {
  auto of_good_answers = by_body();
  of_good_answers.charged = {{200, 299}};
  Reserved both({of_good_answers, by_body()});
  both.head.framing = Framing::Chunked;
  EXPECT_TRUE(both.answered(404));
  both.pass({R"({"n":4})"});
  both.settlements.complete();
  EXPECT_EQ(both.spent(0), 0U);
  EXPECT_TRUE(both.settled(Settled::Refunded, 0));
  EXPECT_EQ(both.spent(1), 4U);
  EXPECT_TRUE(both.settled(Settled::Surplus, 1));
}

TEST(Settlements, DoesNotSettleARuleThatChargedNothing) {
  Reserved one({by_header()});
  one.bill.outcomes()[0].allowed = false;  // a shadow rule had refused the request
  EXPECT_FALSE(one.says("4"));
  EXPECT_EQ(one.spent(), kReserved);
  EXPECT_TRUE(one.settled(std::nullopt));
}

// The second limiter of an elastic rule is also settled, but does not count as a second settlement.
TEST(Settlements, CountsTheSettlementOfAnElasticRuleOnce) {
  Reserved one({by_header()});
  auto other = Reserved::charge_of(one.rules[0]);
  other.key.lo += 100;
  ASSERT_TRUE(one.bill.add({&one.rules[0], {&kHundred, &kHundred, 0, true, true, true}}, other));
  ASSERT_TRUE(one.table.charge({&other, 1}, one.charged_at, one.bill.outcomes().last(1)));
  EXPECT_TRUE(one.says("4"));
  EXPECT_EQ(one.spent(), 4U);
  EXPECT_EQ(one.table.current_outcome(other, one.charged_at).remaining, 96U);
  EXPECT_TRUE(one.settled(Settled::Surplus));
}

// weir sends the settlement to Redis without waiting for a reply. It computes the remaining units from the
// reply to the charge.
TEST(Settlements, ComputesTheRemainingCountOfARedisLimit) {
  const auto told = [](limit::Cost remaining, std::string_view cost) {
    Reserved one({by_header()}, policy::Store::Redis);
    one.bill.outcomes()[0] = {
        .allowed = true, .remaining = remaining, .reset_after = hours(10), .more_after = hours(1)};
    EXPECT_TRUE(one.says(cost));
    EXPECT_EQ(one.spent(), kReserved) << "a Redis charge is not settled in the table";
    EXPECT_EQ(one.space.journal.amendments.at(0).timestamp, 0U);
    return one.bill.outcomes()[0];
  };
  EXPECT_EQ(told(50, "4").remaining, 56U);
  EXPECT_EQ(told(50, "4").reset_after, hours(10));
  EXPECT_EQ(told(50, "25").remaining, 35U);
  EXPECT_EQ(told(5, "25").remaining, 0U);
  EXPECT_EQ(told(95, "0").remaining, 100U);
  EXPECT_EQ(told(95, "0").reset_after, hours(0));
  EXPECT_EQ(told(95, "0").more_after, hours(0));
}

}  // namespace
}  // namespace weir::proxy
