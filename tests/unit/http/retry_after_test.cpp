#include "weir/http/answer.hpp"

#include <gtest/gtest.h>

namespace weir::http {
namespace {

using namespace std::chrono_literals;

constexpr base::TimePoint kNow{784'111'777s};  // Sun, 06 Nov 1994 08:49:37 GMT

TEST(ParseRetryAfter, AcceptsSecondsAndDates) {
  EXPECT_EQ(parse_retry_after("0", kNow), 0s);
  EXPECT_EQ(parse_retry_after("120", kNow), 120s);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", kNow), 0s);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:50:07 GMT", kNow), 30s);
  EXPECT_EQ(parse_retry_after("Mon, 07 Nov 1994 08:49:37 GMT", kNow + 500ms), 24h - 500ms);
  EXPECT_EQ(parse_retry_after("Tue, 29 Feb 2000 00:00:00 GMT", base::TimePoint{951'782'400s}), 0s);
  EXPECT_EQ(parse_retry_after("Fri, 31 Dec 1993 23:59:59 GMT", kNow), 0s) << "the date has passed";
}

// RFC 9110 §5.6.7: a recipient must also accept the two obsolete forms of a date.
TEST(ParseRetryAfter, AcceptsAllThreeHttpDateForms) {
  for (const auto* text :
       {"Sun, 06 Nov 1994 08:50:07 GMT", "Sunday, 06-Nov-94 08:50:07 GMT", "Sun Nov  6 08:50:07 1994"})
    EXPECT_EQ(parse_retry_after(text, kNow), 30s) << text;
  for (const auto* text :
       {"Wed, 16 Nov 1994 08:49:37 GMT", "Wednesday, 16-Nov-94 08:49:37 GMT", "Wed Nov 16 08:49:37 1994"})
    EXPECT_EQ(parse_retry_after(text, kNow), 240h) << text;
  for (const auto* text :
       {"Fri, 31 Dec 1993 23:59:59 GMT", "Friday, 31-Dec-93 23:59:59 GMT", "Fri Dec 31 23:59:59 1993"})
    EXPECT_EQ(parse_retry_after(text, kNow), 0s) << text;
}

// RFC 9110 §5.6.7: if a two-digit year seems to be more than 50 years in the future, the date is in the past.
TEST(ParseRetryAfter, TwoDigitYearMoreThanFiftyYearsAheadIsInThePast) {
  const auto date = [](const char* text) { return parse_retry_after(text, kNow); };
  EXPECT_GT(date("Sunday, 06-Nov-44 08:49:37 GMT"), 49 * 365 * 24h);
  EXPECT_EQ(date("Sunday, 06-Nov-44 08:49:38 GMT"), 0s) << "50 years and a second ahead: 1944";
  EXPECT_EQ(date("Tuesday, 31-Dec-93 23:59:59 GMT"), 0s);
  constexpr base::TimePoint kEndOf2099{4'102'444'799s};  // Thu, 31 Dec 2099 23:59:59 GMT
  EXPECT_EQ(parse_retry_after("Friday, 01-Jan-00 00:00:09 GMT", kEndOf2099), 10s);
  constexpr base::TimePoint kStartOf2100{4'102'444'800s};
  EXPECT_EQ(parse_retry_after("Thursday, 31-Dec-99 23:59:59 GMT", kStartOf2100), 0s);
  EXPECT_EQ(parse_retry_after("Friday, 01-Jan-00 00:00:09 GMT", kStartOf2100), 9s);
}

TEST(ParseRetryAfter, VeryLongDelayIsShortenedToTheLongestPossibleDelay) {
  EXPECT_EQ(parse_retry_after("99999999999999999999", kNow), std::chrono::seconds{std::int64_t{1} << 31});
}

TEST(ParseRetryAfter, RejectsTextThatIsNeitherSecondsNorADate) {
  for (const auto* text : {"",
                           "-1",
                           "+1",
                           "1.5",
                           "1 ",
                           "soon",
                           "0x10",
                           "Sun, 06 Nov 1994 08:49:37",
                           "Sunday, 06-Nov-1994 08:49:37 GMT",
                           "Sunday, 06-Nov-94 08:49:37 UTC",
                           "Sunday, 6-Nov-94 08:49:37 GMT",
                           "Sun, 06-Nov-94 08:49:37 GMT",
                           "Sunday, 06-Nov-x4 08:49:37 GMT",
                           "Sunday, 31-Feb-94 08:49:37 GMT",
                           "Sun Nov  6 08:49:37 94",
                           "Sun Nov  6 08.49.37 1994",
                           "Sun Nov  6 08:49:37 1994 GMT",
                           "Sun Nov 31 08:49:37 1994",
                           "Sun Nov xx 08:49:37 1994",
                           "Sun, 06 ovD 1994 08:49:37 GMT",
                           "Sun, 31 Feb 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 24:00:00 GMT",
                           "Sun, -6 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 08:49:37 UTC"})
    EXPECT_EQ(parse_retry_after(text, kNow), std::nullopt) << text;
}

}  // namespace
}  // namespace weir::http
