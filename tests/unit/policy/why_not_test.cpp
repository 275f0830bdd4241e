#include "unit/policy/sample.hpp"

#include "weir/policy/explanation.hpp"
#include "weir/policy/key_values.hpp"
#include "weir/policy/rules/applied_limiter.hpp"

#include <random>

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

using std::chrono::hours;

class WhyNot : public testing::Test {
 protected:
  [[nodiscard]] std::string why(const Match& match) const { return match.why_not(request_); }

  http::RequestHead head_ = head_with({{"X-Plan", "gold"}}, "page=2");
  Request request_ = request_of(head_);
};

TEST_F(WhyNot, NoReasonIsGivenIfAllConditionsHold) {
  Match match;
  EXPECT_EQ(why(match), "");
  match.methods = {"GET"};
  match.path = PathMatch::parse("*").value();
  EXPECT_EQ(why(match), "");
}

TEST_F(WhyNot, ReasonNamesTheFirstUnmetConditionAndItsValue) {
  const auto with = [&](auto change) {
    Match match;
    change(match);
    return why(match);
  };
  request_.path = "/login";
  request_.now = base::TimePoint(hours(24 * 4 + 12));  // noon on Monday, 1970-01-05
  EXPECT_EQ(with([](Match& m) { m.path = PathMatch::parse("/api/*").value(); }),
            "path /login does not match /api/*");
  EXPECT_EQ(with([](Match& m) { m.methods = {"POST"}; }), "method GET is not POST");
  EXPECT_EQ(with([](Match& m) { m.methods = {"POST", "PUT"}; }), "method GET is not among POST, PUT");
  EXPECT_EQ(with([](Match& m) { m.hosts = {*HostMatch::parse("other.example")}; }),
            "host example.com is not other.example");
  EXPECT_EQ(with([](Match& m) { m.tiers = {"pro"}; }), "tier is unknown, but must be pro");
  EXPECT_EQ(with([](Match& m) { m.countries = {"CH"}; }), "country is unknown, but must be CH");
  EXPECT_EQ(with([](Match& m) {
              m.ip = {cidr("10.0.0.0/8"), cidr("192.0.2.0/24")};
            }),
            "address 203.0.113.7 is not among 10.0.0.0/8, 192.0.2.0/24");
  EXPECT_EQ(with([](Match& m) { m.hours = parse_hours("22:00-06:00").value(); }),
            "applies only in hours 22:00-06:00 in UTC, but it is mon 12:00 there");
  EXPECT_EQ(with([](Match& m) {
              m.headers = {{"x-plan", TextMatch::parse("iron").value()}};
            }),
            "header x-plan is absent or not iron");
  EXPECT_EQ(with([](Match& m) { m.headers = {{"x-no", TextMatch::present()}}; }), "header x-no is absent");
  EXPECT_EQ(with([](Match& m) {
              m.query = {{"page", TextMatch::parse("~^3").value()}};
            }),
            "query parameter page is absent or does not match ~^3");
  EXPECT_EQ(with([](Match& m) { m.body_words = {"drop"}; }), "the body contains none of \"drop\"");
  EXPECT_EQ(with([](Match& m) {
              Match inner;
              inner.methods = {"GET"};
              m.negated = std::make_shared<const Match>(inner);
            }),
            "excluded by not (methods GET)");
}

TEST_F(WhyNot, ReasonContainsNoHeaderValue) {
  head_ = head_with({{"X-Plan", "s3cret"}});
  Match match;
  match.headers = {{"x-plan", TextMatch::parse("iron").value()}};
  EXPECT_EQ(why(match).find("s3cret"), std::string::npos);
}

// Property: why_not() returns a reason if the conditions do not hold, and no reason if they hold.
TEST_F(WhyNot, ReasonIsGivenExactlyIfTheMatchFails) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto maybe = [&](auto change) {
    if (random() % 3 == 0) change();
  };
  for (int i = 0; i < 2000; ++i) {
    Match match;
    maybe([&] { match.methods = {random() % 2 ? "GET" : "PUT"}; });
    maybe([&] { match.hosts = {HostMatch::parse(random() % 2 ? "*.com" : "b.example").value()}; });
    maybe([&] { match.path = PathMatch::parse(random() % 2 ? "/" : "/x").value(); });
    maybe([&] { match.ip = {cidr(random() % 2 ? "203.0.113.0/24" : "10.0.0.0/8")}; });
    maybe([&] { match.headers = {{"x-plan", TextMatch::parse(random() % 2 ? "gold" : "tin").value()}}; });
    maybe([&] { match.query = {{"page", TextMatch::parse(random() % 2 ? "2" : "3").value()}}; });
    ASSERT_EQ(match.holds(request_), why(match).empty()) << match.describe() << ": " << why(match);
    ASSERT_EQ(match.holds(request_), match.known(request_) == Match::Known::Yes);
  }
}

class KeyValues : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> texts(const Rule& rule) const {
    std::vector<std::string> out;
    for (const auto& value : key_values(rule, request_)) out.push_back(describe(value));
    return out;
  }

  http::RequestHead head_ = head_with({{"X-Tenant", "acme"}, {"Cookie", "sid=\"s3cret\""}}, "team=a+b");
  Request request_ = request_of(head_);
  ClientSettings settings_;
};

TEST_F(KeyValues, ValuesAreShownAsTextAndSecretsAsDigests) {
  request_.client.api_key = "test";
  EXPECT_EQ(texts(rule_of("r", {"api_key|ip", "header:x-tenant", "query:team"})),
            (std::vector<std::string>{"api_key:sha256:9f86d081884c7d65", "header:x-tenant:acme",
                                      "query:team:a b"}));
  request_.client.api_key = {};
  EXPECT_EQ(texts(rule_of("r", {"api_key|ip"})), std::vector<std::string>{"ip:203.0.113.7"});
  EXPECT_EQ(texts(rule_of("r", {"cookie:sid"})).at(0).substr(0, 18), "cookie:sid:sha256:");
  EXPECT_TRUE(texts(rule_of("r", {})).empty());
}

TEST_F(KeyValues, AddressReplacesAMissingPartOfAKey) {
  Rule rule = rule_of("r", {"user"});
  rule.on_missing = OnMissing::Ip;
  EXPECT_EQ(texts(rule), std::vector<std::string>{"ip:203.0.113.7"});
}

// An administrator may copy the shown values of a key into a command. The entered values must name the same
// key: in the table, in Redis and in a cluster.
TEST_F(KeyValues, ShownValuesNameTheSameKeyIfTheyAreEnteredAgain) {
  request_.client.user = "ada";
  request_.client.network = network_of(settings_, ip("2001:db8::1"));
  struct Case {
    std::vector<std::string_view> parts;
    std::vector<std::string> written;
  };
  const Case cases[] = {{{"ip"}, {"2001:db8::1"}},
                        {{"ip"}, {"2001:db8::99"}},
                        {{"ip"}, {"ip:2001:db8::1"}},
                        {{"user|ip"}, {"ada"}},
                        {{"api_key|user"}, {"user:ada"}},
                        {{"api_key|ip"}, {"2001:db8::1"}},
                        {{"api_key|header:x-tenant"}, {"header:x-tenant:acme"}},
                        {{"cookie:sid"}, {"s3cret"}},
                        {{"query:team", "route"}, {"a b", "api"}},
                        {{"host", "method", "path"}, {"Example.com:80", "GET", "/a/.."}},
                        {{}, {}}};
  for (const auto& [parts, written] : cases) {
    Rule rule{.name = "r", .limiter = bucket(1, 1)};
    for (const auto part : parts) rule.key.push_back(parse_key_part(part).value());
    const auto values = read_key_values(rule, settings_, written);
    ASSERT_TRUE(values) << values.error().message;
    const AppliedLimiter own{rule.limiter.get(), rule.limiter.get()};
    EXPECT_EQ(name_values(rule, own, *values, kKey), name_key(rule, own, request_, kKey))
        << describe(rule.key);
    if (parts.empty()) continue;
    EXPECT_EQ(slot_hash_of_values(rule, *values, kKey), slot_hash_of_client(rule, request_, kKey))
        << describe(rule.key);
  }
}

TEST_F(KeyValues, NameOfAKeyUnderOneLimiterIsConvertedToItsNameUnderAnyOtherLimiterOfTheRule) {
  Rule rule = rule_of("r", {"ip"});
  rule.elastic = Elastic{.limiter = bucket(20, 20), .while_load_below = 0.7};
  rule.tiers.push_back({.tier = "free", .limiter = bucket(4, 4)});
  const auto values = read_key_values(rule, settings_, std::vector<std::string>{"203.0.113.7"});
  ASSERT_TRUE(values);
  const auto all = limiters_of(rule);
  ASSERT_EQ(all.size(), 3U);
  for (const auto& from : all)
    for (const auto& to : all)
      EXPECT_EQ(name_under(rule, from, to, name_values(rule, from, *values, kKey)),
                name_values(rule, to, *values, kKey));
}

// JSON cannot contain arbitrary octets, so weir converts the octets for display. The displayed text must
// still name the same key.
TEST_F(KeyValues, ShownOctetsThatAreNotTextNameTheSameKeyIfTheyAreEnteredAgain) {
  const Rule rule = rule_of("r", {"query:team"});
  const AppliedLimiter own{rule.limiter.get(), rule.limiter.get()};
  const std::pair<const char*, const char*> queries[] = {{"team=a%FFb", "query:team:a%FFb"},
                                                         {"team=%C3%A9%C3", "query:team:\xc3\xa9%C3"},
                                                         {"team=a%25FFb", "query:team:a%25FFb"},
                                                         {"team=100%25", "query:team:100%"}};
  for (const auto& [query, shown] : queries) {
    head_ = head_with({}, query);
    ASSERT_EQ(texts(rule), std::vector<std::string>{shown});
    const auto values = read_key_values(rule, settings_, texts(rule));
    ASSERT_TRUE(values);
    EXPECT_EQ(name_values(rule, own, *values, kKey), name_key(rule, own, request_, kKey)) << shown;
  }
}

TEST_F(KeyValues, ErrorAboutAKeyListsThePartsOfTheKey) {
  const Rule rule = rule_of("login", {"ip", "header:x-tenant"});
  const auto wrong = [&](const std::vector<std::string>& texts) {
    const auto values = read_key_values(rule, settings_, texts);
    return values ? "" : values.error().message;
  };
  EXPECT_EQ(wrong({"203.0.113.7"}),
            "found 1 part of a key for rule login, but its key has 2 parts, [ip, header:x-tenant]");
  EXPECT_EQ(wrong({"nobody", "acme"}),
            "\"nobody\" is not a valid ip of rule login: its key has 2 parts, [ip, header:x-tenant]");
  EXPECT_EQ(wrong({"203.0.113.7", ""}),
            "\"\" is not a valid header:x-tenant of rule login: its key has 2 parts, [ip, header:x-tenant]");
  EXPECT_FALSE(read_key_values(rule_of("all", {}), settings_, std::vector<std::string>{"x"}));
}

TEST(RuleApplications, ListsForEachRuleWhyItDoesNotApply) {
  auto head = head_with({});
  const auto request = request_of(head);
  std::vector<Rule> rules{rule_of("applies", {"ip"}), rule_of("path", {"ip"}), rule_of("user", {"user"}),
                          rule_of("shadow", {"user"})};
  rules[1].match.path = PathMatch::parse("/api/*").value();
  rules[3].mode = Mode::Shadow;
  rules[3].on_missing = OnMissing::Reject;
  const auto met = check_all(rules, request, {});
  ASSERT_EQ(met.size(), 4U);
  EXPECT_EQ(met[0].why_not, "");
  EXPECT_EQ(met[0].key, std::vector<std::string>{"ip:203.0.113.7"});
  EXPECT_EQ(met[0].cost, 1U);
  EXPECT_EQ(met[1].why_not, "path / does not match /api/*");
  EXPECT_EQ(met[2].why_not, "the request has no [user]");
  EXPECT_EQ(met[3].why_not, "the request has nothing that identifies its client");
}

}  // namespace
}  // namespace weir::policy
