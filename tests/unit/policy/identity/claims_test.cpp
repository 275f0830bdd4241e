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

  Objection collect(const Rule& rule) {
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

TEST(NeedsClaims, IsTrueIfTheQueueDistinguishesClientsByAClaim) {
  Asked asked(signed_token(R"({"sub":"ann"})", kSecret));
  auto rule = rule_of("r", {"ip"});
  rule.limiter = limit::LeakyBucket::make({10, base::Duration(1'000'000)}, 5, base::kForever).value();
  EXPECT_TRUE(needs_claims(rule, asked.request));
  asked.request.client.key_vouched = true;  // the queue uses the verified API key, not a claim
  EXPECT_FALSE(needs_claims(rule, asked.request));
}

TEST(NeedsClaims, IsFalseWithoutATokenAndAfterVerification) {
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

TEST(CollectUnverified, OmitsRulesThatNeedClaims) {
  Asked asked(signed_token(R"({"sub":"ann"})", kSecret));
  const std::vector<Rule> rules = {insisting_on({"claim:sub"}), rule_of("by-ip", {"ip"})};
  Evaluation evaluation;
  EXPECT_FALSE(evaluation.collect_unverified(rules, asked.request, kKeys));
  ASSERT_EQ(evaluation.local.charges().size(), 1U);
  EXPECT_EQ(evaluation.local.line(0).rule->name, "by-ip");
  EXPECT_EQ(verify_token(asked.request.client, asked.credentials), std::nullopt);
  EXPECT_FALSE(evaluation.collect(rules, asked.request, kKeys));
  EXPECT_EQ(evaluation.local.charges().size(), 2U);
}

TEST(RejectionReason, SaysWhyTheTokenIsRejected) {
  Asked expired(signed_token(R"({"sub":"ann","exp":-1})", kSecret));
  (void)verify_token(expired.request.client, expired.credentials);
  const auto rule = insisting_on({"user"});
  const auto objection = expired.collect(rule);
  EXPECT_EQ(objection.token, TokenFault::Expired);
  EXPECT_EQ(status_of(objection), 401U);
  EXPECT_EQ(describe(objection), "the bearer token is invalid: the token has expired");
}

TEST(RejectionReason, DistinguishesAMissingTokenFromAMissingClaim) {
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
