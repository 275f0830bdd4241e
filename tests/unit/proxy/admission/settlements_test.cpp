// Tests the settlement of a charge by an answer: by the head, by the body, or by an answer that states no
// cost. The tests need no sockets, because they pass the answers in directly.
#include "unit/proxy/admission/reserved_charge.hpp"

#include "weir/http/grpc_status.hpp"

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

TEST(Settlements, ChargeIsRefundedIfTheStatusIsNotCharged) {
  Reserved one({by_status()});
  EXPECT_TRUE(one.settlements.due());
  EXPECT_TRUE(one.answered(404));
  EXPECT_FALSE(one.settlements.due());
  one.settlements.end();
  EXPECT_EQ(one.spent(), 0U);
  EXPECT_TRUE(one.settled(Settled::Refunded));
}

TEST(Settlements, ChargeStaysIfTheStatusIsCharged) {
  Reserved one({by_status()});
  EXPECT_FALSE(one.answered(200));
  EXPECT_EQ(one.spent(), kReserved);
  EXPECT_TRUE(one.settled(Settled::Charged));
}

TEST(Settlements, ChargeIsCorrectedByTheCostInAResponseHeader) {
  const std::pair<const char*, std::pair<limit::Cost, Settled>> cases[] = {
      {"4", {4, Settled::Surplus}},  {"10", {10, Settled::Charged}},      {"25", {25, Settled::Debt}},
      {"0", {0, Settled::Refunded}}, {"many", {10, Settled::Unreadable}},
  };
  for (const auto& [text, expected] : cases) {
    SCOPED_TRACE(text);
    Reserved one({by_header()});
    EXPECT_EQ(one.outcome(text), expected.first != kReserved);
    EXPECT_EQ(one.spent(), expected.first);
    EXPECT_TRUE(one.settled(expected.second));
  }
}

TEST(Settlements, ReservedCostStaysChargedIfTheResponseStatesNoCost) {
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

TEST(Settlements, CanceledChargeIsNotSettled) {
  Reserved one({by_header()});
  one.settlements.cancel();
  EXPECT_FALSE(one.settlements.due());
  one.settlements.end();
  EXPECT_TRUE(one.settled(std::nullopt));
  EXPECT_EQ(one.spent(), kReserved) << "a canceled charge is not changed";
}

// `reset_after` is measured from the time of the charge, however late the answer arrives. `remaining` is the
// number of units that are left when the answer arrives.
TEST(Settlements, ReportedRemainingCountIsTheCountAtTheTimeOfTheResponse) {
  Reserved one({by_header()});
  one.head.fields.push_back({"X-Cost", "4"});
  ASSERT_TRUE(one.answered(200, hours(2)));
  const auto& told = one.bill.outcomes()[0];
  EXPECT_EQ(told.remaining, 98U) << "two of the four units were refunded";
  EXPECT_EQ(told.reset_after, hours(4));
  EXPECT_TRUE(told.allowed);
  const auto& noted = one.buffers.journal.amendments;
  ASSERT_EQ(noted.size(), 1U);
  EXPECT_EQ(noted[0].kind, observe::Amendment::Kind::Settle);
  EXPECT_EQ(noted[0].cost, 4U);
  EXPECT_EQ(noted[0].at, one.charged_at + hours(2));
  EXPECT_NE(noted[0].timestamp, 0U);
}

TEST(Settlements, AdmittedRequestIsReportedAsAdmittedEvenIfItCostsMoreThanRemains) {
  Reserved one({by_header()});
  ASSERT_TRUE(one.outcome("150"));
  const auto& told = one.bill.outcomes()[0];
  EXPECT_EQ(told.remaining, 0U);
  EXPECT_EQ(told.reset_after, hours(150));
  EXPECT_TRUE(told.allowed) << "the request had been admitted";
}

TEST(Settlements, CostInTheBodyIsSettledWhenTheBodyIsComplete) {
  Reserved one({by_body()});
  EXPECT_TRUE(one.settlements.want_body());
  ASSERT_TRUE(one.begins(Framing::Chunked, 6)) << "Content-Length is ignored with chunked framing";
  EXPECT_FALSE(one.settlements.want_body()) << "the cost is already known";
  one.pass({R"({"n")", ":4", "2}"});
  EXPECT_EQ(one.spent(), kReserved) << "the body may continue";
  one.settlements.watch()->complete({});
  EXPECT_EQ(one.spent(), 42U);
  EXPECT_EQ(one.bill.outcomes()[0].remaining, 58U);
  EXPECT_LE(one.buffers.journal.amendments.at(0).at, one.clock.now())
      << "the amendment has the time of the settlement";
  EXPECT_EQ(one.settlements.watch(), nullptr);
  one.settlements.end();
  EXPECT_TRUE(one.settled(Settled::Debt));
}

// Returns a settlement that keeps the charges of gRPC calls with these statuses, and refunds all other
// requests.
Settlement by_call(std::initializer_list<unsigned> statuses) {
  Settlement settlement;
  for (const auto status : statuses) settlement.charged_calls |= std::uint32_t{1} << status;
  return settlement;
}

// An exchange of a gRPC call.
struct ReservedCall : Reserved {
  explicit ReservedCall(const std::vector<Settlement>& of_rules)
      : Reserved(of_rules, policy::Store::Memory, true) {
    head.status = 200;
    head.framing = Framing::Chunked;
    head.trailers_may_follow = true;
  }
  // Passes an answer of one gRPC message and these trailers to the settlements, and ends the exchange.
  void ends_with(std::string_view trailers) {
    EXPECT_FALSE(answered());
    pass({std::string_view("\0\0\0\0\1x", 6)});
    EXPECT_EQ(spent(), kReserved) << "the status is not known yet";
    EXPECT_TRUE(settlements.needs_answer());
    settlements.complete(trailers);
    EXPECT_EQ(settlements.watch(), nullptr);
    settlements.end();
  }
};

TEST(Settlements, StatusInTheTrailersDecidesWhetherAGrpcCallIsCharged) {
  const std::pair<const char*, bool> cases[] = {
      {"grpc-status: 16\r\n", true}, {"grpc-status: 0\r\n", false}, {"x: y\r\n", true}, {"", true}};
  for (const auto& [trailers, charged] : cases) {
    SCOPED_TRACE(trailers);
    ReservedCall one({by_call({16, http::kGrpcUnknown})});
    one.ends_with(trailers);
    EXPECT_EQ(one.spent(), charged ? kReserved : 0U);
    EXPECT_TRUE(one.settled(charged ? Settled::Charged : Settled::Refunded));
  }
}

TEST(Settlements, StatusInATrailersOnlyResponseDecidesWhetherAGrpcCallIsCharged) {
  for (const char* status : {"16", "0"}) {
    ReservedCall one({by_call({16})});
    one.head.framing = Framing::None;
    one.head.fields.push_back({"grpc-status", status});
    EXPECT_EQ(one.answered(), *status == '0');
    EXPECT_EQ(one.settlements.watch(), nullptr);
    EXPECT_EQ(one.spent(), *status == '0' ? 0U : kReserved);
  }
}

TEST(Settlements, GrpcStatusForAnHttpErrorDecidesWhetherAGrpcCallIsCharged) {
  ReservedCall unavailable({by_call({http::kGrpcUnavailable})});
  unavailable.head.status = 503;
  EXPECT_FALSE(unavailable.answered(503));
  EXPECT_TRUE(unavailable.settled(Settled::Charged));
  ReservedCall denied({by_call({http::kGrpcUnavailable})});
  denied.head.status = 403;
  EXPECT_TRUE(denied.answered(403));
  EXPECT_TRUE(denied.settled(Settled::Refunded));
}

TEST(Settlements, GrpcStatusOfWeirsOwnRefusalDecidesWhetherTheCallIsCharged) {
  ReservedCall one({by_call({http::kGrpcResourceExhausted})});
  EXPECT_FALSE(one.settlements.answered(429, nullptr, one.charged_at));
  EXPECT_TRUE(one.settled(Settled::Charged));
}

TEST(Settlements, GrpcCallThatTheServerBreaksOffCountsAsUnavailable) {
  for (const unsigned charged : {http::kGrpcUnavailable, 0U}) {
    ReservedCall one({by_call({charged})});
    EXPECT_FALSE(one.answered());
    one.settlements.end_call(http::kGrpcUnavailable);
    one.settlements.end();
    EXPECT_EQ(one.spent(), charged != 0 ? kReserved : 0U);
    EXPECT_TRUE(one.settled(charged != 0 ? Settled::Charged : Settled::Refunded));
  }
}

TEST(Settlements, GrpcCallStaysChargedIfTheClientDisconnects) {
  ReservedCall one({by_call({16})});
  EXPECT_FALSE(one.answered());
  one.settlements.end();
  EXPECT_EQ(one.spent(), kReserved);
  EXPECT_TRUE(one.settled(Settled::Unanswered));
}

TEST(Settlements, GrpcStatusSettlesGrpcCallsAndHttpStatusSettlesOtherRequests) {
  auto both = by_call({16});
  both.charged = {{401, 401}};
  for (const unsigned status : {401U, 200U}) {
    Reserved request({both, by_call({16, 2})});
    EXPECT_TRUE(request.answered(status));
    EXPECT_EQ(request.spent(0), status == 401 ? kReserved : 0U);
    EXPECT_EQ(request.spent(1), 0U) << "a request that is no call costs nothing";
  }
  ReservedCall call({both, by_status()});
  call.ends_with("grpc-status: 16\r\n");
  EXPECT_EQ(call.spent(0), kReserved);
  EXPECT_EQ(call.spent(1), kReserved) << "the HTTP status decides without grpc_status";
}

TEST(Settlements, GrpcStatusAndCostInTheBodyEachSettleTheirOwnRule) {
  ReservedCall both({by_call({16}), by_body()});
  EXPECT_FALSE(both.answered());
  both.pass({R"({"n":4})"});
  both.settlements.complete("grpc-status: 0\r\n");
  EXPECT_EQ(both.spent(0), 0U);
  EXPECT_EQ(both.spent(1), 4U);
  EXPECT_TRUE(both.settled(Settled::Refunded, 0));
  EXPECT_TRUE(both.settled(Settled::Surplus, 1));
}

// The charge must be settled before the client has the last octet, because the client may then send its next
// request.
TEST(Settlements, CostInABodyOfKnownLengthIsSettledAtItsLastByte) {
  Reserved one({by_body()});
  ASSERT_TRUE(one.begins(Framing::Length, 7));
  one.pass({R"({"n":)"});
  EXPECT_EQ(one.spent(), kReserved);
  one.pass({"4}"});
  EXPECT_EQ(one.spent(), 4U);
  one.settlements.complete({});
  EXPECT_TRUE(one.settled(Settled::Surplus));
}

TEST(Settlements, ReservedCostStaysChargedIfTheBodyIsTruncated) {
  for (const auto framing : {Framing::Length, Framing::Chunked, Framing::UntilClose}) {
    Reserved one({by_body()});
    ASSERT_TRUE(one.begins(framing, framing == Framing::Length ? 30 : 0));
    one.pass({R"({"n":4})"});
    one.settlements.end();
    EXPECT_EQ(one.spent(), kReserved);
    EXPECT_TRUE(one.settled(Settled::Unreadable));
  }
}

TEST(Settlements, ReservedCostStaysChargedIfTheBodyIsCompressed) {
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

TEST(Settlements, CostIsReadFromABodyOfTheMaximumSize) {
  const std::string body = R"({"n":4})" + std::string(57, ' ');
  for (const auto framing : {Framing::Length, Framing::Chunked}) {
    Reserved one({by_body(64)});
    ASSERT_TRUE(one.begins(framing, framing == Framing::Length ? 64 : 0));
    one.pass({body});
    one.settlements.complete({});
    EXPECT_EQ(one.spent(), 4U);
  }
}

TEST(Settlements, ReservedCostStaysChargedIfTheBodyIsTooLong) {
  Reserved announced({by_body(64)});
  EXPECT_FALSE(announced.begins(Framing::Length, 65));
  EXPECT_TRUE(announced.settled(Settled::Unreadable));
  Reserved chunked({by_body(64)});
  ASSERT_TRUE(chunked.begins(Framing::Chunked));
  chunked.pass({std::string(60, ' '), "12345", R"({"n":4})"});
  EXPECT_TRUE(chunked.buffers.copy.empty()) << "the copy of the body is dropped";
  chunked.settlements.complete({});
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
    EXPECT_TRUE(both.outcome("3")) << "the cost in the header";
    both.pass({body});
    both.settlements.complete({});
    EXPECT_EQ(both.spent(0), 4U);
    EXPECT_TRUE(both.settled(Settled::Surplus, 0));
    EXPECT_EQ(both.spent(1), kReserved);
    EXPECT_TRUE(both.settled(Settled::Unreadable, 1));
    EXPECT_EQ(both.spent(2), 3U);
    EXPECT_TRUE(both.settled(Settled::Surplus, 2));
  }
}

TEST(Settlements, RuleThatTheStatusRefundedIsNotChargedByTheCostInTheBody) {
  auto of_good_answers = by_body();
  of_good_answers.charged = {{200, 299}};
  Reserved both({of_good_answers, by_body()});
  both.head.framing = Framing::Chunked;
  EXPECT_TRUE(both.answered(404));
  both.pass({R"({"n":4})"});
  both.settlements.complete({});
  EXPECT_EQ(both.spent(0), 0U);
  EXPECT_TRUE(both.settled(Settled::Refunded, 0));
  EXPECT_EQ(both.spent(1), 4U);
  EXPECT_TRUE(both.settled(Settled::Surplus, 1));
}

TEST(Settlements, RuleThatChargedNothingIsNotSettled) {
  Reserved one({by_header()});
  one.bill.outcomes()[0].allowed = false;  // a shadow rule had refused the request
  EXPECT_FALSE(one.outcome("4"));
  EXPECT_EQ(one.spent(), kReserved);
  EXPECT_TRUE(one.settled(std::nullopt));
}

// The second limiter of an elastic rule is also settled, but does not count as a second settlement.
TEST(Settlements, SettlementOfARuleWithAnElasticLimitIsCountedOnce) {
  Reserved one({by_header()});
  auto other = Reserved::charge_of(one.rules[0]);
  other.key.lo += 100;
  ASSERT_TRUE(one.bill.add({&one.rules[0], {&kHundred, &kHundred, 0, true, true, true}}, other));
  ASSERT_TRUE(one.table.charge({&other, 1}, one.charged_at, one.bill.outcomes().last(1)));
  EXPECT_TRUE(one.outcome("4"));
  EXPECT_EQ(one.spent(), 4U);
  EXPECT_EQ(one.table.current_outcome(other, one.charged_at).remaining, 96U);
  EXPECT_TRUE(one.settled(Settled::Surplus));
}

// weir sends the settlement to Redis without waiting for a reply. It computes the remaining units from the
// reply to the charge.
TEST(Settlements, RemainingCountOfALimitInRedisIsComputedWithoutAReply) {
  const auto told = [](limit::Cost remaining, std::string_view cost) {
    Reserved one({by_header()}, policy::Store::Redis);
    one.bill.outcomes()[0] = {
        .allowed = true, .remaining = remaining, .reset_after = hours(10), .more_after = hours(1)};
    EXPECT_TRUE(one.outcome(cost));
    EXPECT_EQ(one.spent(), kReserved) << "a Redis charge is not settled in the table";
    EXPECT_EQ(one.buffers.journal.amendments.at(0).timestamp, 0U);
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
