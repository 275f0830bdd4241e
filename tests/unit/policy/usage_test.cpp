#include "weir/policy/usage.hpp"

#include "unit/policy/sample.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The request GET /usage of a client with an API key.
class UsageLines : public ::testing::Test {
 protected:
  UsageLines() {
    request_.path = "/usage";
    request_.client.api_key = "k1";
    request_.client.tier = "free";
  }

  std::vector<std::string> told() {
    std::vector<std::string> names;
    for (const auto& line : limits_of_client(rules_, request_, kKeys)) names.push_back(line.rule->name);
    return names;
  }
  Rule& add(std::string name, std::initializer_list<std::string_view> key) {
    rules_.push_back(rule_of(std::move(name), key));
    return rules_.back();
  }

  http::RequestHead head_ = head_with({{"X-Tenant", "acme"}});
  Request request_ = request_of(head_);
  std::vector<Rule> rules_;
};

TEST_F(UsageLines, ListRulesThatCountEachClientSeparatelyButAllItsRequestsTogether) {
  add("key", {"api_key"});
  add("api", {"api_key|ip"}).match.path = PathMatch::parse("/api/*").value();
  add("posts", {"ip", "host"}).match.methods = {"POST"};
  add("tenant", {"ip", "header:X-Tenant"});
  EXPECT_THAT(told(), ElementsAre("key", "api", "posts", "tenant"));
}

TEST_F(UsageLines, OmitRulesThatAlsoCountOtherClientsOrCountEachPathSeparately) {
  add("all", {});
  add("site", {"host"});
  add("site first", {"host|ip"});
  add("a name that anybody may send", {"header:X-Tenant"});
  add("plan", {"tier"});
  add("each path", {"api_key", "path"});
  add("each route", {"api_key", "route"});
  add("either", {"api_key|path"});
  add("shadow", {"api_key"}).mode = Mode::Shadow;
  add("user", {"user"});
  add("no user", {"user"}).on_missing = OnMissing::Reject;
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(UsageLines, NeverExceedTheMaximumNumberOfLimitsForOneRequest) {
  for (std::size_t i = 0; i <= limit::kMaxCharges; ++i) add(std::to_string(i), {"ip"});
  EXPECT_EQ(told().size(), limit::kMaxCharges);
}

TEST_F(UsageLines, OmitRulesWhoseConditionsExcludeTheClient) {
  add("free", {"api_key"}).match.tiers = {"free"};
  add("pro", {"api_key"}).match.tiers = {"pro"};
  add("here", {"ip"}).match.ip = {cidr("203.0.113.0/24")};
  add("there", {"ip"}).match.ip = {cidr("192.0.2.0/24")};
  Match pro;
  pro.tiers = {"pro"};
  add("not pro", {"ip"}).match.negated = std::make_shared<const Match>(pro);
  Match free;
  free.tiers = {"free"};
  add("not free", {"ip"}).match.negated = std::make_shared<const Match>(free);
  free.path = PathMatch::parse("/usage").value();
  add("not the free path", {"ip"}).match.negated = std::make_shared<const Match>(free);
  EXPECT_THAT(told(), ElementsAre("free", "here", "not pro", "not the free path"));
}

TEST_F(UsageLines, OmitRulesForOtherCitiesOrNetworksButListRulesWithBodyConditions) {
  request_.client.city = "Geneva";
  request_.client.region = "CH-GE";
  request_.client.asn = "AS3303";
  add("city", {"ip"}).match.cities = {"Geneva"};
  add("region", {"ip"}).match.regions = {"CH-GE"};
  add("asn", {"ip", "asn"}).match.asns = {"AS3303"};
  add("other city", {"ip"}).match.cities = {"Bern"};
  add("other region", {"ip"}).match.regions = {"CH-BE"};
  add("other asn", {"ip"}).match.asns = {"AS64496"};
  Match model;
  model.json = {{"/model", TextMatch::present()}};
  add("model", {"ip"}).match = model;
  add("no model", {"ip"}).match.negated = std::make_shared<const Match>(model);
  add("account", {"ip", "json:/email"});
  add("field", {"ip", "form:email"});
  add("segment", {"ip", "path:1"});
  EXPECT_THAT(told(), ElementsAre("city", "region", "asn", "model", "no model"));
}

TEST_F(UsageLines, OmitRulesWhoseKeyIsAmbiguous) {
  head_.fields.push_back({"X-Tenant", "other"});
  add("tenant", {"ip", "header:X-Tenant"});
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(UsageLines, HaveTheSameKeyAndLimiterAsChargesOfTheClientsRequests) {
  auto& rule = add("key", {"api_key"});
  rule.tiers.push_back({.tier = "free", .match = {}, .limiter = bucket(1, 3)});
  const auto lines = limits_of_client(rules_, request_, kKeys);
  Evaluation evaluation;
  ASSERT_FALSE(evaluation.collect(rules_, request_, kKeys));
  ASSERT_EQ(evaluation.local.charges().size(), 1U);
  const auto& charged = evaluation.local.charges()[0];
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].charge.key, charged.key);
  EXPECT_EQ(lines[0].charge.limiter, charged.limiter);
  EXPECT_EQ(lines[0].charge.limiter_id, charged.limiter_id);
  EXPECT_EQ(lines[0].charge.cost, 0U);
}

TEST_F(UsageLines, IgnoreAnOverrideThatMatchesOnlyTheRequestForTheUsage) {
  auto& rule = add("key", {"api_key"});
  rule.overrides.push_back({.tier = {}, .match = {}, .limiter = bucket(1, 99)});
  rule.overrides[0].match.path = PathMatch::parse("/usage").value();
  EXPECT_EQ(limits_of_client(rules_, request_, kKeys).at(0).charge.limiter, rule.limiter.get());
  rule.overrides.push_back({.tier = {}, .match = {}, .limiter = bucket(1, 50)});
  rule.overrides[1].match.ip = {cidr("203.0.113.0/24")};
  EXPECT_EQ(limits_of_client(rules_, request_, kKeys).at(0).charge.limiter, rule.overrides[1].limiter.get());
}

TEST_F(UsageLines, AreWrittenAsJson) {
  add("key", {"api_key"});
  add("window", {"ip"}).limiter = limit::FixedWindow::make({100, std::chrono::hours(1)}).value();
  add("flights", {"ip"}).limiter = limit::Concurrency::make(5).value();
  auto lines = limits_of_client(rules_, request_, kKeys);
  ASSERT_EQ(lines.size(), 3U);
  lines[1].outcome = {.allowed = true, .remaining = 40, .reset_after = std::chrono::milliseconds(1'001)};
  lines[2].outcome = {.allowed = true, .remaining = 3};
  lines[1].known = lines[2].known = true;
  std::string text;
  append_usage_json(text, lines);
  EXPECT_EQ(
      text,
      R"({"limits":[{"rule":"key","limit":10,"window_seconds":1},)"
      R"({"rule":"window","limit":100,"used":60,"remaining":40,"reset_after_seconds":2,"window_seconds":3600},)"
      R"({"rule":"flights","limit":5,"used":2,"remaining":3}]})"
      "\n")
      << "the store of the first rule did not answer";
}

TEST_F(UsageLines, AreWrittenAsAnEmptyJsonListIfNoLimitApplies) {
  std::string text;
  append_usage_json(text, {});
  EXPECT_EQ(text, "{\"limits\":[]}\n");
}

}  // namespace
}  // namespace weir::policy
