// Tests how long commands may stay unanswered, and which bills (the charges of one request) wait to share a
// call.
#include "redis/connection/pipeline.hpp"

#include <array>
#include <deque>
#include <span>

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using namespace std::chrono_literals;
using Purpose = Pipeline::Purpose;

class PendingCommands : public ::testing::Test {
 protected:
  void send(Purpose purpose, std::chrono::milliseconds at) {
    pipeline_.push({.purpose = purpose}, start_ + at);
  }

  const Pipeline::Time start_ = Pipeline::Time() + 1h;
  Pipeline pipeline_{32, 300ms, 100ms};
};

TEST_F(PendingCommands, ConnectionWithoutPendingCommandsIsNeverUnresponsive) {
  EXPECT_EQ(pipeline_.next_deadline(), std::nullopt);
  EXPECT_FALSE(pipeline_.is_overdue(Pipeline::Time::max()));
}

TEST_F(PendingCommands, DeadlineIsMeasuredFromTheOldestUnansweredCommand) {
  send(Purpose::Refund, 0ms);
  send(Purpose::LoadRefund, 100ms);
  EXPECT_EQ(pipeline_.next_deadline(), start_ + 300ms);
  EXPECT_FALSE(pipeline_.is_overdue(start_ + 299ms));
  EXPECT_TRUE(pipeline_.is_overdue(start_ + 300ms));
  EXPECT_TRUE(pipeline_.pop(start_));
  EXPECT_EQ(pipeline_.next_deadline(), start_ + 400ms);
  EXPECT_FALSE(pipeline_.is_overdue(start_ + 300ms));
  EXPECT_TRUE(pipeline_.pop(start_));
  EXPECT_EQ(pipeline_.next_deadline(), std::nullopt);
}

TEST_F(PendingCommands, EachCallHasItsOwnDeadline) {
  Call sent, gathered;
  sent.deadline = start_ + 50ms;
  gathered.deadline = start_ + 70ms;
  send(Purpose::Refund, 0ms);
  pipeline_.gather(sent);
  pipeline_.push({.purpose = Purpose::Charge, .bills = pipeline_.take_group()}, start_ + 20ms);
  pipeline_.gather(gathered);
  EXPECT_EQ(pipeline_.next_deadline(), start_ + 50ms);
  EXPECT_EQ(pipeline_.take_expired(start_ + 60ms), std::vector<Call*>{&sent});
  EXPECT_EQ(pipeline_.next_deadline(), start_ + 70ms);
  EXPECT_EQ(pipeline_.take_expired(start_ + 80ms), std::vector<Call*>{&gathered});
  EXPECT_EQ(pipeline_.next_deadline(), start_ + 300ms);
}

// The reply to a call may arrive after the caller has given up. If no reply arrives at all, the connection is
// unresponsive.
TEST_F(PendingCommands, ConnectionIsUnresponsiveEvenIfTheCallerOfItsOldestCallHasGivenUp) {
  Call call;
  call.deadline = start_ + 50ms;
  pipeline_.gather(call);
  pipeline_.push({.purpose = Purpose::Charge, .bills = pipeline_.take_group()}, start_);
  EXPECT_EQ(pipeline_.take_expired(start_ + 50ms).size(), 1U);
  EXPECT_EQ(pipeline_.next_deadline(), start_ + 300ms);
  EXPECT_TRUE(pipeline_.is_overdue(start_ + 300ms));
}

TEST_F(PendingCommands, DeadlineOfACommandEndsWithItsConnection) {
  send(Purpose::Refund, 0ms);
  EXPECT_EQ(pipeline_.take_all().size(), 1U);
  EXPECT_EQ(pipeline_.next_deadline(), std::nullopt);
  EXPECT_FALSE(pipeline_.is_overdue(start_ + 1h));
}

// Tests which requests wait to share a call. The pipeline has many unanswered calls.
class CallCoalescing : public PendingCommands {
 protected:
  void SetUp() override {
    for (std::size_t i = 0; i < Pipeline::kBusyCalls; ++i) send(Purpose::Charge, 0ms);
  }
  // Adds a request with `lines` charges to the requests that wait for the next call.
  Call& gather(std::size_t lines = 1) {
    auto& call = calls_.emplace_back();
    call.charges = std::span(lines_).first(lines);
    pipeline_.gather(call);
    return call;
  }
  [[nodiscard]] bool awaited(std::chrono::milliseconds at = 1ms) const {
    return pipeline_.waits_for_more_bills(start_ + at);
  }

  std::array<limit::Charge, limit::kMaxCharges> lines_{};
  std::deque<Call> calls_;
};

TEST_F(CallCoalescing, RequestWaitsToShareACallIfEightCallsAreUnanswered) {
  gather();
  EXPECT_TRUE(awaited());
  EXPECT_TRUE(pipeline_.pop(start_ + 1ms));
  EXPECT_FALSE(awaited());
}

TEST_F(CallCoalescing, RequestDoesNotWaitToShareACallIfTheRoundTripToRedisIsLong) {
  gather();
  pipeline_.note_trip(24ms);
  EXPECT_TRUE(awaited());
  pipeline_.note_trip(25ms);  // 25 ms is a quarter of the timeout, which is 100 ms
  EXPECT_FALSE(awaited());
  pipeline_.note_trip(0ms);
  send(Purpose::Charge, 20ms);
  EXPECT_TRUE(pipeline_.pop(start_ + 25ms));
  EXPECT_FALSE(awaited(26ms));
}

TEST_F(CallCoalescing, RequestDoesNotWaitToShareACallIfTheOldestCallIsSlow) {
  gather();
  EXPECT_TRUE(awaited(24ms));
  EXPECT_FALSE(awaited(25ms));
}

TEST_F(CallCoalescing, FullCallDoesNotWaitForMoreRequests) {
  for (std::size_t i = 1; i < kMostBills; ++i) gather();
  EXPECT_TRUE(awaited());
  gather();
  EXPECT_FALSE(awaited());
}

TEST_F(CallCoalescing, CallWithTheMaximumOfChargesDoesNotWaitForMoreRequests) {
  gather(limit::kMaxCharges);
  EXPECT_TRUE(awaited());
  gather(kMostLines - limit::kMaxCharges);
  EXPECT_FALSE(awaited());
  EXPECT_EQ(pipeline_.take_group().size(), 2U);
  gather(1);
  EXPECT_TRUE(awaited());
}

TEST_F(CallCoalescing, RequestThatNeedsACallOfItsOwnIsSentAtOnce) {
  gather().alone = true;
  EXPECT_FALSE(awaited());
}

}  // namespace
}  // namespace weir::redis
