#include "unit/policy/sample.hpp"

#include "weir/policy/match.hpp"
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

TEST(HostMatch, RejectsHostsThatNoRequestHas) {
  for (const char* pattern :
       {"", "*", "*.", "www.*", "a*.example.com", "*.*.example.com", ".example.com", "a|b", "a:80",
        "*.example.com:80", "256.1.1.1", "*.0.0.1", "::1", "~(", "https://a", "a b"})
    EXPECT_FALSE(HostMatch::parse(pattern)) << pattern;
}

TEST(HostMatch, KnowsWhichPatternsCoverOthers) {
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

TEST(HostMatch, KnowsWhichPatternsExcludeEachOther) {
  EXPECT_TRUE(host("a.com").is_disjoint(host("b.com")));
  EXPECT_TRUE(host("a.com").is_disjoint(host("*.a.com")));
  EXPECT_TRUE(host("*.a.com").is_disjoint(host("*.b.com")));
  EXPECT_FALSE(host("*.a.com").is_disjoint(host("*.b.a.com")));
  EXPECT_FALSE(host("*.a.com").is_disjoint(host("b.a.com")));
  EXPECT_TRUE(host("~^b").is_disjoint(host("a.com")));
  EXPECT_FALSE(host("~^b").is_disjoint(host("*.a.com")));
}

class WayTest : public testing::Test {
 protected:
  http::RequestHead head_ = head_with({});
  Request request_ = request_of(head_);
  Match match_;
};

TEST_F(WayTest, OneOfTheHostsMustMatch) {
  match_.hosts = {host("a.com"), host("*.example.com")};
  EXPECT_FALSE(match_.holds(request_)) << "the host is example.com";
  EXPECT_EQ(match_.why_not(request_), "host example.com is not among a.com, *.example.com");
  request_.host = "www.example.com";
  EXPECT_TRUE(match_.holds(request_));
  EXPECT_EQ(match_.describe(), "host a.com *.example.com");
}

TEST_F(WayTest, SchemeIsThatOfTheConnection) {
  match_.https = true;
  EXPECT_FALSE(match_.holds(request_));
  EXPECT_EQ(match_.why_not(request_), "scheme http is not https");
  request_.secure = true;
  EXPECT_TRUE(match_.holds(request_));
  match_.https = false;
  EXPECT_EQ(match_.why_not(request_), "scheme https is not http");
  EXPECT_EQ(match_.describe(), "scheme http");
}

// A proxy that ends TLS for weir tells the client's scheme. Otherwise a redirect to https would never end.
TEST_F(WayTest, TrustedPeerTellsTheScheme) {
  head_.fields.push_back({"X-Forwarded-Proto", "HTTPS", http::FieldId::XForwardedProto});
  EXPECT_FALSE(is_https(request_)) << "anybody could claim this";
  request_.client.peer_trusted = true;
  EXPECT_TRUE(is_https(request_));
  request_.secure = true;
  head_.fields.back().value = "http";
  EXPECT_FALSE(is_https(request_));
  head_.fields.back().value = "wss";
  EXPECT_TRUE(is_https(request_)) << "the value says neither, so the connection counts";
}

TEST_F(WayTest, ListenerAndRouteMustBeInTheirLists) {
  match_.listeners = {"internal", "edge"};
  EXPECT_EQ(match_.why_not(request_), "listener is unknown, but must be among internal, edge");
  request_.listener = "edge";
  EXPECT_TRUE(match_.holds(request_));
  match_.routes = {"login"};
  EXPECT_EQ(match_.why_not(request_), "route api is not login");
  request_.route = "login";
  EXPECT_TRUE(match_.holds(request_));
  EXPECT_EQ(match_.describe(), "listener internal edge, route login");
}

}  // namespace
}  // namespace weir::policy
