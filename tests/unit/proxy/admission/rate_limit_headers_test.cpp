#include "proxy/admission/rate_limit_headers.hpp"

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using Lines = std::vector<std::pair<const char*, const char*>>;

constexpr const char* kOurs =
    "X-RateLimit-Limit: 10\r\nX-RateLimit-Remaining: 4\r\nX-RateLimit-Reset: 99\r\n"
    "RateLimit-Policy: \"a\";q=10;w=1\r\n";
constexpr const char* kOursWithoutX = "RateLimit-Policy: \"a\";q=10;w=1\r\n";

struct Told {
  std::string ours;
  std::string theirs;  // names and values of the upstream's fields
};

Told told(const Lines& lines, std::string ours = kOurs) {
  http::Fields theirs;
  for (const auto& [name, value] : lines) theirs.push_back({.name = name, .value = value});
  keep_stricter(theirs, ours);
  Told told{std::move(ours), {}};
  for (const auto& field : theirs) told.theirs.append(field.name).append("=").append(field.value).append(" ");
  return told;
}

TEST(RateLimitHeaders, FieldsOfTheUpstreamAreSentUnlessWeirHasTheLowerRemainingCount) {
  const auto theirs = told({{"A", "1"}, {"x-ratelimit-limit", "50"}, {"X-RateLimit-Remaining", "3"}});
  EXPECT_EQ(theirs.ours, kOursWithoutX);
  EXPECT_EQ(theirs.theirs, "A=1 x-ratelimit-limit=50 X-RateLimit-Remaining=3 ");
  const auto ours = told({{"x-ratelimit-limit", "50"},
                          {"X-RateLimit-Remaining", "5"},
                          {"X-RATELIMIT-RESET", "7"},
                          {"X-RateLimit-Used", "45"}});
  EXPECT_EQ(ours.ours, kOurs);
  EXPECT_EQ(ours.theirs, "X-RateLimit-Used=45 ");
  EXPECT_EQ(told({{"X-RateLimit-Remaining", "4"}}).ours, kOursWithoutX)
      << "with equal counts, the fields of the upstream are sent";
}

TEST(RateLimitHeaders, DropsUpstreamFieldsWithoutAValidRemainingCount) {
  for (const auto* value : {"", "many", "-1", "3.5", "1, 2"})
    EXPECT_EQ(told({{"X-RateLimit-Remaining", value}}).theirs, "") << value;
  EXPECT_EQ(told({{"X-RateLimit-Limit", "1"}}).theirs, "");
  EXPECT_EQ(told({{"X-RateLimit-Remaining", "9"}, {"X-RateLimit-Remaining", "2"}}).ours, kOursWithoutX);
}

TEST(RateLimitHeaders, ForwardsUpstreamFieldsThatWeirDoesNotSend) {
  const Lines lists{{"RateLimit", "\"b\";r=1"}, {"RateLimit-Policy", "\"b\";q=5"}, {"X-RateLimits", "1"}};
  EXPECT_EQ(told(lists).ours, kOurs);
  EXPECT_EQ(told(lists).theirs, "RateLimit=\"b\";r=1 RateLimit-Policy=\"b\";q=5 X-RateLimits=1 ");
  for (const char* without : {"", kOursWithoutX}) {
    EXPECT_EQ(told({{"X-RateLimit-Remaining", "3"}}, without).ours, without);
    EXPECT_EQ(told({{"X-RateLimit-Remaining", "3"}}, without).theirs, "X-RateLimit-Remaining=3 ");
  }
}

}  // namespace
}  // namespace weir::proxy
