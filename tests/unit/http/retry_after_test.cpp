#include "weir/http/answer.hpp"

#include <gtest/gtest.h>

namespace weir::http {
namespace {

using namespace std::chrono_literals;

constexpr base::TimePoint kNow{784'111'777s};  // Sun, 06 Nov 1994 08:49:37 GMT

TEST(ParseRetryAfter, TakesSecondsAndDates) {
  EXPECT_EQ(parse_retry_after("0", kNow), 0s);
  EXPECT_EQ(parse_retry_after("120", kNow), 120s);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", kNow), 0s);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:50:07 GMT", kNow), 30s);
  EXPECT_EQ(parse_retry_after("Mon, 07 Nov 1994 08:49:37 GMT", kNow + 500ms), 24h - 500ms);
  EXPECT_EQ(parse_retry_after("Tue, 29 Feb 2000 00:00:00 GMT", base::TimePoint{951'782'400s}), 0s);
  EXPECT_EQ(parse_retry_after("Fri, 31 Dec 1993 23:59:59 GMT", kNow), 0s) << "it is over";
}

TEST(ParseRetryAfter, OfMoreThanAnyoneWaitsIsBounded) {
  EXPECT_EQ(parse_retry_after("99999999999999999999", kNow), std::chrono::seconds{std::int64_t{1} << 31});
}

TEST(ParseRetryAfter, TakesNothingElse) {
  for (const auto* text :
       {"", "-1", "+1", "1.5", "1 ", "soon", "0x10", "Sun, 06 Nov 1994 08:49:37",
        "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun, 06 ovD 1994 08:49:37 GMT",
        "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, -6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 UTC"})
    EXPECT_EQ(parse_retry_after(text, kNow), std::nullopt) << text;
}

}  // namespace
}  // namespace weir::http
