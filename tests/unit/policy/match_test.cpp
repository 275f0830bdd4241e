#include "weir/policy/match.hpp"

#include "unit/policy/sample.hpp"

#include "weir/policy/route.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

bool path_holds(std::string_view pattern, std::string_view path) {
  const auto match = PathMatch::parse(pattern);
  EXPECT_TRUE(match) << match.error().message;
  EXPECT_EQ(match->describe(), pattern);
  return match->holds(path);
}

TEST(PathMatch, MatchesExactPathsPrefixesAndRegularExpressions) {
  EXPECT_TRUE(path_holds("/login", "/login"));
  EXPECT_FALSE(path_holds("/login", "/login/"));
  EXPECT_FALSE(path_holds("/login", "/Login"));
  EXPECT_TRUE(path_holds("/api/*", "/api/v1"));
  EXPECT_TRUE(path_holds("/api/*", "/api/"));
  EXPECT_FALSE(path_holds("/api/*", "/api"));
  EXPECT_FALSE(path_holds("/api/*", "/apix"));
  EXPECT_TRUE(path_holds("/api*", "/apix"));
  EXPECT_TRUE(path_holds("/.*", "/.well-known"));
  EXPECT_TRUE(path_holds("*", "/anything"));
  EXPECT_TRUE(path_holds("~/v[0-9]+/", "/api/v2/x"));  // a regular expression may match anywhere
  EXPECT_FALSE(path_holds("~^/v[0-9]+/", "/api/v2/x"));
  EXPECT_TRUE(path_holds("~^/a...c$", "/a%FFc"));
}

TEST(PathMatch, RejectsPatternsThatNeverMatch) {
  for (const char* pattern : {"login", "", "/a/*/b", "/a//b", "/a/../b", "/a;x", "/a%3Bx", "/a?b=c", "/a#b",
                              "/a\\b", "/a%00", "~(", "~caf\xc3\xa9", "//*", "/a/.", "/a/..;x/*"}) {
    const auto match = PathMatch::parse(pattern);
    ASSERT_FALSE(match) << pattern;
    EXPECT_NE(match.error().message.find(pattern), std::string::npos) << match.error().message;
  }
}

// Patterns and requests may each encode the octets of a path in any way.
TEST(PathMatch, PathPatternMayBeWrittenInAnySpellingOfThePath) {
  const std::pair<const char*, const char*> cases[] = {{"/caf\xc3\xa9", "/caf%C3%A9"},
                                                       {"/caf%c3%a9", "/caf%C3%A9"},
                                                       {"/%6Cogin", "/login"},
                                                       {"/a%40b", "/a@b"},
                                                       {"/a b", "/a%20b"},
                                                       {"/100%", "/100%25"},
                                                       {"/a%2fb/*", "/a%2Fb/*"},
                                                       {"/caf\xc3*", "/caf%C3*"},
                                                       {"/@%3a*", "/@:*"}};
  for (const auto& [pattern, normal] : cases) {
    const auto match = PathMatch::parse(pattern);
    ASSERT_TRUE(match) << match.error().message;
    EXPECT_EQ(match->describe(), normal) << pattern;
  }
}

TEST(TextMatch, MatchesExactTextRegularExpressionsAndPresence) {
  EXPECT_TRUE(TextMatch::parse("a")->holds("a"));
  EXPECT_FALSE(TextMatch::parse("a")->holds("ab"));
  EXPECT_TRUE(TextMatch::parse("~a")->holds("bab"));
  EXPECT_TRUE(TextMatch::present().holds(""));
  EXPECT_TRUE(
      TextMatch::parse("~^a.c$")->holds("a\xff"
                                        "c"));  // '.' matches any octet, even an octet that is not UTF-8
  EXPECT_FALSE(TextMatch::parse("~["));
}

class MatchTest : public testing::Test {
 protected:
  [[nodiscard]] bool holds() const { return match_.holds(request_); }

  http::RequestHead head_ = head_with({{"X-Env", "test"}, {"X-Env", "blue"}}, "debug&mode=fast");
  Request request_ = request_of(head_);
  Match match_;
};

TEST_F(MatchTest, EmptyMatchAppliesToEveryRequest) {
  EXPECT_TRUE(holds());
  EXPECT_EQ(match_.describe(), "everything");
}

TEST_F(MatchTest, MethodsAreCaseSensitive) {
  match_.methods = {"POST", "GET"};
  EXPECT_TRUE(holds());
  head_.method = "get";
  EXPECT_FALSE(holds());
}

TEST_F(MatchTest, RuleAppliesOnlyIfHostPathTierAndAddressMatch) {
  match_.hosts = {*HostMatch::parse("example.com")};
  match_.path = *PathMatch::parse("/*");
  match_.ip = {cidr("198.51.100.0/24"), cidr("203.0.113.0/24")};
  EXPECT_TRUE(holds());
  match_.tiers = {"free", "pro"};
  EXPECT_FALSE(holds());
  request_.client.tier = "pro";
  EXPECT_TRUE(holds());
  request_.client.address = ip("192.0.2.1");
  EXPECT_FALSE(holds());
  request_.client.address = ip("::ffff:203.0.113.9");
  EXPECT_TRUE(holds());
  request_.host = "other.example.com";
  EXPECT_FALSE(holds());
}

TEST_F(MatchTest, EachHeaderConditionNeedsAMatchingLine) {
  match_.headers = {{"x-env", *TextMatch::parse("blue")}};
  EXPECT_TRUE(holds());
  match_.headers.push_back({"X-Other", TextMatch::present()});
  EXPECT_FALSE(holds());
}

TEST_F(MatchTest, QueryParameterNamesAreCaseSensitive) {
  match_.query = {{"debug", TextMatch::present()}, {"mode", *TextMatch::parse("~^f")}};
  EXPECT_TRUE(holds());
  match_.query = {{"Debug", TextMatch::present()}};
  EXPECT_FALSE(holds());
}

TEST_F(MatchTest, QueryParametersAreComparedAfterDecoding) {
  match_.query = {{"mode", *TextMatch::parse("a b")}, {"tag&", *TextMatch::parse("~^[0-9]+$")}};
  for (const auto* query : {"mode=a%20b&tag%26=12", "mode=a+b&tag%26=12", "m%6Fde=%61%20b&%74ag%26=%31%32",
                            "mode=x&mode=a b&tag%26=1"}) {
    head_.query = query;
    EXPECT_TRUE(holds()) << query;
  }
  for (const auto* query :
       {"mode=a%2Bb&tag%26=12", "mode=a%2520b&tag%26=12", "mode=a%20b&tag&=12", "mode=a%20b"}) {
    head_.query = query;
    EXPECT_FALSE(holds()) << query;
  }
}

TEST_F(MatchTest, PlusInAQueryMatchesBothASpaceAndAPlus) {
  match_.query = {{"a+b", *TextMatch::parse("c+d")}};
  for (const auto* query : {"a+b=c+d", "a%2Bb=c%2bd"}) {
    head_.query = query;
    EXPECT_TRUE(holds()) << query;
  }
  head_.query = "a%20b=c+d";
  EXPECT_FALSE(holds());
}

TEST_F(MatchTest, ParameterIsReportedIfOnlySomeOfItsRepeatedValuesMeetACondition) {
  const auto found = [&] {
    const auto ambiguity = match_.ambiguity(request_);
    return ambiguity ? std::string(ambiguity->place) + " " + std::string(ambiguity->name) : std::string();
  };
  match_.query = {{"mode", *TextMatch::parse("fast")}, {"tag", TextMatch::present()}};
  for (const auto* query : {"mode=fast&mode=slow&tag", "mode=fast&m%6fde=", "mode=slow&mode=f%61st"}) {
    head_.query = query;
    EXPECT_EQ(found(), "query parameter mode") << query;
  }
  for (const auto* query : {"", "mode=fast", "mode=fast&mode=%66ast", "mode=a&mode=b", "tag=1&tag=2"}) {
    head_.query = query;
    EXPECT_EQ(found(), "") << query;
  }
  head_.query = "mode=fast&mode=slow";
  match_.hosts = {*HostMatch::parse("elsewhere")};
  EXPECT_EQ(found(), "");  // the request does not meet the condition on the host
  Match outer;
  match_.hosts.clear();
  outer.negated = std::make_shared<const Match>(match_);
  match_ = outer;
  EXPECT_EQ(found(), "query parameter mode");
  match_ = Match{};
  match_.headers = {{"x-env", *TextMatch::parse("~^t")}};
  EXPECT_EQ(found(), "header x-env");
}

TEST_F(MatchTest, ChecksTheCountryOfTheClient) {
  match_.countries = {"CH", "LI"};
  EXPECT_FALSE(holds());  // the country is unknown
  request_.client.country = "LI";
  EXPECT_TRUE(holds());
  request_.client.country = "DE";
  EXPECT_FALSE(holds());
  EXPECT_EQ(match_.describe(), "country CH LI");
}

TEST_F(MatchTest, ChecksTheHoursOfTheRequest) {
  match_.hours = *parse_hours("22:00-06:00");
  request_.now = base::TimePoint(std::chrono::hours(23));
  EXPECT_TRUE(holds());
  request_.now = base::TimePoint(std::chrono::hours(12));
  EXPECT_FALSE(holds());
}

TEST_F(MatchTest, NegationFailsOnlyIfAllNegatedConditionsHold) {
  Match inner;
  inner.methods = {"GET"};
  inner.hosts = {*HostMatch::parse("other.example.com")};
  match_.negated = std::make_shared<const Match>(inner);
  EXPECT_TRUE(holds());  // only one of the two negated conditions holds
  request_.host = "other.example.com";
  EXPECT_FALSE(holds());
}

TEST_F(MatchTest, DescriptionShowsAllConditions) {
  match_.path = *PathMatch::parse("/api/*");
  match_.methods = {"GET", "POST"};
  match_.headers = {{"X-Env", *TextMatch::parse("~t")}, {"X-Any", TextMatch::present()}};
  match_.ip = {cidr("10.0.0.0/8")};
  match_.hours = *parse_hours("01:00-06:00");
  Match inner;
  inner.tiers = {"free"};
  match_.negated = std::make_shared<const Match>(inner);
  EXPECT_EQ(match_.describe(),
            "path /api/*, methods GET POST, header X-Env = ~t, header X-Any present, ip 10.0.0.0/8, "
            "hours 01:00-06:00 in UTC, not (tier free)");
}

TEST_F(MatchTest, FindsTheFirstRouteThatMatches) {
  std::vector<Route> routes(3);
  routes[0].match.methods = {"PUT"};
  routes[2].match.methods = {"GET"};
  EXPECT_EQ(find_route(routes, request_), 1U);
  routes[1].match.hosts = {*HostMatch::parse("elsewhere")};
  EXPECT_EQ(find_route(routes, request_), 2U);
  head_.method = "DELETE";
  EXPECT_EQ(find_route(routes, request_), std::nullopt);
}

class MatchBySource : public testing::Test {
 protected:
  http::RequestHead head_ = head_with({});
  Request request_ = request_of(head_);
  Match match_;
};

TEST_F(MatchBySource, HostConditionHoldsIfOneOfItsHostsMatches) {
  match_.hosts = {*HostMatch::parse("a.com"), *HostMatch::parse("*.example.com")};
  EXPECT_FALSE(match_.holds(request_)) << "the host is example.com";
  EXPECT_EQ(match_.why_not(request_), "host example.com is not among a.com, *.example.com");
  request_.host = "www.example.com";
  EXPECT_TRUE(match_.holds(request_));
  EXPECT_EQ(match_.describe(), "host a.com *.example.com");
}

TEST_F(MatchBySource, SchemeConditionUsesTheSchemeOfTheConnection) {
  match_.https = true;
  EXPECT_FALSE(match_.holds(request_));
  EXPECT_EQ(match_.why_not(request_), "scheme http is not https");
  request_.secure = true;
  EXPECT_TRUE(match_.holds(request_));
  match_.https = false;
  EXPECT_EQ(match_.why_not(request_), "scheme https is not http");
  EXPECT_EQ(match_.describe(), "scheme http");
}

// A proxy that ends TLS before weir states the client's scheme in X-Forwarded-Proto. If weir ignored this
// field, a redirect to https would never end.
TEST_F(MatchBySource, XForwardedProtoOfATrustedPeerOverridesTheScheme) {
  head_.fields.push_back({"X-Forwarded-Proto", "HTTPS", http::FieldId::XForwardedProto});
  EXPECT_FALSE(is_https(request_)) << "an untrusted peer could forge the field";
  request_.client.peer_trusted = true;
  EXPECT_TRUE(is_https(request_));
  request_.secure = true;
  head_.fields.back().value = "http";
  EXPECT_FALSE(is_https(request_));
  head_.fields.back().value = "wss";
  EXPECT_TRUE(is_https(request_)) << "the value names no known scheme, so the connection decides";
}

TEST_F(MatchBySource, ListenerAndRouteMustBeAmongTheListedNames) {
  match_.listeners = {"internal", "edge"};
  EXPECT_EQ(match_.why_not(request_), "listener is unknown, but must be among internal, edge");
  request_.listener = "edge";
  EXPECT_TRUE(match_.holds(request_));
  match_.set_routes({"login"}, {"api", "login"});
  request_.route_index = 0;
  EXPECT_EQ(match_.why_not(request_), "route api is not login");
  request_.route = "login";
  request_.route_index = 1;
  EXPECT_TRUE(match_.holds(request_));
  EXPECT_EQ(match_.describe(), "listener internal edge, route login");
}

// Routes without a configured name may get the same name, because this name consists only of host and path.
TEST_F(MatchBySource, RouteNameMatchesEveryRouteOfThatName) {
  match_.set_routes({"shop", "login"}, {"shop", "api", "login", "shop"});
  std::vector<std::size_t> held;
  for (const std::size_t index :
       {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}, kNoRoute}) {
    request_.route_index = index;
    if (match_.holds(request_)) held.push_back(index);
  }
  EXPECT_EQ(held, (std::vector<std::size_t>{0, 2, 3}));
}

}  // namespace
}  // namespace weir::policy
