#include "weir/policy/rule_finder.hpp"

#include "unit/policy/sample.hpp"

#include "weir/policy/explain_request.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Rule rule_for(std::string name, std::string_view host, std::string_view path,
              std::vector<std::string> methods = {}) {
  auto rule = rule_of(std::move(name), {"ip"});
  if (!host.empty()) rule.match.hosts = {*HostMatch::parse(host)};
  if (!path.empty()) rule.match.path = PathMatch::parse(path).value();
  rule.match.methods = std::move(methods);
  return rule;
}

// Adds rules that match no request of these tests. If there were only a few rules, the finder would return
// all of them.
std::vector<Rule> with_many_others(std::vector<Rule> rules) {
  for (std::size_t i = 0; i <= MatchIndex::kFew; ++i)
    rules.push_back(rule_for("other", "other.example.com", "/other/" + std::to_string(i)));
  return rules;
}

std::vector<std::string> found(const std::vector<Rule>& rules, const Request& request) {
  const RuleFinder finder(rules);
  RuleFinder::Scratch room;
  std::vector<std::string> names;
  for (const Rule& rule : finder.find(rules, request, room)) names.push_back(rule.name);
  return names;
}

std::vector<std::string> found(const std::vector<Rule>& rules, std::string_view host, std::string_view path,
                               std::string_view method = "GET") {
  auto head = head_with({});
  head.method = method;
  auto request = request_of(head);
  request.host = host;
  request.path = path;
  return found(rules, request);
}

TEST(RuleFinder, FindsRulesWithTheHostAndRulesForEveryHost) {
  const auto rules = with_many_others(
      {rule_for("a", "a.example.com", ""), rule_for("every", "", ""), rule_for("b", "b.example.com", "")});
  EXPECT_THAT(found(rules, "a.example.com", "/"), ElementsAre("a", "every"));
  EXPECT_THAT(found(rules, "b.example.com", "/"), ElementsAre("every", "b"));
  EXPECT_THAT(found(rules, "", "/"), ElementsAre("every")) << "a request without a host";
}

TEST(RuleFinder, FindsRulesWithTheMethodAndRulesForEveryMethod) {
  const auto rules = with_many_others({rule_for("write", "", "", {"POST", "PUT"}), rule_for("every", "", ""),
                                       rule_for("read", "", "", {"GET"})});
  EXPECT_THAT(found(rules, "h", "/", "PUT"), ElementsAre("write", "every"));
  EXPECT_THAT(found(rules, "h", "/", "GET"), ElementsAre("every", "read"));
  EXPECT_THAT(found(rules, "h", "/", "get"), ElementsAre("every")) << "methods are case-sensitive";
}

TEST(RuleFinder, FindsEveryPatternThatThePathBeginsWith) {
  const auto rules = with_many_others(
      {rule_for("deep", "", "/api/v1/things/*"), rule_for("root", "", "/*"), rule_for("api", "", "/api/*"),
       rule_for("sibling", "", "/api/v1/thin*"), rule_for("later", "", "/api/v2/*"),
       rule_for("exact", "", "/api/v1/things/7"), rule_for("regex", "", "~^/api"), rule_for("all", "", "*")});
  EXPECT_THAT(found(rules, "h", "/api/v1/things/7"),
              ElementsAre("deep", "root", "api", "sibling", "exact", "regex", "all"));
  EXPECT_THAT(found(rules, "h", "/api/v1/thinner"), ElementsAre("root", "api", "sibling", "regex", "all"));
  EXPECT_THAT(found(rules, "h", "/zoo"), ElementsAre("root", "regex", "all"));
}

TEST(RuleFinder, FindsRulesForEveryPathIfTheTargetIsAnAsterisk) {
  const auto rules =
      with_many_others({rule_for("root", "", "/*"), rule_for("all", "", "*"), rule_for("api", "", "/api/*")});
  EXPECT_THAT(found(rules, "h", "*", "OPTIONS"), ElementsAre("root", "all"));
}

TEST(RuleFinder, ReturnsAllRulesIfThereAreFew) {
  const std::vector<Rule> rules = {rule_for("a", "a", ""), rule_for("b", "b", "")};
  EXPECT_THAT(found(rules, "a", "/"), ElementsAre("a", "b"));
}

TEST(RuleFinder, DefaultConstructedFinderReturnsAllRules) {
  const std::vector<Rule> rules = {rule_for("a", "a", "")};
  const auto head = head_with({});
  RuleFinder::Scratch room;
  EXPECT_FALSE(RuleFinder().find(rules, request_of(head), room).empty());
}

// Some servers read "/a%2Fb" as "/a/b", and the rule "/a/*" applies only to the second form. The finder must
// return this rule for both forms.
TEST(RuleFinder, FindsRulesThatMatchOnlyAnotherInterpretationOfThePath) {
  const auto rules = with_many_others({rule_for("below", "", "/a/*"), rule_for("beside", "", "/c/*")});
  ExplainRequest explain_request;
  explain_request.host = "h";
  explain_request.target = "/a%2Fb";
  explain_request.peer = ip("203.0.113.7");
  const ClientSettings settings;
  DescribedRequest described;
  ASSERT_FALSE(described.read(explain_request, settings, {}, 1));
  ASSERT_NE(described.request().interpretations, nullptr);
  EXPECT_THAT(found(rules, described.request()), ElementsAre("below"));
}

std::string random_path(std::mt19937_64& random, std::size_t most) {
  std::string path;
  for (std::size_t i = 0, length = 1 + random() % most; i < length; ++i)
    path += random() % 3 == 0 ? "/" : std::string(1, "ab"[random() % 2]);
  return "/" + path;
}

// A request must be charged by the same rules in the same order, whether weir tests all rules or only the
// rules that the finder returns.
TEST(RuleFinder, FindsEveryRuleThatMatches) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const std::vector<std::string> hosts = {"", "a", "b.a"};
  const std::vector<std::string> patterns = {"", "a", "b.a", "*.a", "~a"};
  const std::vector<std::vector<std::string>> methods = {{}, {"GET"}, {"POST", "GET"}, {"PUT"}};
  std::size_t matches = 0, candidates = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Rule> rules;
    for (int i = 0; i < 60; ++i) {
      auto path = random_path(random, 5);
      while (path.find("//") != std::string::npos) path = random_path(random, 5);
      if (random() % 2 == 0) path += "*";
      if (random() % 10 == 0) path = "";
      rules.push_back(rule_for(std::to_string(i), patterns[random() % 5], path, methods[random() % 4]));
    }
    for (int i = 0; i < 50; ++i) {
      auto head = head_with({});
      head.method = methods[1 + random() % 3][0];
      const auto path = random_path(random, 8);
      auto request = request_of(head);
      request.host = hosts[random() % 3];
      request.path = path;
      std::vector<std::string> all, few;
      for (const Rule& rule : rules)
        if (rule.match.holds(request)) all.push_back(rule.name);
      const RuleFinder finder(rules);
      RuleFinder::Scratch room;
      for (const Rule& rule : finder.find(rules, request, room)) {
        ++candidates;
        if (rule.match.holds(request)) few.push_back(rule.name);
      }
      ASSERT_EQ(few, all) << request.host << path;
      matches += all.size();
    }
  }
  EXPECT_GT(matches, 10'000U);
  EXPECT_LT(candidates, 3 * matches) << "the finder returned many rules that do not match";
}

TEST(FirstBeyond, FindsTheFirstRuleBeyondTheMaximumNumberOfChargesOfARequest) {
  std::vector<Rule> rules = {rule_for("a", "", ""), rule_for("b", "", "/api/*"),
                             rule_for("c", "h", "/api/x")};
  EXPECT_EQ(first_beyond(rules, 3), nullptr);
  EXPECT_EQ(first_beyond(rules, 2), &rules[2]) << "all three apply to /api/x of host h";
  rules[0].elastic.emplace(Elastic{.limiter = bucket(20, 20), .while_load_below = 0.5});
  EXPECT_EQ(first_beyond(rules, 3), &rules[2]) << "an elastic rule makes two charges";
}

TEST(FirstBeyond, CountsOnlyRulesThatCertainlyApplyToTheSameRequest) {
  std::vector<Rule> rules = {rule_for("a", "", "/a/*"), rule_for("b", "", "/b/*"),
                             rule_for("c", "", "", {"GET"}), rule_for("d", "", "", {"PUT"})};
  EXPECT_EQ(first_beyond(rules, 1), nullptr) << "no rule covers another";
  rules = {rule_for("a", "", ""), rule_for("b", "", ""), rule_of("c", {"api_key"})};
  rules[1].match.tiers = {"pro"};
  EXPECT_EQ(first_beyond(rules, 1), nullptr) << "a request may have another tier or no API key";
  rules = {rule_for("a", "", ""), rule_for("b", "", ""), rule_for("c", "", ""), rule_for("d", "", ""),
           rule_for("e", "", "")};
  rules[0].match.cities = {"Geneva"};
  rules[1].match.regions = {"CH-GE"};
  rules[2].match.asns = {"AS3303"};
  rules[3].match.json = {{"/model", TextMatch::present()}};
  EXPECT_EQ(first_beyond(rules, 1), nullptr) << "a request may come from elsewhere, and have no body";
}

TEST(FirstBeyond, CountsRulesThatUseTheAddressInPlaceOfAMissingKey) {
  std::vector<Rule> rules = {rule_of("a", {"user"}), rule_of("b", {"ip", "header:x-tenant"})};
  EXPECT_EQ(first_beyond(rules, 1), nullptr) << "the rules skip requests without the key";
  for (auto& rule : rules) rule.on_missing = OnMissing::Ip;
  EXPECT_EQ(first_beyond(rules, 1), &rules[1]);
}

TEST(FirstBeyond, CountsRulesWhoseKeyNearlyEveryRequestHasOnlyWithReachUsual) {
  for (const char* part : {"host", "route", "upstream"}) {
    const std::vector<Rule> rules = {rule_of("a", {part}), rule_of("b", {"ip"})};
    EXPECT_EQ(first_beyond(rules, 1), nullptr) << part;
    EXPECT_EQ(first_beyond(rules, 1, Reach::Usual), &rules[1]) << part;
  }
  std::vector<Rule> rules = {rule_of("a", {"user"}), rule_of("b", {"ip"})};
  EXPECT_EQ(first_beyond(rules, 1, Reach::Usual), nullptr) << "the first rule skips requests without a user";
  rules[0].on_missing = OnMissing::Reject;
  EXPECT_EQ(first_beyond(rules, 1), nullptr);
  EXPECT_EQ(first_beyond(rules, 1, Reach::Usual), &rules[1]) << "a request without a user is rejected anyway";
}

}  // namespace
}  // namespace weir::policy
