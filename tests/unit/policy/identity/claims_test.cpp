#include "weir/policy/claims.hpp"

#include "unit/policy/identity/token_sample.hpp"
#include "unit/policy/sample.hpp"

#include "weir/policy/evaluation.hpp"

#include <memory>

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

// A request with this bearer token. The settings read `user` from the claim `sub`.
struct Asked {
  explicit Asked(const std::string& token) : authorization("Bearer " + token) {
    settings.tokens = TokenVerifier::make({"HS256", kSecret, {}, {}}).value();
    settings.user = {Source::Kind::Claim, "sub"};
    head = token.empty() ? head_with({}) : head_with({{"Authorization", authorization}, {"X-API-Key", "k"}});
    request = request_of(head);
    request.client = identify(settings, ip("203.0.113.7"), head, credentials);
  }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  Rejection collect(const Rule& rule) {
    Evaluation evaluation;
    return evaluation.collect(std::span(&rule, 1), request, kKeys);
  }

  std::string authorization;
  ClientSettings settings;
  Credentials credentials;
  http::RequestHead head;
  Request request;
};

Rule insisting_on(std::initializer_list<std::string_view> parts) {
  auto rule = rule_of("r", parts);
  rule.on_missing = OnMissing::Reject;
  return rule;
}

TEST(NeedsClaims, IsTrueIfTheKeyDependsOnAClaim) {
  Asked asked(signed_token(R"({"sub":"ann"})", kSecret));
  const std::pair<Rule, bool> cases[] = {{rule_of("r", {"ip"}), false},
                                         {rule_of("r", {"claim:sub"}), true},
                                         {rule_of("r", {"user"}), true},
                                         {rule_of("r", {"org"}), false},
                                         {rule_of("r", {"user|ip"}), true},
                                         {rule_of("r", {"ip|user"}), false},
                                         {rule_of("r", {"api_key|user"}), false},
                                         {rule_of("r", {"ip", "user"}), true},
                                         {rule_of("r", {"header:x-none|claim:sub"}), true},
                                         {rule_of("r", {}), false}};
  for (const auto& [rule, needs] : cases) {
    EXPECT_EQ(needs_claims(rule, asked.request), needs) << describe(rule.key);
    EXPECT_EQ(needs_claims(rule.key, asked.request), needs) << describe(rule.key);
  }
}

TEST(NeedsClaims, IsFalseForRulesThatCannotApply) {
  Asked asked(signed_token(R"({"sub":"ann"})", kSecret));
  auto rule = rule_of("r", {"user"});
  rule.match.path = PathMatch::parse("/elsewhere").value();
  EXPECT_FALSE(needs_claims(rule, asked.request));
  rule.match.path = PathMatch::parse("/*").value();
  EXPECT_TRUE(needs_claims(rule, asked.request));
}

TEST(NeedsClaims, IsTrueIfAQueueNamesItsClientsByAClaim) {
  Asked asked(signed_token(R"({"sub":"ann"})", kSecret));
  auto rule = rule_of("r", {"ip"});
  rule.limiter = limit::LeakyBucket::make({10, base::Duration(1'000'000)}, 5, base::kForever).value();
  EXPECT_TRUE(needs_claims(rule, asked.request));
  asked.request.client.key_vouched = true;  // the queue uses the verified API key, not a claim
  EXPECT_FALSE(needs_claims(rule, asked.request));
}

// Returns a rule with key "ip" and this condition on a claim.
Rule asking_for(const std::string& name, const std::string& pattern) {
  auto rule = rule_of("r", {"ip"});
  rule.match.claims = {{name, TextMatch::parse(pattern).value()}};
  return rule;
}

TEST(NeedsClaims, IsTrueIfTheTokenDecidesWhetherTheRuleApplies) {
  Asked asked(signed_token(R"({"sub":"ann","plan":"gold"})", kSecret));
  const auto rule = asking_for("plan", "gold");
  EXPECT_TRUE(needs_claims(rule, asked.request));
  EXPECT_EQ(rule.match.known(asked.request), Match::Known::Open);
  EXPECT_FALSE(rule.match.holds(asked.request)) << "an unverified token meets no condition";
  auto negated = rule_of("r", {"ip"});
  negated.match.negated = std::make_shared<const Match>(rule.match);
  EXPECT_TRUE(needs_claims(negated, asked.request));
  auto overriding = rule_of("r", {"ip"});
  overriding.overrides.push_back({.tier = {}, .match = rule.match, .limiter = overriding.limiter});
  EXPECT_TRUE(needs_claims(overriding, asked.request));
  auto elsewhere = rule;
  elsewhere.match.path = PathMatch::parse("/elsewhere").value();
  EXPECT_FALSE(needs_claims(elsewhere, asked.request));

  EXPECT_EQ(verify_token(asked.request.client, asked.credentials), std::nullopt);
  EXPECT_EQ(rule.match.known(asked.request), Match::Known::Yes);
  EXPECT_TRUE(rule.match.holds(asked.request));
  EXPECT_FALSE(negated.match.holds(asked.request));
  EXPECT_FALSE(needs_claims(rule, asked.request));
}

TEST(NeedsClaims, IsTrueIfTheTokenDecidesTheTier) {
  Asked asked(signed_token(R"({"sub":"ann","plan":"gold"})", kSecret));
  auto tiered = rule_of("r", {"ip"});
  tiered.tiers.push_back({.tier = "gold", .limiter = tiered.limiter});
  auto matching = rule_of("r", {"ip"});
  matching.match.tiers = {"gold"};
  EXPECT_FALSE(needs_claims(tiered, asked.request)) << "tiers come from the keys file";
  EXPECT_EQ(matching.match.known(asked.request), Match::Known::No);
  asked.settings.tier = {Source::Kind::Claim, "plan"};
  EXPECT_TRUE(needs_claims(tiered, asked.request));
  EXPECT_TRUE(needs_claims(matching, asked.request));
  EXPECT_TRUE(needs_claims(rule_of("r", {"tier"}), asked.request));
  EXPECT_FALSE(needs_claims(rule_of("r", {"ip"}), asked.request));
  asked.request.client.tier = "free";  // a tier in the keys file takes precedence over the token
  EXPECT_FALSE(needs_claims(tiered, asked.request));
  EXPECT_FALSE(needs_claims(matching, asked.request));
  asked.request.client.tier = {};
  EXPECT_EQ(verify_token(asked.request.client, asked.credentials), std::nullopt);
  EXPECT_EQ(asked.request.client.tier, "gold");
  EXPECT_TRUE(matching.match.holds(asked.request));
}

TEST(ClaimConditions, MatchStringsNumbersAndElementsOfLists) {
  Asked asked(
      signed_token(R"({"sub":"ann","admin":true,"level":5,"groups":["ops",7,["x"]],"scope":"read write",)"
                   R"("title":"read write","none":null,"deep":{"a":"b"}})",
                   kSecret));
  EXPECT_EQ(verify_token(asked.request.client, asked.credentials), std::nullopt);
  const auto holds = [&](const std::string& name, const std::string& pattern) {
    return asking_for(name, pattern).match.holds(asked.request);
  };
  for (const auto& [name, pattern] : std::vector<std::pair<const char*, const char*>>{{"sub", "ann"},
                                                                                      {"sub", "~^a"},
                                                                                      {"admin", "true"},
                                                                                      {"level", "5"},
                                                                                      {"groups", "ops"},
                                                                                      {"groups", "7"},
                                                                                      {"groups", "~^op"},
                                                                                      {"scope", "write"},
                                                                                      {"scope", "read write"},
                                                                                      {"scope", "~^wri"}})
    EXPECT_TRUE(holds(name, pattern)) << name << pattern;
  for (const auto& [name, pattern] : std::vector<std::pair<const char*, const char*>>{{"sub", "an"},
                                                                                      {"SUB", "ann"},
                                                                                      {"groups", "x"},
                                                                                      {"groups", "ops7"},
                                                                                      {"scope", "rite"},
                                                                                      {"scope", "~^$"},
                                                                                      {"title", "write"},
                                                                                      {"none", "~"},
                                                                                      {"deep", "~"},
                                                                                      {"missing", "~"}})
    EXPECT_FALSE(holds(name, pattern)) << name << pattern;
  auto both = asking_for("groups", "ops");
  both.match.claims.push_back({"level", TextMatch::present()});
  EXPECT_TRUE(both.match.holds(asked.request));
  both.match.claims.push_back({"missing", TextMatch::present()});
  EXPECT_EQ(both.match.why_not(asked.request), "the claim missing is absent");
  EXPECT_EQ(both.match.describe(), "claim groups = ops, claim level present, claim missing present");
}

TEST(ClaimConditions, RejectedTokenMeetsNoCondition) {
  Asked forged(signed_token(R"({"plan":"gold"})", "another secret of the same length, 32"));
  const auto rule = asking_for("plan", "gold");
  EXPECT_EQ(verify_token(forged.request.client, forged.credentials), TokenFault::Signature);
  EXPECT_EQ(rule.match.known(forged.request), Match::Known::No);
  EXPECT_EQ(rule.match.why_not(forged.request), "no token is valid, so the claim plan is absent or not gold");
  Asked without("");
  EXPECT_FALSE(rule.match.holds(without.request));
}

TEST(NeedsClaims, IsFalseIfThereIsNoTokenOrTheTokenWasVerifiedBefore) {
  const auto rule = rule_of("r", {"user"});
  Asked asked(signed_token(R"({"sub":"ann"})", kSecret));
  EXPECT_EQ(verify_token(asked.request.client, asked.credentials), std::nullopt);
  EXPECT_FALSE(needs_claims(rule, asked.request));
  Asked forged("a.b.c");
  EXPECT_EQ(verify_token(forged.request.client, forged.credentials), TokenFault::Malformed);
  EXPECT_FALSE(needs_claims(rule, forged.request));
  Asked without("");
  EXPECT_FALSE(needs_claims(rule, without.request));
}

TEST(CollectUnverified, RulesThatNeedClaimsAreLeftOut) {
  Asked asked(signed_token(R"({"sub":"ann"})", kSecret));
  const std::vector<Rule> rules = {insisting_on({"claim:sub"}), rule_of("by-ip", {"ip"})};
  Evaluation evaluation;
  EXPECT_FALSE(evaluation.collect_unverified(rules, asked.request, kKeys));
  ASSERT_EQ(evaluation.local.charges().size(), 1U);
  EXPECT_EQ(evaluation.local.source(0).rule->name, "by-ip");
  EXPECT_EQ(verify_token(asked.request.client, asked.credentials), std::nullopt);
  EXPECT_FALSE(evaluation.collect(rules, asked.request, kKeys));
  EXPECT_EQ(evaluation.local.charges().size(), 2U);
}

TEST(RejectionReason, ReasonSaysWhyTheTokenIsRejected) {
  Asked expired(signed_token(R"({"sub":"ann","exp":-1})", kSecret));
  (void)verify_token(expired.request.client, expired.credentials);
  const auto rule = insisting_on({"user"});
  const auto rejection = expired.collect(rule);
  EXPECT_EQ(rejection.token, TokenFault::Expired);
  EXPECT_EQ(status_of(rejection), 401U);
  EXPECT_EQ(describe(rejection), "the bearer token is invalid: the token has expired");
}

TEST(RejectionReason, MissingTokenAndMissingClaimHaveDifferentReasons) {
  Asked without("");
  EXPECT_EQ(without.collect(insisting_on({"claim:sub"})).token, TokenFault::Missing);
  Asked other(signed_token(R"({"sub":"ann"})", kSecret));
  (void)verify_token(other.request.client, other.credentials);
  EXPECT_EQ(other.collect(insisting_on({"claim:plan"})).token, TokenFault::Claim);
  EXPECT_EQ(other.collect(insisting_on({"org"})).token, std::nullopt)
      << "no token could have named the organisation";
}

}  // namespace
}  // namespace weir::policy
