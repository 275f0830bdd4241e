#include "weir/upstream/outage_log.hpp"

#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

using namespace std::chrono_literals;

constexpr base::TimePoint kOutage{base::Duration{1'771'581'600'000'000}};

TEST(OutageLog, OutageThatLastsIsLoggedOnceAMinute) {
  OutageLog log;
  EXPECT_TRUE(log.begins(kOutage));
  int lines = 0;
  for (auto at = 1s; at <= 600s; at += 1s) lines += log.goes_on(kOutage + at, true) ? 1 : 0;
  EXPECT_EQ(lines, 10);
  EXPECT_TRUE(log.ends());
}

TEST(OutageLog, EndOfALoggedOutageIsLogged) {
  OutageLog log;
  EXPECT_FALSE(log.ends());
  EXPECT_TRUE(log.begins(kOutage));
  EXPECT_TRUE(log.ends());
  EXPECT_FALSE(log.ends());
}

TEST(OutageLog, OnlyTheFirstOutagesOfAMinuteAreLogged) {
  OutageLog log;
  unsigned begun = 0, ended = 0;
  for (int i = 0; i < 1000; ++i) {
    begun += log.begins(kOutage + i * 50ms) ? 1 : 0;
    ended += log.ends() ? 1 : 0;
  }
  EXPECT_EQ(begun, OutageLog::kMostOutages);
  EXPECT_EQ(ended, OutageLog::kMostOutages);
  EXPECT_EQ(log.left_out(), 1000 - OutageLog::kMostOutages);
  EXPECT_TRUE(log.begins(kOutage + 61s));
}

TEST(OutageLog, OutageThatWasNotLoggedAtFirstIsLoggedAfterAMinute) {
  OutageLog log;
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(log.begins(kOutage));
    EXPECT_TRUE(log.ends());
  }
  EXPECT_FALSE(log.begins(kOutage + 1s));
  EXPECT_FALSE(log.goes_on(kOutage + 30s, true));
  EXPECT_TRUE(log.goes_on(kOutage + 60s, true));
  EXPECT_EQ(log.left_out(), 2U);
  EXPECT_EQ(log.left_out(), 0U);
  EXPECT_TRUE(log.ends());
}

TEST(OutageLog, FailedProbeIsNotCountedAsAnEjection) {
  OutageLog log;
  EXPECT_TRUE(log.begins(kOutage));
  EXPECT_FALSE(log.goes_on(kOutage + 1s, false));
  EXPECT_EQ(log.left_out(), 0U);
  EXPECT_TRUE(log.goes_on(kOutage + 60s, false));
}

}  // namespace
}  // namespace weir::upstream
