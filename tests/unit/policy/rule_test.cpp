#include "weir/policy/rule.hpp"

#include "unit/policy/sample.hpp"

#include "weir/policy/explanation.hpp"
#include "weir/policy/rules/applied_limiter.hpp"

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

TEST(KeyPart, EveryAttributeIsParsed) {
  for (const char* text :
       {"ip", "api_key", "user", "org", "tier", "service", "device", "route", "host", "method", "path",
        "country", "cert:subject", "claim:https://example.com/plan", "header:x-tenant", "query:Tenant",
        "cookie:sid", "api_key|user|ip", "header:x-a|ip"}) {
    const auto part = parse_key_part(text);
    ASSERT_TRUE(part) << part.error().message;
    EXPECT_EQ(describe(KeyPattern{*part}), "[" + std::string(text) + "]");
  }
  EXPECT_EQ(describe(KeyPattern{}), "[]");
  EXPECT_EQ(describe({*parse_key_part("api_key|ip"), *parse_key_part("path")}), "[api_key|ip, path]");
}

TEST(KeyPart, HeaderNamesIgnoreCase) {
  EXPECT_EQ(parse_key_part("header:X-Tenant")->front().name, "x-tenant");
}

TEST(KeyPart, ErrorSaysWhatIsWrongWithAKeyPart) {
  const std::pair<const char*, const char*> cases[] = {
      {"apikey", "nearest is \"api_key\""},
      {"api_key|pi", "nearest is \"ip\""},
      {"", "not an attribute"},
      {"ip|", "ends with '|'"},
      {"header", "needs a name"},
      {"query:", "needs a name"},
      {"header:X Tenant", "is not a valid header name"},
      {"ip:v4", "takes no name"},
      {"country:CH", "takes no name"},
      {"claim", "needs a name"},
      {"cert", "cert:subject"},
      {"cert:issuer", "cert:subject"},
      {"|ip", "not an attribute"},
      {"cookie:a b", "is not a valid cookie name"},
      {"cookie:a=b", "is not a valid cookie name"},
      {"cookie:a;b", "is not a valid cookie name"},
      {"cookie:a\x7f", "is not a valid cookie name"},
  };
  for (const auto& [text, why] : cases) {
    const auto part = parse_key_part(text);
    ASSERT_FALSE(part) << text;
    EXPECT_NE(part.error().message.find(why), std::string::npos) << text << ": " << part.error().message;
  }
}

TEST(KeyPart, TellsWhetherAKeyDistinguishesClients) {
  const auto pattern = [](std::initializer_list<const char*> parts) {
    KeyPattern made;
    for (const auto* part : parts) made.push_back(*parse_key_part(part));
    return made;
  };
  for (const auto& key :
       {pattern({}), pattern({"route"}), pattern({"route", "route"}), pattern({"upstream"})})
    EXPECT_TRUE(names_nobody(key)) << describe(key);
  for (const auto& key :
       {pattern({"ip"}), pattern({"route", "tier"}), pattern({"route|ip"}), pattern({"country"}),
        pattern({"header:x-tenant"}), pattern({"host"}), pattern({"method"}), pattern({"path"}),
        pattern({"host|route"}), pattern({"route", "path"})})
    EXPECT_FALSE(names_nobody(key)) << describe(key);
}

TEST(AppliedLimiter, OverrideTakesPrecedenceOverTierAndTierOverRule) {
  Rule rule = rule_of("r", {"ip"});
  Match put;
  put.methods = {"PUT"};
  rule.overrides.push_back({.tier = {}, .match = put, .limiter = bucket(1, 1), .local_share = bucket(2, 2)});
  put.methods = {"PUT", "POST"};
  rule.overrides.push_back({.tier = {}, .match = put, .limiter = bucket(3, 3)});
  rule.tiers.push_back({.tier = "free", .limiter = bucket(4, 4)});
  rule.tiers.push_back({.tier = "pro", .limiter = bucket(5, 5)});
  auto head = head_with({});
  auto request = request_of(head);
  const auto expect = [&](const limit::Limiter& limiter, unsigned variant) {
    const auto applied = applied_limiter(rule, request);
    EXPECT_FALSE(applied.paired);
    EXPECT_EQ(applied.advertised, &limiter);
    EXPECT_EQ(applied.limiter, &limiter);
    EXPECT_EQ(applied.variant, variant);
    return local_limiter(rule, applied).limiter;
  };
  EXPECT_EQ(expect(rule.limiter, 0), rule.limiter.get());
  request.client.tier = "unheard of";
  expect(rule.limiter, 0);
  request.client.tier = "pro";
  expect(rule.tiers[1].limiter, 4);
  head.method = "POST";
  expect(rule.overrides[1].limiter, 2);
  head.method = "PUT";
  EXPECT_EQ(expect(rule.overrides[0].limiter, 1), rule.overrides[0].local_share->get());
}

TEST(AppliedLimiter, SoftLimitIsEnforcedAndTheNormalLimitIsReported) {
  Rule rule = rule_of("r", {"ip"});
  rule.local_share = bucket(5, 5);
  rule.soft = bucket(10, 11);
  rule.soft_share = bucket(5, 6);
  const auto head = head_with({});
  const auto applied = applied_limiter(rule, request_of(head));
  EXPECT_EQ(applied.limiter, rule.soft->get());
  EXPECT_EQ(applied.advertised, rule.limiter.get());
  EXPECT_FALSE(applied.paired);
  EXPECT_EQ(local_limiter(rule, applied).limiter, rule.soft_share->get());
  EXPECT_EQ(local_limiter(rule, applied).advertised, rule.local_share->get());
}

TEST(AppliedLimiter, ElasticLimitAppliesAtLowLoad) {
  Rule rule = rule_of("r", {"ip"});
  rule.elastic = Elastic{.limiter = bucket(20, 20), .while_load_below = 0.7};
  rule.tiers.push_back({.tier = "free", .limiter = bucket(4, 4)});
  const auto head = head_with({});
  auto request = request_of(head);
  const auto enforced = [&](double load) {
    request.load = load;
    const auto applied = applied_limiter(rule, request);
    EXPECT_TRUE(applied.paired);
    EXPECT_FALSE(applied.counted);
    const auto other = counted_limiter(rule, applied);
    EXPECT_TRUE(other.counted);
    EXPECT_NE(other.limiter, applied.limiter);
    EXPECT_NE(other.elastic, applied.elastic);
    EXPECT_EQ(other.variant, applied.variant);
    return applied.limiter;
  };
  EXPECT_EQ(enforced(0), rule.elastic->limiter.get());
  EXPECT_EQ(enforced(0.69), rule.elastic->limiter.get());
  EXPECT_EQ(enforced(0.7), rule.limiter.get());
  EXPECT_EQ(enforced(1), rule.limiter.get());
  request.client.tier = "free";  // the tier "free" has no elastic limit
  EXPECT_FALSE(applied_limiter(rule, request).paired);
  rule.tiers[0].elastic = Elastic{.limiter = bucket(9, 9), .while_load_below = 1};
  request.load = 0.5;
  const auto tier = applied_limiter(rule, request);
  EXPECT_EQ(tier.limiter, rule.tiers[0].elastic->limiter.get());
  EXPECT_EQ(counted_limiter(rule, tier).limiter, rule.tiers[0].limiter.get());
  EXPECT_EQ(local_limiter(rule, tier).limiter, tier.limiter);
}

// Returns a rule whose `adapt` factor is at least 20 %. The rule admits 10 units at once, or 5 while Redis is
// unreachable. Its tier admits 40 units.
Rule adapting_rule() {
  Rule rule = rule_of("r", {"ip"});
  rule.index = 3;
  rule.local_share = bucket(5, 5);
  rule.tiers.push_back({.tier = "pro", .limiter = bucket(40, 40)});
  rule.adapt = Adapt{.upstream = "api", .terms = {.errors_above = 5, .floor = 4}};
  for (limit::Factor factor = 1; factor < limit::kWholeFactor; ++factor) {
    rule.scaled.emplace_back(limit::scaled(rule.limiter, factor, 1).value());
    rule.scaled_share.emplace_back(limit::scaled(*rule.local_share, factor, 1).value());
    rule.tiers[0].scaled.emplace_back(limit::scaled(rule.tiers[0].limiter, factor, 1).value());
  }
  return rule;
}

TEST(AppliedLimiter, LimitOfARuleThatAdaptsIsScaledByItsFactor) {
  const auto rule = adapting_rule();
  const auto head = head_with({});
  auto request = request_of(head);
  EXPECT_EQ(applied_limiter(rule, request).limiter, rule.limiter.get()) << "no factors";
  limit::Factors factors;
  request.factors = &factors;
  EXPECT_EQ(applied_limiter(rule, request).limiter, rule.limiter.get());
  factors.set(rule.index, 10);
  const auto half = applied_limiter(rule, request);
  EXPECT_EQ(half.factor, 10);
  EXPECT_EQ(half.advertised, half.limiter) << "clients see the scaled limit";
  EXPECT_EQ(limit::quota(*half.limiter), 5U);
  EXPECT_EQ(limiter_of(rule, 0, false, 10).limiter, half.limiter);
  EXPECT_EQ(limit::quota(*local_limiter(rule, half).limiter), 2U);
  request.client.tier = "pro";
  EXPECT_EQ(limit::quota(*applied_limiter(rule, request).limiter), 20U);
  factors.set(rule.index, 1);
  EXPECT_EQ(limit::quota(*applied_limiter(rule, request).limiter), 8U) << "not below the floor";
  auto plain = rule_of("plain", {"ip"});
  plain.index = rule.index;
  EXPECT_EQ(applied_limiter(plain, request).limiter, plain.limiter.get()) << "does not adapt";
  EXPECT_EQ(limiter_of(plain, 0, false, 10).limiter, plain.limiter.get());
}

TEST(AppliedLimiter, ExplanationShowsThePercentageOfAScaledLimit) {
  const auto rule = adapting_rule();
  const auto applied = limiter_of(rule, 1, false, 7);
  EXPECT_EQ(describe_choice(rule, applied), "tier pro, 35% because upstream api is unwell");
  const auto state = state_of(rule, applied, {1, 2}, limit::step(*applied.limiter, {}, kNow, 1).outcome);
  EXPECT_EQ(state.limiter, "token_bucket 40/s, burst 40") << "the state shows the configured limiter";
  EXPECT_EQ(state.limit, 14U);
  EXPECT_EQ(state.remaining, 13U);
  EXPECT_EQ(describe_choice(rule, limiter_of(rule, 0, false)), "");
}

TEST(AppliedLimiter, LocalShareOfAnElasticLimitIsEnforcedAndReported) {
  Rule rule = rule_of("r", {"ip"});
  rule.local_share = bucket(5, 5);
  rule.elastic = Elastic{.limiter = bucket(20, 20), .local_share = bucket(10, 10), .while_load_below = 0.7};
  const auto head = head_with({});
  auto request = request_of(head);
  request.load = 0;
  const auto elastic = local_limiter(rule, applied_limiter(rule, request));
  EXPECT_TRUE(elastic.elastic);
  EXPECT_EQ(elastic.limiter, rule.elastic->local_share->get());
  EXPECT_EQ(elastic.advertised, rule.elastic->local_share->get())
      << "headers show the limit of the local share";
  const auto own = local_limiter(rule, counted_limiter(rule, elastic));
  EXPECT_EQ(own.limiter, rule.local_share->get());
  EXPECT_EQ(own.advertised, rule.local_share->get());
}

// Log lines contain this digest. weir replay compares it with the digest of the present rule. If both are
// equal, the rule still reads the same parts of a request.
TEST(RuleDigest, DigestChangesWithConditionsKeyAndCostButNotWithTheLimit) {
  Rule rule = rule_of("r", {"ip"});
  rule.cost_from = {CostSource::Kind::Header, "x-cost", 0};
  rule.overrides.push_back({.tier = {}, .limiter = bucket(1, 1)});
  rule.tiers.push_back({.tier = "pro", .limiter = bucket(1, 1)});
  rule.settlement = Settlement{};
  const auto asks = digest_of_asks(rule);
  const auto changed = [&](auto change) {
    Rule other = rule;
    change(other);
    return digest_of_asks(other) != asks;
  };
  EXPECT_FALSE(changed([](Rule& r) { r.limiter = bucket(9, 9); })) << "numbers may change";
  EXPECT_FALSE(changed([](Rule& r) { r.mode = Mode::Shadow; }));
  EXPECT_FALSE(changed([](Rule& r) { r.name = "s"; }));
  EXPECT_TRUE(changed([](Rule& r) { r.match.methods = {"PUT"}; }));
  EXPECT_TRUE(changed([](Rule& r) { r.key.clear(); }));
  EXPECT_TRUE(changed([](Rule& r) { r.on_missing = OnMissing::Ip; }));
  EXPECT_TRUE(changed([](Rule& r) { r.store = Store::Redis; }));
  EXPECT_TRUE(changed([](Rule& r) { r.cost_from.name = "x-other"; }));
  EXPECT_TRUE(changed([](Rule& r) { r.cost_from.scale = 100; }));
  EXPECT_TRUE(changed([](Rule& r) { r.cost = 7; })) << "the cost of requests that state no cost";
  EXPECT_TRUE(changed([](Rule& r) { r.max_body = 7; }));
  EXPECT_TRUE(changed([](Rule& r) { r.overrides[0].match.methods = {"PUT"}; }));
  EXPECT_TRUE(changed([](Rule& r) { r.tiers[0].tier = "free"; }));
  EXPECT_TRUE(changed([](Rule& r) { r.settlement.reset(); }));
  EXPECT_TRUE(changed([](Rule& r) { r.settlement->charged = {{200, 299}}; }));
  EXPECT_TRUE(changed([](Rule& r) { r.settlement->charged_calls = 1; }));
  EXPECT_TRUE(changed([](Rule& r) { r.settlement->kind = Settlement::Kind::Header; }));
  EXPECT_TRUE(changed([](Rule& r) { r.settlement->scale = 100; }));
  EXPECT_TRUE(changed([](Rule& r) { r.settlement->max_body = 7; }));
  rule.cost_from = {};
  EXPECT_EQ(digest_of_asks(rule), [&] {
    Rule other = rule;
    other.cost = 7;
    return digest_of_asks(other);
  }()) << "the rule's constant cost is not read from the request";
}

}  // namespace
}  // namespace weir::policy
