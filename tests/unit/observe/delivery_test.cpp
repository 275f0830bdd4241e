#include "weir/observe/delivery.hpp"

#include <gtest/gtest.h>

namespace weir::observe {
namespace {

using End = Delivery::End;

constexpr base::TimePoint millisecond(std::int64_t millis) {
  return base::TimePoint{std::chrono::milliseconds(1'000'000'000 + millis)};
}
Delivery delivery(std::uint64_t per_minute = 1000, unsigned most = 3) {
  const limit::Rate rate{.count = per_minute, .period = std::chrono::minutes(1)};
  return Delivery({.attempts = *limit::GcraCore::make(rate, per_minute), .most = most});
}
constexpr std::uint64_t kLongest = ~std::uint64_t{0};

TEST(DeliveryTest, MessageIsSentAtOnceAndThenRemoved) {
  auto post = delivery();
  EXPECT_EQ(post.begin(millisecond(0)), nullptr);
  EXPECT_FALSE(post.put("one", millisecond(0)));
  ASSERT_NE(post.begin(millisecond(0)), nullptr);
  EXPECT_EQ(post.begin(millisecond(0)), nullptr);  // an attempt is running
  EXPECT_EQ(post.sent(), End::Sent);
  EXPECT_TRUE(post.empty());
  EXPECT_EQ(post.begin(millisecond(5)), nullptr);
}

TEST(DeliveryTest, PausesBetweenAttemptsDoubleUpToABound) {
  auto post = delivery(1000, 20);
  post.put("one", millisecond(0));
  auto now = millisecond(0);
  base::Duration bound = Delivery::kFirstPause;
  for (int attempt = 0; attempt < 15; ++attempt) {
    ASSERT_NE(post.begin(now), nullptr) << attempt;
    // The pause is the random number modulo (`bound` + 1), so the random number `bound` gives the longest
    // pause.
    ASSERT_EQ(post.failed(false, now, static_cast<std::uint64_t>(bound.count())), End::Again);
    EXPECT_EQ(post.begin(now + bound - base::Duration{1}), nullptr) << attempt;
    now += bound;
    bound = std::min(2 * bound, Delivery::kLongestPause);
  }
  EXPECT_EQ(bound, Delivery::kLongestPause);
}

TEST(DeliveryTest, RandomPauseBetweenAttemptsCanBeZero) {
  auto post = delivery();
  post.put("one", millisecond(0));
  ASSERT_NE(post.begin(millisecond(0)), nullptr);
  EXPECT_EQ(post.failed(false, millisecond(10), 0), End::Again);
  EXPECT_NE(post.begin(millisecond(10)), nullptr);
}

TEST(DeliveryTest, MessageIsOverdueButStillRetriedAfterTheConfiguredNumberOfAttempts) {
  auto post = delivery(1000, 3);
  post.put("one", millisecond(0));
  for (const bool overdue : {false, false, true, true, true}) {
    ASSERT_NE(post.begin(millisecond(0)), nullptr);
    EXPECT_EQ(post.failed(false, millisecond(0), 0), End::Again);
    EXPECT_EQ(post.is_overdue(), overdue);
  }
  EXPECT_TRUE(post.put("two", millisecond(0)));
  EXPECT_FALSE(post.is_overdue());
  ASSERT_NE(post.begin(millisecond(0)), nullptr);
  EXPECT_EQ(post.sent(), End::Sent);
  EXPECT_TRUE(post.empty());
}

TEST(DeliveryTest, MessageIsDroppedAfterTheConfiguredNumberOfAttemptsIfTheCallerGivesUp) {
  auto post = delivery(1000, 3);
  post.put("one", millisecond(0));
  post.give_up_what_is_overdue();
  for (const auto end : {End::Again, End::Again, End::GivenUp}) {
    ASSERT_NE(post.begin(millisecond(0)), nullptr);
    EXPECT_EQ(post.failed(false, millisecond(0), 0), end);
  }
  EXPECT_TRUE(post.empty());
}

TEST(DeliveryTest, MessageThatTheReceiverRejectsPermanentlyIsDropped) {
  auto post = delivery();
  post.put("two", millisecond(0));
  ASSERT_NE(post.begin(millisecond(0)), nullptr);
  EXPECT_EQ(post.failed(true, millisecond(0), 0), End::GivenUp);
  EXPECT_TRUE(post.empty());
}

TEST(DeliveryTest, NewerMessageReplacesAWaitingMessage) {
  auto post = delivery();
  post.put("began", millisecond(0));
  ASSERT_NE(post.begin(millisecond(0)), nullptr);
  post.failed(false, millisecond(0), kLongest);
  EXPECT_TRUE(post.put("ended", millisecond(1)));
  const auto* due =
      post.begin(millisecond(1));  // the pause after the older message does not apply to this message
  ASSERT_NE(due, nullptr);
  EXPECT_EQ(*due, "ended");
}

TEST(DeliveryTest, MessageQueuedDuringAnAttemptIsSentAfterTheAttempt) {
  for (const bool through : {true, false}) {
    auto post = delivery();
    post.put("began", millisecond(0));
    ASSERT_NE(post.begin(millisecond(0)), nullptr);
    EXPECT_TRUE(post.put("ended", millisecond(1)));
    EXPECT_EQ(post.begin(millisecond(1)), nullptr);
    if (through)
      post.sent();
    else
      EXPECT_EQ(post.failed(true, millisecond(2), 0), End::Again);
    const auto* due = post.begin(millisecond(2));
    ASSERT_NE(due, nullptr);
    EXPECT_EQ(*due, "ended");
  }
}

TEST(DeliveryTest, NumberOfAttemptsPerMinuteIsLimited) {
  auto post = delivery(6);
  unsigned made = 0;
  for (std::int64_t second = 0; second < 600; ++second) {
    post.put("flapping", millisecond(second * 1000));
    if (post.begin(millisecond(second * 1000)) == nullptr) continue;
    ++made;
    post.sent();
  }
  EXPECT_GE(made, 60U);
  EXPECT_LE(made, 66U);
}

}  // namespace
}  // namespace weir::observe
