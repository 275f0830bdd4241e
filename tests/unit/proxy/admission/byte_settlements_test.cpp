// Tests the settlement of costs in bytes, with pieces of bodies that the tests pass in directly.
#include "proxy/admission/settlements.hpp"
#include "unit/proxy/lone_worker.hpp"

#include "weir/net/asio.hpp"
#include "weir/proxy/relay.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using http::Framing;
using observe::Settled;
using policy::Settlement;

constexpr limit::Cost kHeld = 10;
const limit::Limiter kThousand = limit::TokenBucket::make({1, std::chrono::hours(1)}, 1000).value();

struct NoReader final : net::ByteReader {
  net::Task<std::size_t> read_some(char*, std::size_t, net::ErrorCode& ec) override {
    ec = net::asio::error::eof;
    return net::Task<std::size_t>::ended(0);
  }
};

Settlement per_ten(policy::Bodies bodies) {
  return {.kind = Settlement::Kind::Bytes, .bodies = bodies, .per = 10};
}

// An exchange whose charge counts octets. The body of the request has 25 octets, and has arrived.
struct ByteCharge : LoneWorker {
  explicit ByteCharge(const Settlement& settlement) : LoneWorker({}) {
    char* at = inbox.space();
    inbox.received(std::string_view("0123456789012345678901234").copy(at, inbox.room()));
    rule.settlement = settlement;
    const limit::Charge charge{.key = {1, 7}, .limiter = &kThousand, .cost = kHeld, .rule = 0};
    bill.add({&rule, {&kThousand, &kThousand}}, charge);
    EXPECT_TRUE(table.charge(bill.charges(), charged_at, bill.outcomes()));
    settlements.begin(bill, Settlements::Store::Table, charged_at);
    settlements.watch_request(request);
  }
  // Passes a head, and returns true if the settlement observes the body.
  bool begins(Framing framing, std::uint64_t length = 0, unsigned status = 200) {
    head.framing = framing;
    head.content_length = length;
    (void)settlements.answered(status, &head, charged_at);
    return settlements.watch() != nullptr;
  }
  void take_request() {
    std::string_view piece;
    while (request.take(piece) == BodySource::Status::Piece) continue;
  }
  [[nodiscard]] limit::Cost spent() const {
    return 1000 - table.current_outcome(bill.charges()[0], charged_at).remaining;
  }
  [[nodiscard]] std::uint64_t times(Settled as) const { return counters.settlements(0, as).value(); }
  [[nodiscard]] std::uint64_t times() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < observe::kSettled; ++i) sum += times(static_cast<Settled>(i));
    return sum;
  }

  NoReader reader;
  Inbox inbox{worker.blocks};
  BodySource request{reader, inbox, Framing::Length, 25};
  policy::Rule rule{.name = "r", .limiter = kThousand};
  const base::TimePoint charged_at = clock.now();
  ExchangeBuffers buffers{worker};
  policy::Bill& bill = buffers.evaluation.local;
  Settlements settlements{worker, buffers};
  http::ResponseHead head;
};

TEST(ByteSettlements, OnlyTheConfiguredBodiesAreChargedAndUnitsAreRoundedUp) {
  const std::pair<policy::Bodies, limit::Cost> cases[] = {
      {policy::Bodies::Response, 11}, {policy::Bodies::Request, 3}, {policy::Bodies::Both, 13}};
  for (const auto& [bodies, cost] : cases) {
    ByteCharge one(per_ten(bodies));
    one.take_request();
    ASSERT_TRUE(one.begins(Framing::Chunked));
    one.settlements.see(std::string(100, 'x'));
    one.settlements.see("y");
    EXPECT_EQ(one.spent(), kHeld);
    one.settlements.complete({});
    EXPECT_EQ(one.spent(), cost);
    EXPECT_EQ(one.settlements.watch(), nullptr);
    EXPECT_EQ(one.times(cost < kHeld ? Settled::Surplus : Settled::Debt), 1U);
  }
}

// The charge must be settled early, because the client may send its next request as soon as it has the last
// octet.
TEST(ByteSettlements, BodyOfKnownLengthIsSettledBeforeItsLastOctetIsSent) {
  ByteCharge one(per_ten(policy::Bodies::Response));
  one.take_request();
  ASSERT_TRUE(one.begins(Framing::Length, 200));
  one.settlements.see(std::string(199, 'x'));
  EXPECT_EQ(one.spent(), kHeld);
  one.settlements.see("x");
  EXPECT_EQ(one.spent(), 20U);
}

TEST(ByteSettlements, ChargeForBothBodiesIsSettledOnlyAfterTheEndOfTheRequestBody) {
  ByteCharge one(per_ten(policy::Bodies::Both));
  ASSERT_TRUE(one.begins(Framing::Chunked));
  one.settlements.see(std::string(5, 'x'));
  one.settlements.complete({});
  EXPECT_EQ(one.spent(), kHeld) << "the client still sends its request";
  one.settlements.settle_bytes(25, 5);
  one.settlements.end();
  EXPECT_EQ(one.spent(), 3U);
  EXPECT_EQ(one.times(), 1U);
}

TEST(ByteSettlements, OnlyTheOctetsSentBeforeTheClientLeftAreCharged) {
  ByteCharge one(per_ten(policy::Bodies::Response));
  one.take_request();
  ASSERT_TRUE(one.begins(Framing::Length, 500));
  one.settlements.see(std::string(250, 'x'));
  one.settlements.settle_bytes(25, 250);
  EXPECT_EQ(one.spent(), 25U);
  EXPECT_EQ(one.settlements.watch(), nullptr) << "what the server still sends does not count";
  one.settlements.settle_bytes(25, 500);
  one.settlements.end();
  EXPECT_EQ(one.spent(), 25U);
  EXPECT_EQ(one.times(), 1U);
}

TEST(ByteSettlements, AnswerIsReadAfterTheClientLeftOnlyIfItsStatusDecidesTheCharge) {
  ByteCharge one(per_ten(policy::Bodies::Both));
  EXPECT_FALSE(one.settlements.needs_answer());
  one.settlements.settle_bytes(25, 0);
  one.settlements.end();
  EXPECT_EQ(one.spent(), 3U);
  EXPECT_EQ(one.times(Settled::Surplus), 1U);
  auto by_status = per_ten(policy::Bodies::Both);
  by_status.charged = {{200, 299}};
  const ByteCharge other(by_status);
  EXPECT_TRUE(other.settlements.needs_answer()) << "the status may refund the charge";
}

TEST(ByteSettlements, AnswerWithoutABodyCostsNothing) {
  ByteCharge one(per_ten(policy::Bodies::Response));
  one.take_request();
  ASSERT_TRUE(one.begins(Framing::None, 500)) << "an answer to HEAD names the length of another body";
  one.settlements.complete({});
  EXPECT_EQ(one.spent(), 0U);
  EXPECT_EQ(one.times(Settled::Refunded), 1U);
}

TEST(ByteSettlements, ChargeIsRefundedIfTheStatusIsNotCharged) {
  auto settlement = per_ten(policy::Bodies::Both);
  settlement.charged = {{200, 299}};
  ByteCharge one(settlement);
  one.take_request();
  one.begins(Framing::Length, 500, 404);
  EXPECT_EQ(one.spent(), 0U);
  one.settlements.settle_bytes(25, 500);
  one.settlements.end();
  EXPECT_EQ(one.spent(), 0U);
  EXPECT_EQ(one.times(), 1U);
}

TEST(ByteSettlements, BytesOfAnAnswerThatWeirCreatesAreCharged) {
  ByteCharge one(per_ten(policy::Bodies::Both));
  EXPECT_FALSE(one.settlements.answered(200, nullptr, one.charged_at));
  one.settlements.settle_bytes(0, 31);
  EXPECT_EQ(one.spent(), 4U);
}

TEST(ByteSettlements, RefundedChargeIsNotSettled) {
  ByteCharge one(per_ten(policy::Bodies::Both));
  one.settlements.cancel();
  one.settlements.settle_bytes(25, 500);
  one.settlements.end();
  EXPECT_EQ(one.spent(), kHeld);
  EXPECT_EQ(one.times(), 0U);
}

}  // namespace
}  // namespace weir::proxy
