// Rules and the named values of questions: which descriptors a rule applies to, and what it charges.
#include "policy/rules/descriptors.hpp"

#include "unit/policy/sample.hpp"

#include "weir/policy/claims.hpp"
#include "weir/policy/client_text.hpp"
#include "weir/policy/explanation.hpp"
#include "weir/policy/key_values.hpp"
#include "weir/policy/rule_finder.hpp"
#include "weir/policy/usage.hpp"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

class Descriptors : public testing::Test {
 protected:
  // Reserves memory, because add() and ask() return references to elements. A reallocation would make these
  // references invalid.
  Descriptors() {
    rules_.reserve(100);
    asked_.reserve(100);
  }
  // Adds a rule with this key. A condition on a descriptor must be added by demand().
  Rule& add(std::string name, std::initializer_list<std::string_view> parts) {
    auto& rule = rules_.emplace_back(rule_of(std::move(name), parts));
    rule.index = rule.rule_number = static_cast<limit::RuleIndex>(rules_.size() - 1);
    rule.descriptor_keys = descriptor_keys_of(rule);
    return rule;
  }
  static void demand(Rule& rule, std::string key, std::string_view text) {
    auto wanted = text == "*" ? TextMatch::present() : TextMatch::parse(text).value();
    rule.match.descriptor.push_back({std::move(key), std::move(wanted)});
    rule.descriptor_keys = descriptor_keys_of(rule);
  }
  Descriptor& ask(std::vector<DescriptorEntry> entries, bool exact = false) {
    asked_.push_back({.entries = std::move(entries), .exact = exact});
    request_.descriptors = asked_;
    return asked_.back();
  }
  Rejection collect() { return evaluation_.collect(rules_, request_, kKeys); }
  // Returns the name and the descriptors of each charge in memory.
  std::vector<std::pair<std::string, std::uint32_t>> charged() {
    EXPECT_FALSE(collect());
    std::vector<std::pair<std::string, std::uint32_t>> names;
    for (std::size_t i = 0; i < evaluation_.local.charges().size(); ++i)
      names.emplace_back(evaluation_.local.source(i).rule->name, evaluation_.local.source(i).descriptors);
    return names;
  }
  using Charged = std::vector<std::pair<std::string, std::uint32_t>>;

  http::RequestHead head_ = head_with({});
  Request request_ = request_of(head_);
  std::vector<Rule> rules_;
  std::vector<Descriptor> asked_;
  Evaluation evaluation_;
};

TEST_F(Descriptors, RuleAppliesToEachDescriptorThatHasItsKeys) {
  add("by-user", {"descriptor:user"});
  demand(add("gold", {"descriptor:user"}), "plan", "gold");
  add("by-ip", {"ip"});
  ask({{"user", "ada"}});
  ask({{"user", "bob"}, {"plan", "gold"}});
  ask({{"tenant", "x"}});
  EXPECT_EQ(charged(), (Charged{{"by-user", 1}, {"by-user", 2}, {"gold", 2}, {"by-ip", 0}}));
}

TEST_F(Descriptors, ExactDescriptorMeetsOnlyRulesThatNameAllItsKeys) {
  add("by-user", {"descriptor:user"});
  add("by-both", {"descriptor:path", "descriptor:user"});
  demand(add("login", {"descriptor:user"}), "path", "/login");
  demand(add("any", {}), "path", "*");
  ask({{"user", "ada"}}, true);
  ask({{"path", "/login"}, {"user", "ada"}}, true);
  EXPECT_EQ(charged(), (Charged{{"by-user", 1}, {"by-both", 2}, {"login", 2}}))
      << "a question with both descriptors must count once under by-user";
}

TEST_F(Descriptors, OverridesAndNegatedConditionsMayNameFurtherKeysOfExactDescriptors) {
  auto& rule = add("by-user", {"descriptor:user"});
  Match gold;
  gold.descriptor = {{"plan", TextMatch::parse("gold").value()}};
  rule.overrides.push_back({.tier = {}, .match = gold, .limiter = bucket(50, 50)});
  Match test;
  test.descriptor = {{"env", TextMatch::parse("test").value()}};
  rule.match.negated = std::make_shared<const Match>(test);
  rule.descriptor_keys = descriptor_keys_of(rule);
  EXPECT_EQ(rule.descriptor_keys, (std::vector<std::string>{"env", "plan", "user"}));
  ask({{"plan", "gold"}, {"user", "ada"}}, true);
  ask({{"env", "test"}, {"user", "bob"}}, true);
  ask({{"user", "cy"}, {"colour", "red"}}, true);
  EXPECT_EQ(charged(), (Charged{{"by-user", 1}}));
  EXPECT_EQ(evaluation_.local.source(0).applied.variant, 1U);
}

TEST_F(Descriptors, RequestsWithoutDescriptorsNeverMeetRulesThatNeedOne) {
  add("by-user", {"descriptor:user"}).on_missing = OnMissing::Reject;
  add("by-ip", {"descriptor:user"}).on_missing = OnMissing::Ip;
  demand(add("gold", {"ip"}), "plan", "gold");
  EXPECT_EQ(charged(), Charged{});
}

TEST_F(Descriptors, RuleWithADescriptorAsOneAlternativeOfItsKeyAppliesOnceToEveryRequest) {
  auto& rule = add("by-user", {"descriptor:user|ip"});
  Match internal;
  internal.descriptor = {{"internal", TextMatch::parse("yes").value()}};
  rule.overrides.push_back({.tier = {}, .match = internal, .limiter = bucket(50, 50)});
  EXPECT_EQ(descriptor_keys_of(rule), std::vector<std::string>{});
  EXPECT_EQ(charged(), (Charged{{"by-user", 0}}));
  EXPECT_EQ(key_values(rule, request_)[0].attribute.kind, Attribute::Ip);
  ask({{"internal", "yes"}});
  ask({{"user", "ada"}});
  EXPECT_EQ(charged(), (Charged{{"by-user", 0}}));
  EXPECT_EQ(evaluation_.local.source(0).applied.variant, 1U) << "one descriptor meets the override";
  EXPECT_EQ(key_values(rule, request_)[0].value, "ada");
}

TEST_F(Descriptors, OnMissingDecidesAboutADescriptorThatLacksTheKeyAndIsNotExact) {
  auto& rule = add("by-user", {"descriptor:user"});
  ask({{"tenant", "x"}});
  EXPECT_EQ(charged(), Charged{}) << "skip";
  rule.on_missing = OnMissing::Ip;
  EXPECT_EQ(charged(), (Charged{{"by-user", 1}}));
  rule.on_missing = OnMissing::Reject;
  const auto rejection = collect();
  EXPECT_EQ(rejection.part, rule.key.data());
  EXPECT_EQ(status_of(rejection), 400U);
  asked_[0].exact = true;
  EXPECT_EQ(charged(), Charged{}) << "an exact descriptor is for other rules";
}

TEST_F(Descriptors, EmptyValueCountsAsMissing) {
  add("by-user", {"descriptor:user"});
  demand(add("any", {}), "user", "*");
  ask({{"user", ""}});
  EXPECT_EQ(charged(), Charged{});
}

TEST_F(Descriptors, DescriptorsWithTheSameKeyShareOneChargeForTheSumOfTheirCosts) {
  auto& rule = add("by-user", {"descriptor:user"});
  rule.elastic = Elastic{.limiter = bucket(20, 20), .while_load_below = 0.5};
  ask({{"user", "ada"}}).cost = 3;
  ask({{"user", "bob"}}).cost = 5;
  ask({{"user", "ada"}, {"page", "2"}}).cost = 4;
  EXPECT_EQ(charged(), (Charged{{"by-user", 5}, {"by-user", 5}, {"by-user", 2}, {"by-user", 2}}));
  const auto charges = evaluation_.local.charges();
  EXPECT_EQ(charges[0].cost, 7U);
  EXPECT_EQ(charges[1].cost, 7U);
  EXPECT_TRUE(charges[1].counted);
  EXPECT_EQ(charges[2].cost, 5U);
  EXPECT_NE(charges[0].key, charges[2].key);
}

TEST_F(Descriptors, SumOfCostsAboveTheMaximumIsRejected) {
  add("by-user", {"descriptor:user"});
  ask({{"user", "ada"}}).cost = limit::kMaxCost;
  ask({{"user", "ada"}}).cost = 1;
  const auto rejection = collect();
  EXPECT_EQ(rejection.rule, rules_.data());
  EXPECT_EQ(
      describe(rejection),
      "the costs of the question for one key of rule by-user add up to more than 2147483648; ask several "
      "questions");
  EXPECT_TRUE(evaluation_.local.empty());
  rules_[0].mode = Mode::Shadow;
  EXPECT_EQ(charged(), Charged{}) << "a shadow rule with a rejection is left out";
}

TEST_F(Descriptors, StatedCostReplacesTheConfiguredCost) {
  add("whole", {"ip"}).cost = 2;
  add("by-user", {"descriptor:user"}).cost = 2;
  auto& stated = add("by-header", {"ip"});
  stated.cost_from = {.kind = CostSource::Kind::Header, .name = "X-Cost"};
  stated.cost = 7;
  const auto costs = [&] {
    EXPECT_FALSE(collect());
    std::vector<limit::Cost> all;
    for (const auto& charge : evaluation_.local.charges()) all.push_back(charge.cost);
    return all;
  };
  ask({{"user", "ada"}});
  EXPECT_EQ(costs(), (std::vector<limit::Cost>{2, 2, 7}));
  request_.stated_cost = 10;
  EXPECT_EQ(costs(), (std::vector<limit::Cost>{10, 10, 7})) << "a rule with cost_from reads its own cost";
  asked_[0].cost = 30;
  EXPECT_EQ(costs(), (std::vector<limit::Cost>{10, 30, 7}));
  asked_[0].cost = 0;
  EXPECT_EQ(costs(), (std::vector<limit::Cost>{10, 0, 7})) << "the rules of the descriptor are only checked";
  asked_[0].cost.reset();
  request_.stated_cost = 0;
  EXPECT_EQ(costs(), (std::vector<limit::Cost>{0, 0, 0})) << "the whole question is a check";
  head_.fields.push_back({"X-Cost", "0"});
  EXPECT_EQ(costs(), (std::vector<limit::Cost>{0, 0, 0}));
  request_.stated_cost.reset();
  EXPECT_TRUE(collect()) << "a header cannot make a request a check";
}

TEST_F(Descriptors, ConcurrencyLimitIgnoresTheStatedCost) {
  add("at-once", {"ip"}).limiter = limit::Concurrency::make(3).value();
  request_.stated_cost = 10;
  EXPECT_FALSE(collect());
  EXPECT_EQ(evaluation_.local.charges()[0].cost, 1U);
}

TEST_F(Descriptors, CheckOfAConcurrencyLimitTakesNoPermit) {
  add("at-once", {"ip"}).limiter = limit::Concurrency::make(3).value();
  request_.stated_cost = 0;
  EXPECT_FALSE(collect());
  EXPECT_EQ(evaluation_.local.charges()[0].cost, 0U);
}

TEST_F(Descriptors, OverdraftIsOnlyCheckedBeforeTheDecisionAndChargedAfterIt) {
  add("tokens", {"descriptor:user"}).overdraft = true;
  ask({{"user", "ada"}}).cost = 30;
  EXPECT_FALSE(collect());
  EXPECT_EQ(evaluation_.local.charges()[0].cost, 0U);
  EXPECT_EQ(evaluation_.local.source(0).overdraft, 30U);
  asked_[0].cost = 0;
  EXPECT_FALSE(collect());
  EXPECT_EQ(evaluation_.local.source(0).overdraft, 0U) << "a check";
  asked_[0].cost.reset();
  EXPECT_FALSE(collect());
  EXPECT_EQ(evaluation_.local.source(0).overdraft, 1U) << "the cost of the rule";
}

TEST_F(Descriptors, OverdraftsOfDescriptorsWithTheSameKeyAreAddedUp) {
  auto& rule = add("tokens", {"descriptor:user"});
  rule.overdraft = true;
  ask({{"user", "ada"}}).cost = 30;
  ask({{"user", "ada"}}).cost = 0;
  ask({{"user", "ada"}}).cost = 12;
  EXPECT_FALSE(collect());
  ASSERT_EQ(evaluation_.local.charges().size(), 1U);
  EXPECT_EQ(evaluation_.local.charges()[0].cost, 0U);
  EXPECT_EQ(evaluation_.local.source(0).overdraft, 42U);
  asked_[0].cost = limit::kMaxCost;
  EXPECT_EQ(collect().rule, &rule) << "the sum exceeds the largest cost";
}

TEST_F(Descriptors, QuestionWithMoreChargesThanABillHoldsIsRejected) {
  add("by-user", {"descriptor:user"});
  add("by-ip", {"ip"});
  std::array<char, limit::kMaxCharges> names{};
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = static_cast<char>('A' + i);
    ask({{"user", std::string_view(&names[i], 1)}});
  }
  const auto rejection = collect();
  EXPECT_EQ(rejection.rule, &rules_[1]);
  EXPECT_TRUE(rejection.too_many_rules);
  rules_.pop_back();
  EXPECT_EQ(charged().size(), limit::kMaxCharges);
}

TEST_F(Descriptors, LogsShowTheRefusedDescriptorOfARuleThatChargesSeveralDescriptors) {
  add("by-user", {"descriptor:user"});
  add("by-ip", {"ip"});
  ask({{"user", "ada"}});
  ask({{"user", "bob"}});
  EXPECT_FALSE(collect());
  auto outcomes = evaluation_.local.outcomes();
  const Bill* const bills[] = {&evaluation_.local};
  for (auto& outcome : outcomes) outcome.allowed = true;
  EXPECT_EQ(charge_of(bills, rules_[0]), (ChargeRef{bills[0], 0}));
  outcomes[1].allowed = false;
  EXPECT_EQ(charge_of(bills, rules_[0]), (ChargeRef{bills[0], 1}));
  EXPECT_EQ(charge_of(bills, rules_[1]), (ChargeRef{bills[0], 2}));
  EXPECT_EQ(charge_of(bills, rule_of("other", {})), ChargeRef{});
}

TEST_F(Descriptors, FallbackChargesTheLocalShareForTheSameDescriptors) {
  auto& rule = add("by-user", {"descriptor:user"});
  rule.store = Store::Redis;
  ask({{"user", "ada"}});
  ask({{"user", "bob"}});
  EXPECT_FALSE(collect());
  Bill fallback;
  EXPECT_EQ(evaluation_.fall_back(request_, kKeys, fallback), nullptr);
  ASSERT_EQ(fallback.charges().size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto seen = with_descriptor(request_, asked_[i]);
    EXPECT_EQ(fallback.charges()[i].key, name_key(rule, 0, seen, kKeys.table));
    EXPECT_EQ(fallback.source(i).descriptors, 1U << i);
  }
}

TEST_F(Descriptors, DecisionForADescriptorUsesItsChargesAndThoseOfTheWholeQuestion) {
  add("by-user", {"descriptor:user"});
  add("by-path", {"descriptor:path"});
  add("by-ip", {"ip"});
  ask({{"user", "ada"}}, true);
  ask({{"path", "/"}}, true);
  ask({{"tenant", "x"}}, true);
  EXPECT_EQ(charged(), (Charged{{"by-user", 1}, {"by-path", 2}, {"by-ip", 0}}));
  auto outcomes = evaluation_.local.outcomes();
  for (auto& outcome : outcomes) outcome = {.allowed = true, .remaining = 9};
  const std::array<const Bill*, 1> bills{&evaluation_.local};
  const auto decision = [&](std::size_t descriptor) {
    return decide_for_descriptor(bills, kNow, descriptor);
  };
  outcomes[0].allowed = false;
  EXPECT_EQ(decision(0).verdict, Verdict::Reject);
  EXPECT_EQ(decision(0).rule->name, "by-user");
  outcomes[1].remaining = 5;
  EXPECT_EQ(decision(1).verdict, Verdict::Forward);
  EXPECT_EQ(decision(1).rule->name, "by-path");
  EXPECT_EQ(decision(2).rule->name, "by-ip") << "of the whole question";
  outcomes[2].allowed = false;
  EXPECT_EQ(decision(2).verdict, Verdict::Reject);
}

TEST_F(Descriptors, RemainingUnitsOfAnAdmittedDescriptorIncludeItsCostIfTheQuestionIsRefused) {
  add("by-user", {"descriptor:user"});
  add("by-path", {"descriptor:path"});
  ask({{"user", "ada"}}, true);
  ask({{"path", "/"}}, true).cost = 4;
  EXPECT_EQ(charged(), (Charged{{"by-user", 1}, {"by-path", 2}}));
  auto outcomes = evaluation_.local.outcomes();
  outcomes[0] = {.allowed = true, .remaining = 3};
  outcomes[1] = {.allowed = true, .remaining = 5};
  const std::array<const Bill*, 1> bills{&evaluation_.local};
  const auto remaining = [&](std::size_t descriptor) {
    return decide_for_descriptor(bills, kNow, descriptor).outcome.remaining;
  };
  EXPECT_EQ(remaining(1), 5U);
  outcomes[0].allowed = false;
  EXPECT_EQ(remaining(0), 3U) << "a refusal subtracts nothing";
  EXPECT_EQ(remaining(1), 9U) << "weir has not charged the 4 units";
}

TEST_F(Descriptors, DomainCanBeAConditionAndAPartOfAKey) {
  auto& rule = add("by-domain", {"domain"});
  auto& edge = add("edge", {"ip"});
  edge.match.domains = {"edge", "mesh"};
  EXPECT_EQ(charged(), Charged{});
  EXPECT_EQ(edge.match.why_not(request_), "domain is unknown, but must be among edge, mesh");
  request_.domain = "mesh";
  EXPECT_EQ(charged(), (Charged{{"by-domain", 0}, {"edge", 0}}));
  EXPECT_EQ(describe(key_values(rule, request_)[0]), "domain:mesh");
  EXPECT_EQ(edge.match.describe(), "domain edge mesh");
  request_.domain = "other";
  EXPECT_EQ(charged(), (Charged{{"by-domain", 0}}));
}

TEST_F(Descriptors, ExplanationNamesTheUnmetConditionOfTheDescriptor) {
  auto& rule = add("gold", {"descriptor:user"});
  demand(rule, "plan", "gold");
  EXPECT_EQ(rule.match.describe(), "descriptor plan = gold");
  EXPECT_EQ(describe(rule.key), "[descriptor:user]");
  const auto why = [&] { return check_all(rules_, request_, kKeys)[0].why_not; };
  EXPECT_EQ(why(), "the rule needs a descriptor, which only a question has");
  auto& asked = ask({{"user", "ada"}, {"plan", "tin"}});
  EXPECT_EQ(why(), "the descriptor's plan is absent or not gold");
  asked.entries[1].value = "gold";
  EXPECT_EQ(why(), "");
  const auto check = check_all(rules_, request_, kKeys)[0];
  EXPECT_EQ(check.key, std::vector<std::string>{"descriptor:user:ada"});
  asked.exact = true;
  asked.entries.push_back({"colour", "red"});
  EXPECT_EQ(why(), "the descriptor must have exactly the keys that the rule names: plan, user");
}

TEST_F(Descriptors, ShownKeyOfAClientOmitsSecretDescriptorValues) {
  add("r", {"descriptor:user", "descriptor:api_token", "descriptor:generic_key"});
  ask({{"user", "ada"}, {"api_token", "s3cret"}, {"generic_key", "slow"}});
  std::array<char, 128> room{};
  const RequestOfCharge seen(request_, 1);
  EXPECT_EQ(write_client(room, rules_[0].key, *seen),
            "descriptor:user:ada descriptor:api_token descriptor:generic_key:slow");
  EXPECT_FALSE(is_readable(rules_[0].key));
  EXPECT_TRUE(is_readable(rule_of("r", {"descriptor:user", "domain"}).key));
  EXPECT_EQ(describe(key_values(rules_[0], *seen)[1]).substr(0, 28), "descriptor:api_token:sha256:");
}

TEST_F(Descriptors, TokenIsVerifiedOnlyForDescriptorsThatNeedIt) {
  auto& rule = add("by-claim", {"descriptor:tenant", "claim:sub"});
  request_.client.token = "t";
  EXPECT_FALSE(needs_claims(rule, request_)) << "the rule needs a descriptor";
  ask({{"user", "ada"}}, true);
  EXPECT_FALSE(needs_claims(rule, request_));
  ask({{"tenant", "x"}}, true);
  EXPECT_TRUE(needs_claims(rule, request_));
}

TEST_F(Descriptors, RulesForQuestionsAreNotShownAsUsage) {
  demand(add("gold", {"ip"}), "plan", "gold");
  add("by-ip", {"ip"});
  const auto lines = limits_of_client(rules_, request_, kKeys);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].rule->name, "by-ip");
}

TEST_F(Descriptors, RulesForQuestionsAreNotCountedAsChargesOfEveryRequest) {
  for (std::size_t i = 0; i <= limit::kMaxCharges; ++i) {
    add("r" + std::to_string(i), {"descriptor:user"}).on_missing = OnMissing::Ip;
    add("d" + std::to_string(i), {"ip"}).match.domains = {"edge"};
  }
  EXPECT_EQ(first_beyond(rules_, limit::kMaxCharges), nullptr);
}

}  // namespace
}  // namespace weir::policy
