#include "weir/policy/routing/patterns.hpp"

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

HostMatch host(std::string_view pattern) {
  auto match = HostMatch::parse(pattern);
  EXPECT_TRUE(match) << pattern << ": " << match.error().message;
  return *match;
}

TEST(HostMatch, ExactHostMatchesOnlyItself) {
  const auto match = host("API.Example.com.");
  EXPECT_EQ(match.describe(), "api.example.com");
  EXPECT_TRUE(match.holds("api.example.com"));
  for (const char* other : {"example.com", "x.api.example.com", "xapi.example.com", ""})
    EXPECT_FALSE(match.holds(other)) << other;
  EXPECT_TRUE(host("[2001:DB8::1]").holds("[2001:db8::1]"));
}

TEST(HostMatch, WildcardMatchesOneOrMoreLabels) {
  const auto match = host("*.Example.com");
  EXPECT_EQ(match.describe(), "*.example.com");
  for (const char* below : {"www.example.com", "a.b.example.com"}) EXPECT_TRUE(match.holds(below)) << below;
  for (const char* other : {"example.com", ".example.com", "wwwexample.com", "www.example.com.evil.net", ""})
    EXPECT_FALSE(match.holds(other)) << other;
}

TEST(HostMatch, RegularExpressionIgnoresCase) {
  const auto match = host("~^(API|www)[0-9]*\\.example\\.com$");
  EXPECT_TRUE(match.holds("api7.example.com"));
  EXPECT_TRUE(match.holds("www.example.com"));
  EXPECT_FALSE(match.holds("api7.example.com.evil.net"));
  EXPECT_EQ(match.describe(), "~^(API|www)[0-9]*\\.example\\.com$");
}

TEST(HostMatch, RejectsHostsThatNoRequestCanHave) {
  for (const char* pattern :
       {"", "*", "*.", "www.*", "a*.example.com", "*.*.example.com", ".example.com", "a|b", "a:80",
        "*.example.com:80", "256.1.1.1", "*.0.0.1", "::1", "~(", "https://a", "a b"})
    EXPECT_FALSE(HostMatch::parse(pattern)) << pattern;
}

TEST(HostMatch, ReportsWhetherAPatternCoversAnotherPattern) {
  EXPECT_TRUE(host("*.a.com").covers(host("b.a.com")));
  EXPECT_TRUE(host("*.a.com").covers(host("*.b.a.com")));
  EXPECT_TRUE(host("*.a.com").covers(host("*.a.com")));
  EXPECT_FALSE(host("*.b.a.com").covers(host("*.a.com")));
  EXPECT_FALSE(host("*.a.com").covers(host("a.com")));
  EXPECT_FALSE(host("*.a.com").covers(host("~a")));
  EXPECT_TRUE(host("~a").covers(host("~a")));
  EXPECT_TRUE(host("~^b").covers(host("b.com")));
  EXPECT_FALSE(host("~^b").covers(host("*.b.com")));
}

TEST(HostMatch, ReportsWhetherTwoPatternsExcludeEachOther) {
  EXPECT_TRUE(host("a.com").is_disjoint(host("b.com")));
  EXPECT_TRUE(host("a.com").is_disjoint(host("*.a.com")));
  EXPECT_TRUE(host("*.a.com").is_disjoint(host("*.b.com")));
  EXPECT_FALSE(host("*.a.com").is_disjoint(host("*.b.a.com")));
  EXPECT_FALSE(host("*.a.com").is_disjoint(host("b.a.com")));
  EXPECT_TRUE(host("~^b").is_disjoint(host("a.com")));
  EXPECT_FALSE(host("~^b").is_disjoint(host("*.a.com")));
}

}  // namespace
}  // namespace weir::policy
