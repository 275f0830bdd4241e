#include "weir/acme/renewal.hpp"

#include <gtest/gtest.h>

namespace weir::acme {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const SysTime kBegin{days(20'000)};
const Validity kNinetyDays{kBegin, kBegin + days(90)};

TEST(RenewalTime, IsAfterTwoThirdsOfTheLifetimeIfTheAuthorityNamesNoWindow) {
  EXPECT_EQ(renewal_time(kNinetyDays, std::nullopt, 0.5), kBegin + days(60));
  EXPECT_EQ(renewal_time({kBegin, kBegin + hours(144)}, std::nullopt, 0.5), kBegin + hours(96));
}

TEST(RenewalTime, IsAtTheGivenFractionOfTheAuthoritysWindow) {
  const RenewalWindow window{kBegin + days(58), kBegin + days(60)};
  EXPECT_EQ(renewal_time(kNinetyDays, window, 0), kBegin + days(58));
  EXPECT_EQ(renewal_time(kNinetyDays, window, 0.25), kBegin + days(58) + hours(12));
  EXPECT_EQ(renewal_time(kNinetyDays, window, 1), kBegin + days(60));
}

TEST(RenewalTime, IsInThePastIfTheAuthoritysWindowIsInThePast) {
  EXPECT_EQ(renewal_time(kNinetyDays, RenewalWindow{kBegin - days(2), kBegin - days(1)}, 0),
            kBegin - days(2));
}

TEST(RenewalTime, IsAtTheLatestAfterNineTenthsOfTheLifetimeEvenIfTheWindowIsLater) {
  EXPECT_EQ(renewal_time(kNinetyDays, RenewalWindow{kBegin + days(95), kBegin + days(96)}, 0),
            kBegin + days(81));
}

TEST(RetryPause, PauseBeforeARetryDoublesUpToSixHours) {
  const base::Duration first = minutes(2);
  EXPECT_EQ(retry_pause(first, 1), minutes(2));
  EXPECT_EQ(retry_pause(first, 2), minutes(4));
  EXPECT_EQ(retry_pause(first, 8), minutes(256));
  EXPECT_EQ(retry_pause(first, 9), hours(6));
  EXPECT_EQ(retry_pause(first, 4'000'000'000), hours(6));
}

TEST(RetryPause, PauseIsAtLeastOneSecondAndAtLeastAsLongAsTheConfiguredFirstPause) {
  EXPECT_EQ(retry_pause(base::Duration(1), 1), seconds(1));
  EXPECT_EQ(retry_pause(days(1), 1), days(1));
  EXPECT_EQ(retry_pause(days(1), 5), days(1));
}

TEST(PauseAfterSuccess, PauseIsASixthOfTheCertificatesLifetimeUpToADay) {
  EXPECT_EQ(pause_after_success(kNinetyDays), days(1));
  EXPECT_EQ(pause_after_success({kBegin, kBegin + seconds(60)}), seconds(10));
  EXPECT_EQ(pause_after_success({kBegin, kBegin - seconds(60)}), seconds(1));
}

TEST(IsPause, PauseEndsAtTheStoredTimeUnlessThatTimeIsTooFarInTheFuture) {
  EXPECT_TRUE(is_pause(kBegin + days(1), kBegin, minutes(2)));
  EXPECT_FALSE(is_pause(kBegin + days(1) + seconds(1), kBegin, minutes(2)));
  EXPECT_TRUE(is_pause(kBegin + days(3), kBegin, days(3)));
  EXPECT_TRUE(is_pause(kBegin + seconds(1), kBegin, minutes(2)));
  EXPECT_FALSE(is_pause(kBegin, kBegin, minutes(2)));
}

TEST(WindowPause, IsTheAuthoritysRetryTimeBetweenAMinuteAndADay) {
  EXPECT_EQ(window_pause(std::nullopt), hours(6));
  EXPECT_EQ(window_pause(seconds(0)), minutes(1));
  EXPECT_EQ(window_pause(hours(7)), hours(7));
  EXPECT_EQ(window_pause(days(9)), days(1));
}

}  // namespace
}  // namespace weir::acme
