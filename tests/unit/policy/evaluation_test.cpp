#include "weir/policy/evaluation.hpp"

#include "unit/policy/sample.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::policy {
namespace {

using std::chrono::seconds;

class CollectCharges : public testing::Test {
 protected:
  Rejection collect() { return evaluation_.collect(rules_, request_, kKeys); }

  http::RequestHead head_ = head_with({});
  Request request_ = request_of(head_);
  std::vector<Rule> rules_ = {rule_of("a", {"ip"}), rule_of("b", {"user"}), rule_of("c", {"ip"})};
  Evaluation evaluation_;
};

TEST_F(CollectCharges, EachMatchingRuleIsChargedInItsOwnStore) {
  rules_[2].store = Store::Redis;
  rules_[2].index = rules_[2].rule_number = 2;
  rules_[2].cost = 5;
  rules_.push_back(rule_of("d", {"ip"}));
  rules_[3].match.methods = {"POST"};
  EXPECT_FALSE(collect());
  ASSERT_EQ(evaluation_.local.charges().size(), 1U);
  EXPECT_EQ(evaluation_.local.charges()[0].key, name_key(rules_[0], 0, request_, kKeys.table));
  EXPECT_EQ(evaluation_.local.source(0).rule, rules_.data());
  ASSERT_EQ(evaluation_.remote.charges().size(), 1U);
  const auto& charge = evaluation_.remote.charges()[0];
  EXPECT_EQ(charge.key, name_key(rules_[2], 0, request_, kKeys.shared));
  EXPECT_EQ(charge.limiter, rules_[2].limiter.get());
  EXPECT_EQ(charge.cost, 5U);
  EXPECT_EQ(charge.rule, 2U);
  EXPECT_TRUE(charge.enforced);
}

// Checks names in a Redis Cluster (limit/slot_hash.hpp). EachMatchingRuleIsChargedInItsOwnStore checks names
// without a cluster.
TEST_F(CollectCharges, AllKeysOfOneClientHaveTheSameRedisClusterSlot) {
  rules_ = {rule_of("a", {"user"}), rule_of("b", {"path", "user"}),
            rule_of("c", {"ip"}),   rule_of("d", {"api_key|ip"}),
            rule_of("e", {}),       rule_of("f", {}),
            rule_of("g", {"user"})};
  for (std::size_t i = 0; i + 1 < rules_.size(); ++i) rules_[i].store = Store::Redis;
  request_.client.user = "ann";
  NamingKeys keys = kKeys;
  keys.slot_hashes = true;
  EXPECT_FALSE(evaluation_.collect(rules_, request_, keys));
  const auto charges = evaluation_.remote.charges();
  ASSERT_EQ(charges.size(), 6U);
  std::vector<limit::SlotHash> places;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const auto name = *name_key(rules_[i], 0, request_, kKeys.shared);
    places.push_back(limit::slot_hash_of(charges[i].key));
    EXPECT_EQ(charges[i].key, limit::with_slot_hash(name, places.back()))
        << "the rest of the name is unchanged";
  }
  EXPECT_EQ(places[0], places[1]);
  EXPECT_EQ(places[2], places[3]) << "no request has an API key here";
  EXPECT_EQ(places[4], places[5]);
  EXPECT_NE(places[0], places[2]);
  EXPECT_EQ(evaluation_.local.charges()[0].key, name_key(rules_[6], 0, request_, kKeys.table));
}

TEST_F(CollectCharges, ClientWithATierIsChargedByTheLimiterAndTheKeyOfItsTier) {
  rules_.erase(rules_.begin() + 1, rules_.end());
  rules_[0].tiers.push_back({.tier = "pro", .limiter = bucket(50, 200)});
  request_.client.tier = "pro";
  collect();
  EXPECT_EQ(evaluation_.local.charges()[0].limiter, rules_[0].tiers[0].limiter.get());
  EXPECT_EQ(evaluation_.local.charges()[0].key, name_key(rules_[0], 1, request_, kKeys.table));
}

TEST_F(CollectCharges, RequestWithoutARequiredKeyIsRejectedWithoutACharge) {
  rules_[0].store = Store::Redis;
  rules_[1].on_missing = OnMissing::Reject;
  EXPECT_EQ(collect().rule, &rules_[1]);
  EXPECT_TRUE(evaluation_.local.empty());
  EXPECT_TRUE(evaluation_.remote.empty());
  rules_[0].store = Store::Memory;
  rules_[1].mode = Mode::Shadow;  // a shadow rule rejects nothing
  EXPECT_FALSE(collect());
  EXPECT_EQ(evaluation_.local.charges().size(), 2U);
  collect();
  // still two charges, because collect() discards the charges of the previous call
  EXPECT_EQ(evaluation_.local.charges().size(), 2U);
}

TEST_F(CollectCharges, MissingIdentityGets401AndOtherMissingKeyPartsGet400) {
  const std::pair<std::vector<std::string>, unsigned> cases[] = {
      {{"api_key"}, 401},     {{"user"}, 401},         {{"org"}, 401},
      {{"service"}, 401},     {{"claim:sub"}, 401},    {{"cert:subject"}, 401},
      {{"device"}, 400},      {{"country"}, 400},      {{"header:x-a"}, 400},
      {{"query:a"}, 400},     {{"cookie:a"}, 400},     {{"tier"}, 400},
      {{"device|user"}, 401}, {{"ip", "device"}, 400}, {{"api_key|ip", "header:x-a"}, 400}};
  for (const auto& [parts, status] : cases) {
    rules_ = {rule_of("r", {})};
    for (const auto& part : parts) rules_[0].key.push_back(parse_key_part(part).value());
    rules_[0].on_missing = OnMissing::Reject;
    const auto rejection = collect();
    ASSERT_TRUE(rejection);
    EXPECT_EQ(rejection.part, &rules_[0].key.back());
    EXPECT_EQ(status_of(rejection), status) << describe(rules_[0].key);
    EXPECT_EQ(describe(rejection), "the request has nothing that identifies its client");
  }
}

TEST_F(CollectCharges, RequestIsChargedTheCostThatItStates) {
  rules_ = {rule_of("a", {"ip"}), rule_of("b", {"ip"})};
  rules_[0].cost_from = {CostSource::Kind::Header, "X-Cost", 100};
  rules_[0].cost = 4;
  head_ = head_with({{"X-Cost", "0.12"}});
  EXPECT_FALSE(collect());
  EXPECT_EQ(evaluation_.local.charges()[0].cost, 12U);
  EXPECT_EQ(evaluation_.local.charges()[1].cost, 1U);
  head_ = head_with({});
  EXPECT_FALSE(collect());
  EXPECT_EQ(evaluation_.local.charges()[0].cost, 4U);
}

TEST_F(CollectCharges, RejectsAnInvalidCostWithoutCharging) {
  rules_ = {rule_of("a", {"ip"}), rule_of("b", {"ip"})};
  rules_[1].cost_from = {CostSource::Kind::Query, "n", 0};
  head_.query = "n=-1";
  const auto rejection = collect();
  EXPECT_EQ(rejection.rule, &rules_[1]);
  EXPECT_EQ(status_of(rejection), 400U);
  EXPECT_EQ(describe(rejection),
            "the cost in the query n is not a whole number that amounts to 1 to 2147483648");
  EXPECT_TRUE(evaluation_.local.empty());
  rules_[1].mode = Mode::Shadow;
  EXPECT_FALSE(collect());
  EXPECT_EQ(evaluation_.local.charges().size(), 1U);
  rules_[1].mode = Mode::Enforce;
  rules_[1].match.methods = {"POST"};  // a rule that does not apply needs no key
  EXPECT_FALSE(collect());
}

TEST_F(CollectCharges, RejectsARequestThatStatesDifferentCosts) {
  rules_ = {rule_of("a", {"ip"})};
  const auto told = [&](CostSource::Kind kind, Lines lines, std::string_view query) {
    rules_[0].cost_from = {kind, "n", 0};
    head_ = head_with(lines, query);
    const auto rejection = collect();
    EXPECT_EQ(rejection.rule, rules_.data());
    return rejection.ambiguity ? std::string(rejection.ambiguity->place) : std::string();
  };
  EXPECT_EQ(told(CostSource::Kind::Query, {}, "n=1&n=2"), "query parameter");
  EXPECT_EQ(told(CostSource::Kind::Header, {{"n", "1"}, {"N", "2"}}, ""), "header");
  EXPECT_EQ(told(CostSource::Kind::Query, {{"n", "1"}, {"N", "2"}}, "n=x"), "")
      << "the parameter occurs once and is invalid";
  EXPECT_EQ(told(CostSource::Kind::Header, {{"n", "x"}}, "n=1&n=2"), "");
}

// weir writes the message into a JSON text without escaping, so no character in it may need an escape.
TEST_F(CollectCharges, ErrorShowsNamesWithoutUnprintableCharacters) {
  Rejection rejection{.rule = rules_.data()};
  rejection.ambiguity = {"header", "a\x01\x1f \"b\"\\~\x7f\xc3\xa9"};
  EXPECT_EQ(describe(rejection), "the request has several different values for the header a?? ?b??~???");
}

// An override of the rule reads a header. So weir rejects a request with different values of this header.
TEST_F(CollectCharges, RejectsARequestWithDifferentValuesOfAHeaderThatAnOverrideReads) {
  rules_ = {rule_of("a", {"ip"})};
  rules_[0].overrides.push_back({.tier = {}, .limiter = bucket(1, 1)});
  rules_[0].overrides[0].match.headers = {{"x-plan", *TextMatch::parse("pro")}};
  head_ = head_with({{"X-Plan", "free"}, {"X-Plan", "pro"}});
  const auto rejection = collect();
  ASSERT_EQ(rejection.rule, rules_.data());
  ASSERT_TRUE(rejection.ambiguity);
  EXPECT_EQ(status_of(rejection), 400U);
  EXPECT_EQ(describe(rejection), "the request has several different values for the header x-plan");
  EXPECT_TRUE(evaluation_.local.empty());
  head_ = head_with({{"X-Plan", "pro"}, {"X-Plan", "pro"}});
  EXPECT_FALSE(collect());
}

TEST_F(CollectCharges, ErrorSaysWhyAJsonBodyStatesNoCost) {
  rules_ = {rule_of("a", {"ip"})};
  rules_[0].cost_from = {CostSource::Kind::Json, "/n", 0};
  const std::string deep(600, '[');
  const std::pair<std::string_view, std::string> cases[] = {
      {deep,
       "the cost in the json /n cannot be read: the request body has arrays and objects nested more than 512 "
       "deep; send JSON that is nested less"},
      {R"({"n": 1, "n": 1})",
       "the cost in the json /n cannot be read: the request body has a member twice on the way to the cost; "
       "send it once"},
      {R"({"n": 1} x)",
       "the cost in the json /n cannot be read: the request body has more text after its JSON value; send "
       "one value"},
      {R"({"n": 1)",
       "the cost in the json /n cannot be read: the request body ends within its JSON value; send all of it"},
      {"\xef\xbb\xbf{\"n\": 1}",
       "the cost in the json /n cannot be read: the request body begins with a byte order mark, which JSON "
       "does not have; send UTF-8 without it"},
      {"n=12", "the cost in the json /n cannot be read: the request body is not JSON; send JSON in UTF-8"},
      {R"({"n": [1]})", "the cost in the json /n is not a whole number that amounts to 1 to 2147483648"}};
  for (const auto& [body, sentence] : cases) {
    request_.body.text = body;
    EXPECT_EQ(status_of(collect()), 400U) << body;
    EXPECT_EQ(describe(collect()), sentence);
  }
}

// weir writes the message into a JSON text without escaping, so no character in it may need an escape.
TEST_F(CollectCharges, ErrorShowsTheNameOfACostWithoutUnprintableCharacters) {
  rules_ = {rule_of("a", {"ip"})};
  rules_[0].cost_from = {CostSource::Kind::Json, "/\"n\"", 0};
  request_.body.text = R"({"\"n\"": true})";
  EXPECT_THAT(describe(collect()), ::testing::StartsWith("the cost in the json /?n? is not"));
}

TEST_F(CollectCharges, RequestToWhichMoreThan32LimitsApplyIsRejected) {
  rules_.clear();
  for (std::size_t i = 0; i < limit::kMaxCharges; ++i) {
    rules_.push_back(rule_of(std::to_string(i), {"ip"}));
    if (i % 2 == 0)
      rules_.back().store = Store::Redis;  // the maximum applies to the sum of local and Redis charges
  }
  EXPECT_FALSE(collect());
  EXPECT_EQ(evaluation_.local.charges().size() + evaluation_.remote.charges().size(), limit::kMaxCharges);
  rules_.push_back(rule_of("last", {"ip"}));
  const auto rejection = collect();
  EXPECT_TRUE(rejection.too_many_rules);
  EXPECT_EQ(rejection.rule, &rules_.back());
  EXPECT_EQ(status_of(rejection), 503U);
  EXPECT_EQ(describe(rejection), "more than 32 limits apply to the request");
  EXPECT_TRUE(evaluation_.local.empty());
  EXPECT_TRUE(evaluation_.remote.empty());
}

TEST_F(CollectCharges, ShadowRuleIsLeftOutIfEnforcedRulesNeedAllChargesOfARequest) {
  for (const std::size_t shadow : {std::size_t{0}, limit::kMaxCharges}) {
    rules_.clear();
    for (std::size_t i = 0; i <= limit::kMaxCharges; ++i)
      rules_.push_back(rule_of(std::to_string(i), {"ip"}));
    rules_[shadow].mode = Mode::Shadow;
    EXPECT_FALSE(collect()) << shadow;
    const auto charges = evaluation_.local.charges();
    EXPECT_EQ(charges.size(), limit::kMaxCharges);
    EXPECT_TRUE(std::all_of(charges.begin(), charges.end(), [](const auto& one) { return one.enforced; }))
        << shadow;
  }
  rules_.pop_back();
  rules_.front().mode = Mode::Shadow;
  EXPECT_FALSE(collect());
  EXPECT_EQ(evaluation_.local.source(limit::kMaxCharges - 1).rule, rules_.data())
      << "without one of the enforced rules, the bill has room for the shadow rule";
}

TEST_F(CollectCharges, BillHasAtMostItsMaximumNumberOfCharges) {
  Bill bill;
  for (std::size_t i = 0; i < limit::kMaxCharges; ++i) EXPECT_TRUE(bill.add({rules_.data(), {}}, {}));
  EXPECT_FALSE(bill.add({rules_.data(), {}}, {}));
  EXPECT_EQ(bill.outcomes().size(), limit::kMaxCharges);
  bill.clear();
  EXPECT_TRUE(bill.empty());
  EXPECT_TRUE(bill.outcomes().empty());
}

TEST_F(CollectCharges, RemovingChargesFromABillKeepsTheOrderOfTheOthers) {
  Bill bill;
  for (std::size_t i = 0; i < 5; ++i) {
    bill.add({&rules_[i % 3], {}}, {.key = {i, i}, .limiter = nullptr});
    bill.outcomes().back().remaining = 10 * i;
  }
  bill.remove(0b10101);
  ASSERT_EQ(bill.charges().size(), 2U);
  ASSERT_EQ(bill.outcomes().size(), 2U);
  for (const std::size_t i : {0U, 1U}) {
    const std::size_t was = 1 + 2 * i;
    EXPECT_EQ(bill.charges()[i].key, (limit::Key{was, was}));
    EXPECT_EQ(bill.source(i).rule, &rules_[was % 3]);
    EXPECT_EQ(bill.outcomes()[i].remaining, 10 * was);
  }
  bill.remove(limit::all_charges(2));
  EXPECT_TRUE(bill.empty());
  EXPECT_TRUE(bill.outcomes().empty());
}

class FallBack : public CollectCharges {
 protected:
  FallBack() {
    rules_ = {rule_of("a", {"ip"}), rule_of("b", {"ip"})};
    for (auto& rule : rules_) rule.store = Store::Redis;
    rules_[0].cost = 3;
    rules_[0].local_share = bucket(5, 5);
    rules_[1].on_store_failure = OnStoreFailure::Open;
  }
  const Rule* fall_back() {
    collect();
    return evaluation_.fall_back(request_, kKeys, fallback_);
  }

  Bill fallback_;
};

TEST_F(FallBack, RuleChargesItsLocalShareIfOnStoreFailureIsLocalAndNothingIfOpen) {
  EXPECT_EQ(fall_back(), nullptr);
  ASSERT_EQ(fallback_.charges().size(), 1U);
  const auto& charge = fallback_.charges()[0];
  EXPECT_EQ(charge.limiter, rules_[0].local_share->get());
  EXPECT_EQ(fallback_.source(0).applied.limiter, charge.limiter);
  EXPECT_EQ(charge.key, name_key(rules_[0], 0, request_, kKeys.table));
  EXPECT_EQ(charge.cost, 3U);
  EXPECT_EQ(evaluation_.remote.charges().size(), 2U);  // fall_back() leaves `remote` unchanged
}

TEST_F(FallBack, RuleWithoutALocalShareIsChargedByItsWholeLimit) {
  rules_[0].local_share.reset();
  EXPECT_EQ(fall_back(), nullptr);
  EXPECT_EQ(fallback_.charges()[0].limiter, rules_[0].limiter.get());
}

TEST_F(FallBack, RequestIsRejectedWithoutAChargeIfOnStoreFailureIsClosed) {
  rules_[1].on_store_failure = OnStoreFailure::Closed;
  EXPECT_EQ(fall_back(), &rules_[1]);
  EXPECT_TRUE(fallback_.empty());
  rules_[1].mode = Mode::Shadow;
  EXPECT_EQ(fall_back(), nullptr);
  EXPECT_EQ(fallback_.charges().size(), 1U);
}

TEST_F(FallBack, ShadowRuleRefusesNothingEvenIfRedisIsUnavailable) {
  rules_[0].mode = Mode::Shadow;
  EXPECT_EQ(fall_back(), nullptr);
  EXPECT_FALSE(fallback_.charges()[0].enforced);
}

// One Redis node was unreachable. The charges that other nodes answered keep their outcomes.
TEST_F(FallBack, OnlyRulesWhoseRedisNodeIsUnreachableFallBack) {
  constexpr limit::ChargeSet kFirst = 1, kSecond = 2;
  rules_[1].on_store_failure = OnStoreFailure::Closed;
  collect();
  EXPECT_EQ(evaluation_.fall_back(request_, kKeys, fallback_, kFirst), nullptr)
      << "the node of the closed rule replied";
  ASSERT_EQ(fallback_.charges().size(), 1U);
  EXPECT_EQ(fallback_.source(0).rule, rules_.data());
  fallback_.clear();
  EXPECT_EQ(evaluation_.fall_back(request_, kKeys, fallback_, kSecond), &rules_[1]);
  rules_[1].on_store_failure = OnStoreFailure::Local;
  EXPECT_EQ(evaluation_.fall_back(request_, kKeys, fallback_, kSecond), nullptr);
  ASSERT_EQ(fallback_.charges().size(), 1U) << "the other rule was charged in Redis";
  EXPECT_EQ(fallback_.source(0).rule, &rules_[1]);
}

}  // namespace
}  // namespace weir::policy
