#include "weir/http/http2_flood.hpp"

#include <gtest/gtest.h>

namespace weir::http {
namespace {

constexpr base::TimePoint kStart{base::Duration{1'000'000'000}};
constexpr Http2CheapFrame kCheap[] = {Http2CheapFrame::Settings,  Http2CheapFrame::Ping,
                                      Http2CheapFrame::Priority,  Http2CheapFrame::WindowUpdate,
                                      Http2CheapFrame::EmptyData, Http2CheapFrame::Refused,
                                      Http2CheapFrame::Other};

// Returns how many frames the guard permits before it reports a flood, at most `most`.
std::uint64_t permitted(Http2FloodGuard& guard, Http2CheapFrame frame, base::TimePoint now,
                        std::uint64_t most = 100'000) {
  std::uint64_t count = 0;
  while (count < most && !guard.is_flood(frame, now)) ++count;
  return count;
}

TEST(Http2FloodGuardTest, NumberOfCheapFramesOfEachKindIsBounded) {
  for (const auto frame : kCheap) {
    Http2FloodGuard guard({});
    EXPECT_EQ(permitted(guard, frame, kStart), Http2FloodGuard::kFree);
  }
}

TEST(Http2FloodGuardTest, NumberOfCheapFramesOfAllKindsTogetherIsBounded) {
  Http2FloodGuard guard({});
  EXPECT_EQ(permitted(guard, Http2CheapFrame::Ping, kStart, 300), 300U);
  EXPECT_EQ(permitted(guard, Http2CheapFrame::Settings, kStart), Http2FloodGuard::kFree - 300);
}

TEST(Http2FloodGuardTest, ClientThatSendsRequestsOrDataMaySendMoreCheapFrames) {
  Http2FloodGuard guard({});
  ASSERT_FALSE(guard.is_flood(Http2CheapFrame::WindowUpdate, kStart));
  for (int i = 0; i < 100; ++i) guard.note_work();
  EXPECT_EQ(permitted(guard, Http2CheapFrame::WindowUpdate, kStart),
            Http2FloodGuard::kFree + 100 * Http2FloodGuard::kPerWork - 1);
}

TEST(Http2FloodGuardTest, EachDataFrameThatWeirSendsPermitsTheClientMoreCheapFrames) {
  Http2FloodGuard guard({});
  ASSERT_FALSE(guard.is_flood(Http2CheapFrame::Ping, kStart));
  for (int i = 0; i < 100; ++i) guard.note_sent(1, i % 2 == 0);
  EXPECT_EQ(permitted(guard, Http2CheapFrame::Ping, kStart),
            Http2FloodGuard::kFree + 100 * Http2FloodGuard::kPerWork - 1);
}

TEST(Http2FloodGuardTest, SmallDataFrameThatDoesNotFillTheWindowPermitsSeveralWindowUpdates) {
  Http2FloodGuard messages({});
  ASSERT_FALSE(messages.is_flood(Http2CheapFrame::WindowUpdate, kStart));
  for (int i = 0; i < 1000; ++i) messages.note_sent(7, false);
  EXPECT_EQ(permitted(messages, Http2CheapFrame::WindowUpdate, kStart),
            Http2FloodGuard::kFree + 1000 * Http2FloodGuard::kPerWork - 1);
}

TEST(Http2FloodGuardTest, DataFrameThatFillsTheWindowPermitsOneWindowUpdateForEach32Octets) {
  Http2FloodGuard dribble({});
  ASSERT_FALSE(dribble.is_flood(Http2CheapFrame::WindowUpdate, kStart));
  for (int i = 0; i < 1000; ++i) dribble.note_sent(1, true);
  EXPECT_EQ(permitted(dribble, Http2CheapFrame::WindowUpdate, kStart),
            Http2FloodGuard::kFree - 1 + 1000 / 32);
  Http2FloodGuard download({});
  ASSERT_FALSE(download.is_flood(Http2CheapFrame::WindowUpdate, kStart));
  for (int i = 0; i < 1000; ++i) download.note_sent(16 << 10, true);
  EXPECT_EQ(permitted(download, Http2CheapFrame::WindowUpdate, kStart),
            Http2FloodGuard::kFree + 1000 * Http2FloodGuard::kPerWork - 1)
      << "the bound of all cheap frames is lower here";
}

TEST(Http2FloodGuardTest, CountOfCheapFramesStartsAtZeroInEachTimeWindow) {
  Http2FloodGuard guard({});
  EXPECT_EQ(permitted(guard, Http2CheapFrame::Ping, kStart), Http2FloodGuard::kFree);
  const auto late = kStart + Http2FloodGuard::kWindow;
  EXPECT_TRUE(guard.is_flood(Http2CheapFrame::Ping, late - base::Duration{1}));
  for (int i = 0; i < 10; ++i) guard.note_work();
  EXPECT_EQ(permitted(guard, Http2CheapFrame::Ping, late), Http2FloodGuard::kFree)
      << "work in the previous time window no longer counts";
}

TEST(Http2FloodGuardTest, ResetsAndFaultsAreBoundedInTheConfiguredTimeWindow) {
  const Http2ResetBound bound{.count = 3, .window = base::Duration{60'000'000}};
  for (const auto frame : {Http2CheapFrame::Reset, Http2CheapFrame::Fault}) {
    Http2FloodGuard guard(bound);
    EXPECT_EQ(permitted(guard, frame, kStart), 3U);
    EXPECT_TRUE(guard.is_flood(frame, kStart + bound.window - base::Duration{1}));
    EXPECT_EQ(permitted(guard, frame, kStart + bound.window), 3U);
  }
}

TEST(Http2FloodGuardTest, ResetsAndFaultsShareOneBoundAndDoNotCountAsCheapFrames) {
  Http2FloodGuard guard({.count = 4});
  EXPECT_EQ(permitted(guard, Http2CheapFrame::Reset, kStart, 2), 2U);
  EXPECT_EQ(permitted(guard, Http2CheapFrame::Ping, kStart), Http2FloodGuard::kFree);
  EXPECT_EQ(permitted(guard, Http2CheapFrame::Fault, kStart), 2U);
}

TEST(Http2FloodGuardTest, ClientThatSendsRequestsOrDataMayNotSendMoreResets) {
  Http2FloodGuard guard({.count = 1});
  for (int i = 0; i < 1000; ++i) guard.note_work();
  EXPECT_EQ(permitted(guard, Http2CheapFrame::Reset, kStart), 1U);
}

}  // namespace
}  // namespace weir::http
