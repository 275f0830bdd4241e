// The rules that weir tests for a question, and those that it leaves out.
#include "weir/policy/routing/question_index.hpp"

#include "unit/policy/sample.hpp"

#include "weir/policy/rule_finder.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Demands {
  std::vector<std::string> domains{};
  std::vector<std::pair<std::string, std::string>> values{};  // "*": any value
};

Rule question_rule(std::string name, std::initializer_list<std::string_view> key,
                   const Demands& demands = {}) {
  auto rule = rule_of(std::move(name), key);
  rule.match.domains = demands.domains;
  for (const auto& [wanted, text] : demands.values)
    rule.match.descriptor.push_back(
        {wanted, text == "*" ? TextMatch::present() : TextMatch::parse(text).value()});
  rule.descriptor_keys = descriptor_keys_of(rule);
  return rule;
}

std::vector<std::string> rules_tested(const std::vector<Rule>& rules, std::string_view domain,
                                      const std::vector<Descriptor>& descriptors) {
  const auto head = head_with({});
  auto request = request_of(head);
  request.domain = domain;
  request.descriptors = descriptors;
  RuleFinder::Scratch room;
  std::vector<std::string> names;
  for (const Rule& rule : RuleFinder(rules).find(rules, request, room)) names.push_back(rule.name);
  return names;
}

TEST(QuestionIndex, RequestIsNotMatchedAgainstRulesThatNeedADescriptorOrADomain) {
  std::vector<Rule> rules = {question_rule("a", {"descriptor:user"}), question_rule("every", {"ip"}),
                             question_rule("b", {"ip"}, {.domains = {"edge"}}),
                             question_rule("prefers", {"descriptor:user|ip"}),
                             question_rule("c", {"ip"}, {.values = {{"plan", "*"}}})};
  EXPECT_THAT(rules_tested(rules, "", {}), ElementsAre("every", "prefers"));
}

TEST(QuestionIndex, QuestionIsMatchedAgainstRulesForItsDomainAndRulesForEveryDomain) {
  const std::vector<Rule> rules({question_rule("edge", {"ip"}, {.domains = {"edge"}}),
                                 question_rule("both", {"descriptor:user"}, {.domains = {"edge", "lab"}}),
                                 question_rule("every", {"descriptor:user"}),
                                 question_rule("plain", {"ip"})});
  const std::vector<Descriptor> ada = {{.entries = {{"user", "ada"}}}};
  EXPECT_THAT(rules_tested(rules, "edge", ada), ElementsAre("edge", "both", "every", "plain"));
  EXPECT_THAT(rules_tested(rules, "lab", ada), ElementsAre("both", "every", "plain"));
  EXPECT_THAT(rules_tested(rules, "", ada), ElementsAre("every", "plain"));
  EXPECT_THAT(rules_tested(rules, "edge", {}), ElementsAre("edge", "plain"));
}

TEST(QuestionIndex, QuestionIsMatchedAgainstRulesWhoseDescriptorKeysAndValuesItHas) {
  auto refuses = question_rule("refuses", {"descriptor:user"});
  refuses.on_missing = OnMissing::Reject;
  const std::vector<Rule> rules(
      {question_rule("gold", {"descriptor:user"}, {.values = {{"plan", "gold"}}}),
       question_rule("silver", {"descriptor:user"}, {.values = {{"plan", "silver"}}}),
       question_rule("plans", {"ip"}, {.values = {{"plan", "~^g"}}}),
       question_rule("user", {"descriptor:user"}),
       question_rule("either", {"descriptor:user|descriptor:plan"}),
       question_rule("path", {"descriptor:path"}), refuses});
  EXPECT_THAT(rules_tested(rules, "", {{.entries = {{"plan", "gold"}}}}),
              ElementsAre("gold", "plans", "either", "refuses"));
  EXPECT_THAT(rules_tested(rules, "", {{.entries = {{"user", "a"}}}, {.entries = {{"plan", "silver"}}}}),
              ElementsAre("silver", "plans", "user", "either", "refuses"));
  EXPECT_THAT(rules_tested(rules, "", {{.entries = {{"path", ""}}}}), ElementsAre("refuses"))
      << "an empty value counts as missing";
  EXPECT_THAT(rules_tested(rules, "", {{.entries = {{"plan", "x"}, {"plan", "gold"}}}}),
              ElementsAre("plans", "either", "refuses"))
      << "only the first value of a key counts";
}

TEST(QuestionIndex, QuestionIsNotMatchedAgainstRulesForOtherPathsOfItsDomain) {
  std::vector<Rule> rules;
  for (std::size_t i = 0; i <= MatchIndex::kFew; ++i) {
    rules.push_back(question_rule(std::to_string(i), {"ip"}, {.domains = {"edge"}}));
    rules.back().match.path = PathMatch::parse(i == 3 ? "/*" : "/other/*").value();
  }
  EXPECT_THAT(rules_tested(rules, "edge", {}), ElementsAre("3"));
  EXPECT_THAT(rules_tested(rules, "lab", {}), IsEmpty());
}

class RandomQuestions : public testing::Test {
 protected:
  std::size_t below(std::size_t bound) { return random_() % bound; }
  std::string any_of(const std::vector<std::string>& texts) { return texts[below(texts.size())]; }

  Rule rule(std::string name) {
    Demands demands;
    for (auto i = below(3); i > 0; --i) demands.domains.push_back(any_of({"a", "b", "c"}));
    for (auto i = below(3); i > 0; --i)
      demands.values.emplace_back(any_of(keys_), any_of({"1", "2", "*", "~[12]"}));
    auto made =
        question_rule(std::move(name),
                      {any_of_parts({"ip", "descriptor:k", "descriptor:l", "descriptor:k|descriptor:m",
                                     "descriptor:l|ip", "domain", "user"})},
                      demands);
    constexpr OnMissing kWays[] = {OnMissing::Skip, OnMissing::Skip, OnMissing::Ip, OnMissing::Reject};
    made.on_missing = kWays[below(std::size(kWays))];
    if (below(4) == 0) made.match.path = PathMatch::parse(any_of({"/a", "/b/*", "/*"})).value();
    return made;
  }
  std::vector<Descriptor> descriptors() {
    std::vector<Descriptor> made(below(4));
    const bool exact = below(2) == 0;
    for (auto& one : made) {
      one.exact = exact;
      for (auto i = below(4); i > 0; --i)
        one.entries.push_back({keys_[below(keys_.size())], values_[below(values_.size())]});
    }
    return made;
  }

  std::uint64_t seed_ = std::random_device{}();

 private:
  std::string_view any_of_parts(const std::vector<std::string_view>& parts) {
    return parts[below(parts.size())];
  }
  std::mt19937_64 random_{seed_};
  const std::vector<std::string> keys_ = {"k", "l", "m"};
  const std::vector<std::string> values_ = {"1", "2", "3", ""};
};

// Returns true if the rule charges or refuses the question.
bool concerns(const Rule& rule, const Request& request) {
  Evaluation evaluation;
  return evaluation.collect_rule(rule, request, kKeys) || !evaluation.local.empty();
}

// A question must be charged and refused by the same rules in the same order, whether weir tests all rules or
// only those that the finder returns.
TEST_F(RandomQuestions, AreChargedByTheSameRulesAsIfAllRulesWereTested) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  std::size_t concerned = 0, candidates = 0, tested = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<Rule> rules;
    for (int i = 0; i < 60; ++i) rules.push_back(rule(std::to_string(i)));
    const RuleFinder finder(rules);
    RuleFinder::Scratch room;
    for (int i = 0; i < 50; ++i) {
      const auto head = head_with({});
      const auto asked = descriptors();
      const auto domain = any_of({"", "a", "b"});
      const auto path = any_of({"/a", "/b/c"});
      auto request = request_of(head);
      request.path = path;
      request.domain = domain;
      request.descriptors = asked;
      std::vector<std::string> all, few;
      for (const Rule& one : rules)
        if (concerns(one, request)) all.push_back(one.name);
      for (const Rule& one : finder.find(rules, request, room)) {
        ++candidates;
        if (concerns(one, request)) few.push_back(one.name);
      }
      ASSERT_EQ(few, all) << "domain " << domain << ", " << asked.size() << " descriptors";
      concerned += all.size();
      tested += rules.size();
    }
  }
  EXPECT_GT(concerned, 5'000U);
  EXPECT_LT(candidates, tested / 2) << "the finder returned many rules that do not apply";
}

}  // namespace
}  // namespace weir::policy
