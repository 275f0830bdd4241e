// Tests which requests make weir read their body, and what a rule does if weir cannot read the body.
#include "weir/policy/inspection.hpp"

#include "unit/policy/sample.hpp"

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

using State = RequestBody::State;
using Known = Match::Known;

Match words(std::initializer_list<std::string> some, std::uint64_t max_body = 100) {
  Match match;
  match.body_words = some;
  match.max_body = max_body;
  return match;
}

Match path(std::string_view pattern) {
  Match match;
  match.path = PathMatch::parse(pattern).value();
  return match;
}

Match both(Match match, const Match& with_words) {
  match.body_words = with_words.body_words;
  match.max_body = with_words.max_body;
  return match;
}

Match negation(Match negated, Match match = {}) {
  match.max_body = std::max(match.max_body, negated.max_body);
  match.negated = std::make_shared<const Match>(std::move(negated));
  return match;
}

class Inspection : public testing::Test {
 protected:
  void body(std::string_view text, State state = State::Whole) { request_.body = {state, text}; }
  Rejection collect() { return evaluation_.collect(rules_, request_, kKeys); }
  std::size_t lines() const { return evaluation_.local.charges().size(); }
  void only(Match match) {
    rules_ = {rule_of("words", {"ip"})};
    rules_[0].max_body = match.max_body;
    rules_[0].match = std::move(match);
  }
  void cost_in_json() {
    rules_[0].cost_from = {CostSource::Kind::Json, "/n", 0};
    rules_[0].max_body = 100;
  }

  http::RequestHead head_ = head_with({});
  Request request_ = request_of(head_);
  std::vector<Rule> rules_ = {rule_of("plain", {"ip"})};
  Evaluation evaluation_;
};

TEST_F(Inspection, ResultOfAMatchIsUndecidedWhileItDependsOnTheBody) {
  request_.path = "/messages";
  EXPECT_EQ(path("/messages").known(request_), Known::Yes);
  EXPECT_EQ(words({"free"}).known(request_), Known::Open);
  EXPECT_EQ(both(path("/messages"), words({"free"})).known(request_), Known::Open);
  EXPECT_EQ(both(path("/other"), words({"free"})).known(request_), Known::No);
  EXPECT_EQ(negation(words({"free"})).known(request_), Known::Open);
  EXPECT_EQ(negation(both(path("/other"), words({"free"}))).known(request_), Known::Yes);
  EXPECT_EQ(negation(path("/messages"), words({"free"})).known(request_), Known::No);
  EXPECT_EQ(negation(path("/other"), words({"free"})).known(request_), Known::Open);
  EXPECT_EQ(negation(negation(words({"free"}))).known(request_), Known::Open);
}

// Property: if the head alone decides whether the conditions hold, the result is the same for every body.
TEST_F(Inspection, ResultOfAMatchThatTheHeadDecidesIsTheSameForEveryBody) {
  request_.path = "/messages";
  const Match parts[] = {path("/messages"), path("/other"), words({"free"}),
                         both(path("/messages"), words({"free"})), both(path("/other"), words({"free"}))};
  for (const auto& part : parts)
    for (const auto& inner : parts) {
      const auto match = negation(inner, part);
      const auto holds = [&](std::string_view text) {
        body(text);
        return match.holds(request_);
      };
      const auto known = match.known(request_);
      if (known == Known::Open) continue;
      EXPECT_EQ(holds("free"), known == Known::Yes) << match.describe();
      EXPECT_EQ(holds("dear"), known == Known::Yes) << match.describe();
    }
}

TEST_F(Inspection, RulesWithoutBodyWordsNeedNoBody) {
  EXPECT_EQ(wanted_body(rules_, request_), 0U);
  EXPECT_FALSE(collect());  // weir decides without reading the body
  EXPECT_EQ(lines(), 1U);
}

TEST_F(Inspection, BodyIsReadUpToTheLargestBoundOfTheRulesThatMayApply) {
  rules_ = {rule_of("a", {"ip"}), rule_of("b", {"ip"}), rule_of("c", {"ip"})};
  rules_[0].match = words({"free"}, 10);
  rules_[0].max_body = 10;
  rules_[1].match = both(path("/messages"), words({"free"}, 1000));
  rules_[1].max_body = 1000;
  rules_[2].cost_from = {CostSource::Kind::Json, "/n", 0};
  rules_[2].max_body = 100;
  EXPECT_EQ(wanted_body(rules_, request_), 100U);  // the path excludes the rule that needs 1000 bytes
  request_.path = "/messages";
  EXPECT_EQ(wanted_body(rules_, request_), 1000U);
}

TEST_F(Inspection, BodyIsNotReadForARuleThatSkipsTheRequestBecauseItsKeyIsMissing) {
  only(words({"free"}));
  rules_[0].key = {parse_key_part("user").value()};
  EXPECT_EQ(wanted_body(rules_, request_), 0U);
  rules_[0].on_missing = OnMissing::Ip;
  EXPECT_EQ(wanted_body(rules_, request_), 100U);
}

TEST_F(Inspection, BodyIsReadForAnOverrideUnlessAnEarlierOverrideMatchesTheHead) {
  rules_[0].max_body = 100;
  rules_[0].overrides.push_back({.tier = {}, .match = path("/a"), .limiter = bucket(1, 1)});
  rules_[0].overrides.push_back({.tier = {}, .match = words({"free"}), .limiter = bucket(2, 2)});
  EXPECT_EQ(wanted_body(rules_, request_), 100U);
  body("a FREE one");
  EXPECT_FALSE(collect());
  EXPECT_EQ(evaluation_.local.charges()[0].limiter, rules_[0].overrides[1].limiter.get());
  request_.path = "/a";
  EXPECT_EQ(wanted_body(rules_, request_), 0U);
}

TEST_F(Inspection, BodyWordsDecideWhetherARuleApplies) {
  only(words({"free"}));
  body("a free one");
  EXPECT_FALSE(collect());
  EXPECT_EQ(lines(), 1U);
  body("nothing");
  EXPECT_FALSE(collect());
  EXPECT_EQ(lines(), 0U);
  only(negation(words({"free"})));
  EXPECT_FALSE(collect());
  EXPECT_EQ(lines(), 1U);
}

TEST_F(Inspection, CostIsReadFromTheBody) {
  cost_in_json();
  rules_[0].cost = 4;
  body(R"({"n": 12})");
  EXPECT_FALSE(collect());
  EXPECT_EQ(evaluation_.local.charges()[0].cost, 12U);
  body("");
  EXPECT_FALSE(collect());
  EXPECT_EQ(evaluation_.local.charges()[0].cost, 4U);
  body("n=12");
  const auto rejection = collect();
  EXPECT_EQ(status_of(rejection), 400U);
  EXPECT_EQ(describe(rejection),
            "the cost in the json /n cannot be read: the request body is not JSON; send JSON in UTF-8");
}

// If weir accepted unreadable bodies, a long or encoded body would evade a rule, even a rule with negated
// conditions.
TEST_F(Inspection, RuleWithBodyWordsRejectsBodiesThatItCannotRead) {
  for (const auto& match : {words({"free"}), negation(words({"free"}))}) {
    only(match);
    body(std::string_view("free").substr(0, 2), State::TooLong);
    EXPECT_EQ(status_of(collect()), 413U);
    EXPECT_EQ(describe(collect()), "the request body is longer than the 100 bytes that rule words reads");
    const std::string long_one(101, 'x');
    // Another rule reads more than 100 bytes, so weir has the whole body. The rule still reads only 100.
    body(long_one);
    EXPECT_EQ(status_of(collect()), 413U);
    body(std::string_view(long_one).substr(1));
    EXPECT_FALSE(collect());
    body({}, State::Coded);
    EXPECT_EQ(status_of(collect()), 415U);
    EXPECT_EQ(describe(collect()), "rule words cannot read a request body with a Content-Encoding");
    body({}, State::Unread);
    EXPECT_EQ(status_of(collect()), 413U);
    EXPECT_EQ(lines(), 0U);
  }
}

TEST_F(Inspection, RuleThatNeedsNoBodyAcceptsBodiesThatWeirCannotRead) {
  only(both(path("/messages"), words({"free"})));
  body({}, State::TooLong);
  EXPECT_FALSE(collect());
  EXPECT_EQ(lines(), 0U);
  only(words({"free"}));
  rules_[0].mode = Mode::Shadow;  // a shadow rule that cannot read the body does not apply
  EXPECT_FALSE(collect());
  EXPECT_EQ(lines(), 0U);
}

TEST_F(Inspection, DescriptionOfAConditionShowsTheWordsThatTheBodyMustContain) {
  EXPECT_EQ(both(path("/messages"), words({"free", "wire transfer"})).describe(),
            "path /messages, body with \"free\" \"wire transfer\"");
  EXPECT_EQ(negation(words({"free"})).describe(), "not (body with \"free\")");
}

}  // namespace
}  // namespace weir::policy
