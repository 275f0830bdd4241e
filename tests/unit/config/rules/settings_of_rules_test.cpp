// Tests reading of rules' settings: defaults, stores, bodies, tokens, soft and elastic limits, settlements.
#include "unit/config/configuration.hpp"
#include "unit/net/tls.hpp"
#include "unit/policy/country_file.hpp"

#include "weir/config/settings.hpp"
#include "weir/policy/rules/applied_limiter.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string limiter_of(const std::string& more) {
  return limit::describe(parse(with_rule(more)).rules[1].limiter);
}

TEST(Settings, EachAlgorithmHasItsOwnDefaults) {
  EXPECT_EQ(limiter_of("burst = 100\n"), "token_bucket 10/s, burst 100");
  EXPECT_EQ(limiter_of("algorithm = \"gcra\"\n"), "gcra 10/s, burst 0");
  EXPECT_EQ(limiter_of("algorithm = \"gcra\"\nburst = 5\n"), "gcra 10/s, burst 5");
  EXPECT_EQ(limiter_of("algorithm = \"leaky_bucket\"\n"), "leaky_bucket 10/s, queue 10");
  EXPECT_EQ(limiter_of("algorithm = \"leaky_bucket\"\nqueue = 3\nmax_wait = \"2s\"\n"),
            "leaky_bucket 10/s, queue 3, max_wait 2s");
}

TEST(Settings, TierOrOverrideDoesNotInheritTheBurstOfItsRule) {
  const auto rule =
      parse(with_rule("burst = 100\n"
                      "tiers = { free = { limit = \"2/s\" }, pro = { limit = \"50/s\", burst = 200 } }\n"
                      "overrides = [{ match = { path = \"/search\" }, limit = \"1/s\" }]\n"))
          .rules[1];
  ASSERT_EQ(rule.tiers.size(), 2u);
  EXPECT_EQ(rule.tiers[0].tier, "free");
  EXPECT_EQ(limit::describe(rule.tiers[0].limiter), "token_bucket 2/s, burst 2");
  EXPECT_EQ(limit::describe(rule.tiers[1].limiter), "token_bucket 50/s, burst 200");
  ASSERT_EQ(rule.overrides.size(), 1u);
  EXPECT_EQ(limit::describe(rule.overrides[0].limiter), "token_bucket 1/s, burst 1");
}

TEST(Settings, ReadsPrioritiesOfRoutesAndTiers) {
  const auto settings =
      parse(with_rule("algorithm = \"leaky_bucket\"\nqueue_per_client = 3\n"
                      "tiers = { pro = { limit = \"20/s\", priority = 1 }, free = { limit = \"1/s\" } }\n"
                      "[[route]]\nname = \"batch\"\nupstream = \"api\"\npriority = 9\n"
                      "[server]\nmax_in_flight = 50\n"));
  EXPECT_EQ(settings.routes[0].priority, policy::kDefaultPriority);
  EXPECT_EQ(settings.routes[1].priority, 9);
  EXPECT_EQ(settings.tier_priorities, (policy::TierPriorities{{"pro", 1}}));
  EXPECT_EQ(settings.rules[0].queue_per_client, policy::kNoBound);
  EXPECT_EQ(settings.rules[1].queue_per_client, 3U);
  EXPECT_EQ(settings.server.max_in_flight, 50U);
}

TEST(Settings, RateOfALocalShareIsExactlyTheRateOfTheRuleDividedByTheReplicas) {
  const std::string redis = "[state]\nreplicas = 3\nredis = { url = \"redis://a\" }\n";
  const auto share = [&](const std::string& more) {
    return parse(with_rule("store = \"redis\"\n" + more + redis)).rules[1].local_share;
  };
  EXPECT_EQ(limit::describe(*share("burst = 100\n")), "token_bucket 10/3s, burst 33");
  EXPECT_EQ(limit::describe(*share("burst = 2\n")), "token_bucket 10/3s, burst 1");
  EXPECT_EQ(limit::describe(*share("algorithm = \"gcra\"\nburst = 2\n")), "gcra 10/3s, burst 0");
  EXPECT_EQ(limit::describe(*share("algorithm = \"leaky_bucket\"\nqueue = 7\nmax_wait = \"1s\"\n")),
            "leaky_bucket 10/3s, queue 2, max_wait 1s");
  EXPECT_EQ(limit::describe(*share("algorithm = \"leaky_bucket\"\nqueue = 0\n")),
            "leaky_bucket 10/3s, queue 0");
  EXPECT_FALSE(share("on_store_failure = \"open\"\n"));
  EXPECT_FALSE(share("on_store_failure = \"closed\"\n"));
  const auto tiers =
      parse(with_rule("store = \"redis\"\ntiers = { free = { limit = \"9/s\" } }\n" + redis)).rules[1].tiers;
  EXPECT_EQ(limit::describe(*tiers.at(0).local_share), "token_bucket 9/3s, burst 3");
}

TEST(Settings, RuleWithoutAStoreUsesTheStoreOfTheStateSection) {
  const auto rules = parse(with("[state]\nstore = \"redis\"\nredis = { url = \"redis://a\" }\n"
                                "[[rule]]\nname = \"here\"\nlimit = \"1/s\"\nstore = \"memory\"\n"))
                         .rules;
  EXPECT_EQ(rules[0].store, policy::Store::Redis);
  EXPECT_EQ(rules[1].store, policy::Store::Memory);
  EXPECT_EQ(rules[1].index, 1u);
}

TEST(Settings, RuleReadsBodiesUpToTheLargestMaxBodyOfItsConditions) {
  const auto of = [](const std::string& more) { return parse_settings(with_rule(more), kFile).rules[1]; };
  EXPECT_EQ(of("").max_body, 0u);
  const auto words = of("match = { body_contains = [\"Free\", \"Wire Transfer\"] }\n");
  EXPECT_EQ(words.max_body, 65536u);
  EXPECT_EQ(words.match.body_words, (std::vector<std::string>{"free", "wire transfer"}));
  EXPECT_EQ(of("match = { not = { body_contains = \"a\", max_body = 5 } }\n").max_body, 5u);
  EXPECT_EQ(of("overrides = [{ match = { body_contains = \"a\", max_body = \"1MiB\" }, limit = \"1/s\" }]\n")
                .max_body,
            1u << 20);
  const auto cost =
      of("cost = { json = \"/a~1b/0\", default = 3, scale = 100, max_body = \"1KiB\" }\n"
         "match = { body_contains = \"a\", max_body = 5 }\n");
  EXPECT_EQ(cost.max_body, 1024u);
  EXPECT_EQ(cost.cost, 3u);
  EXPECT_EQ(cost.cost_from.kind, policy::CostSource::Kind::Json);
  EXPECT_EQ(cost.cost_from.name, "/a~1b/0");
  EXPECT_EQ(cost.cost_from.scale, 100u);
}

TEST(Settings, RuleWithABodyKeyOrConditionReadsBodiesUpToMaxBody) {
  const auto of = [](const std::string& more) { return parse_settings(with_rule(more), kFile).rules[1]; };
  EXPECT_EQ(of("key = [\"json:/email|form:email\"]\n").max_body, 65536u);
  EXPECT_EQ(of("key = [\"ip\", \"api_key|json:/email\"]\nmax_body = 100\n").max_body, 100u);
  EXPECT_EQ(of("key = [\"json:/a\"]\nmax_body = 100\ncost = { json = \"/b\", max_body = 200 }\n").max_body,
            200u);
  const auto models = of("match = { json = { \"/model\" = \"~^gpt\", \"/n\" = true }, max_body = 300 }\n");
  EXPECT_EQ(models.max_body, 300u);
  EXPECT_EQ(models.match.describe(), "json /model = ~^gpt, json /n present");
}

// weir must not look up facts that no rule uses, because every look-up costs time in each request.
TEST(Settings, TokensAndCountriesAreReadOnlyIfARuleUsesThem) {
  const Folder folder;
  policy::CountryFile countries;
  countries.add("203.0.113.0", 24, "CH");
  folder.write("c.mmdb", countries.bytes());
  const std::string client =
      "[client]\ngeo = \"c.mmdb\"\njwt = { algorithm = \"HS256\", secret = "
      "\"0123456789abcdef0123456789abcdef\" }\n";
  const auto of = [&](const std::string& more) {
    return parse_settings(with_rule(more), folder.file(kFile)).client;
  };
  EXPECT_FALSE(of(client).tokens);
  EXPECT_FALSE(of(client).geo);
  for (const auto* asking : {"key = [\"claim:sub\"]\n", "key = [\"ip\", \"user|claim:sub\"]\n"})
    EXPECT_TRUE(of(asking + client).tokens) << asking;
  EXPECT_TRUE(of(client + "user = { claim = \"sub\" }\n").tokens);
  for (const auto* asking : {"key = [\"country\"]\n", "key = [\"ip\", \"city|region\"]\n",
                             "key = [\"asn\"]\n", "match = { city = \"Geneva\" }\n",
                             "match = { region = \"CH-GE\" }\n", "match = { asn = \"AS3303\" }\n",
                             "match = { country = \"CH\" }\n", "match = { not = { country = [\"CH\"] } }\n",
                             "overrides = [{ match = { country = \"CH\" }, limit = \"1/s\" }]\n",
                             "[[route]]\nname = \"n\"\nmatch = { country = \"CH\" }\nupstream = \"api\"\n"})
    EXPECT_TRUE(of(asking + client).geo) << asking;
}

TEST(Settings, CommonAndConfiguredIdentityFieldsAreBelievedOnlyFromTrustedPeers) {
  const auto of = [](const std::string& client) {
    return parse(with_rule("[client]\n" + client)).client.trusted_fields;
  };
  EXPECT_TRUE(of("").contains("X-Real-IP"));
  EXPECT_FALSE(of("").contains("X-User-ID"));
  const std::string sources =
      "user = { header = \"X-User-ID\" }\norg = { cookie = \"X-Org\" }\ndevice = { header = \"X-Device\" }\n";
  EXPECT_TRUE(of(sources).contains("x_user_id"));
  EXPECT_FALSE(of(sources).contains("X-Org"));
  EXPECT_FALSE(of(sources).contains("X-Device"));
  EXPECT_FALSE(of(sources).contains("X-API-Key"));
  EXPECT_TRUE(of("trusted_fields = [\"X-Auth-*\"]\n").contains("X-Auth-User"));
  EXPECT_TRUE(of("trusted_fields = [\"X-Auth-*\"]\n").contains("X-Real-IP"));
  EXPECT_TRUE(of("trusted_fields = []\n" + sources).empty());
}

TEST(Settings, SoftLimitAddsItsMarginToTheLimit) {
  const auto of = [](const std::string& more) {
    const auto rule = parse(with_rule(more)).rules[1];
    return limit::describe(rule.limiter) + "; " + limit::describe(rule.soft.value());
  };
  EXPECT_EQ(of("soft = \"10%\"\n"), "token_bucket 10/s, burst 10; token_bucket 10/s, burst 11");
  EXPECT_EQ(of("burst = 19\nsoft = \"10%\"\n"), "token_bucket 10/s, burst 19; token_bucket 10/s, burst 20");
  EXPECT_EQ(of("algorithm = \"gcra\"\nburst = 9\nsoft = \"10%\"\n"),
            "gcra 10/s, burst 9; gcra 10/s, burst 10");
  const auto tiered =
      parse(with_rule("soft = \"50%\"\ntiers = { free = { limit = \"2/s\" }, pro = { limit = "
                      "\"4/s\", soft = \"25%\" } }\n"));
  const auto& tiers = tiered.rules[1].tiers;
  EXPECT_FALSE(tiers.at(0).soft);  // a tier does not inherit the soft limit
  EXPECT_EQ(limit::describe(tiers.at(1).soft.value()), "token_bucket 4/s, burst 5");
  const auto shared =
      parse(with_rule("store = \"redis\"\nburst = 20\nsoft = \"50%\"\n[state]\nreplicas = 2\nredis = { url = "
                      "\"redis://a\" }\n"));
  EXPECT_EQ(limit::describe(shared.rules[1].soft_share.value()), "token_bucket 10/2s, burst 15");
}

TEST(Settings, ReadsAnElasticLimit) {
  const auto rule =
      parse(with_rule("elastic = { limit = \"20/s\", burst = 50, while_load_below = 0.7 }\n")).rules[1];
  ASSERT_TRUE(rule.elastic);
  EXPECT_EQ(limit::describe(rule.elastic->limiter), "token_bucket 20/s, burst 50");
  const auto wide =
      parse(with_rule("burst = 70\nelastic = { limit = \"20/s\", while_load_below = 0.7 }\n")).rules[1];
  EXPECT_EQ(limit::describe(wide.elastic->limiter), "token_bucket 20/s, burst 70")
      << "the burst of the rule, which is larger";
  EXPECT_EQ(rule.elastic->while_load_below, 0.7);
  EXPECT_EQ(limit::describe(rule.limiter), "token_bucket 10/s, burst 10");
}

// A request is charged once for each rule that matches, but twice for a rule with an elastic limit. The
// number of charges is bounded.
TEST(Settings, RuleWithAnElasticLimitCountsAsTwoRulesTowardsTheMaximum) {
  std::string text = kLeast;
  for (int i = 0; i < 15; ++i)
    text += "[[rule]]\nname = \"" + std::to_string(i) +
            "\"\nlimit = \"1/s\"\nelastic = { limit = \"2/s\", while_load_below = 1 }\n";
  text += "[[rule]]\nname = \"one\"\nlimit = \"1/s\"\n";
  EXPECT_THAT(mistakes_in(text), IsEmpty());
  EXPECT_THAT(mistakes_in(text + "[[rule]]\nname = \"last\"\nlimit = \"1/s\"\n"),
              ElementsAre(HasSubstr("weir.toml:74: rule[last]: found more than 32 limits")));
}

TEST(Settings, ReadsHowResponsesSettleACharge) {
  const auto rule = parse(with_rule("burst = 50\ncharge = { status = [\"401\", \"5xx\", \"300-303\"] }\n"
                                    "cost = { response_json = \"/usage/total\", reserve = 50, scale = 10, "
                                    "max_body = \"4KiB\" }\n"))
                        .rules[1];
  ASSERT_TRUE(rule.settlement);
  EXPECT_THAT(rule.settlement->charged,
              ElementsAre(policy::StatusRange{401, 401}, policy::StatusRange{500, 599},
                          policy::StatusRange{300, 303}));
  EXPECT_EQ(rule.settlement->kind, policy::Settlement::Kind::Json);
  EXPECT_THAT(rule.settlement->terms, ElementsAre(policy::CostTerm{{"/usage/total"}}));
  EXPECT_EQ(rule.settlement->scale, 10U);
  EXPECT_EQ(rule.settlement->max_body, 4096U);
  EXPECT_EQ(rule.cost, 50U);
  EXPECT_FALSE(parse(with_rule("cost = 3\n")).rules[1].settlement);
  const auto by_call = parse(with_rule("charge = { grpc_status = [\"OK\", \"16\"] }\n")).rules[1];
  EXPECT_EQ(by_call.settlement->charged_calls, 0x10001U);
  EXPECT_TRUE(by_call.settlement->charged.empty());
  const auto by_header =
      parse(with_rule("cost = { response_header = \"X-Tokens\", reserve = 9 }\n")).rules[1];
  EXPECT_EQ(by_header.settlement->kind, policy::Settlement::Kind::Header);
  EXPECT_TRUE(by_header.settlement->charged.empty());
}

TEST(Settings, ReadsACostInBytes) {
  const auto of = [](const std::string& cost) {
    return parse(with_rule("burst = 50\ncost = { " + cost + " }\n")).rules[1];
  };
  using Kind = policy::CostSource::Kind;
  const auto response = of("bytes = \"response\"");
  EXPECT_EQ(response.settlement->kind, policy::Settlement::Kind::Bytes);
  EXPECT_EQ(response.settlement->bodies, policy::Bodies::Response);
  EXPECT_EQ(response.settlement->per, 1024U);
  EXPECT_EQ(response.cost, 1U);
  EXPECT_EQ(response.cost_from.kind, Kind::None);
  const auto both = of("bytes = \"both\", per = \"1MiB\"");
  EXPECT_EQ(both.settlement->bodies, policy::Bodies::Both);
  EXPECT_EQ(both.settlement->per, 1U << 20U);
  EXPECT_EQ(both.cost_from.kind, Kind::Length) << "reserves the Content-Length of the request";
  EXPECT_EQ(both.cost_from.per, 1U << 20U);
  const auto reserved = of("bytes = \"request\", reserve = 7");
  EXPECT_EQ(reserved.settlement->bodies, policy::Bodies::Request);
  EXPECT_EQ(reserved.cost_from.kind, Kind::None);
  EXPECT_EQ(reserved.cost, 7U);
}

TEST(Settings, ReadsAlternativesSumsAndWeightsOfACost) {
  const auto terms = [](const std::string& value) {
    const auto rule = "burst = 50\ncost = { response_json = " + value + ", reserve = 5 }\n";
    return parse(with_rule(rule)).rules[1].settlement->terms;
  };
  constexpr auto kOne = policy::CostTerm::kOne;
  EXPECT_THAT(terms("\"/a|/b/c\""), ElementsAre(policy::CostTerm{{"/a", "/b/c"}}));
  EXPECT_THAT(terms("[\"/a\", \"/b|/c\"]"),
              ElementsAre(policy::CostTerm{{"/a"}}, policy::CostTerm{{"/b", "/c"}}));
  EXPECT_THAT(
      terms("{ \"/a\" = 4, \"/b|/c\" = 0.15, \"/d\" = 0.000001, \"/e\" = 1e6, \"/f\" = 999999.999999 }"),
      ElementsAre(policy::CostTerm{{"/a"}, 4 * kOne}, policy::CostTerm{{"/b", "/c"}, 150'000},
                  policy::CostTerm{{"/d"}, 1}, policy::CostTerm{{"/e"}, kOne * kOne},
                  policy::CostTerm{{"/f"}, 999'999'999'999}));
}

TEST(Settings, ReadsTheEstimateOfAStream) {
  const auto stream = [](const std::string& value) {
    const auto rule = "cost = { response_json = \"/a\", reserve = 5, stream = " + value + " }\n";
    return parse(with_rule("burst = 50\n" + rule)).rules[1].settlement->stream;
  };
  EXPECT_EQ(stream("{}"), (policy::StreamEstimate{1, false}));
  EXPECT_EQ(stream("{ per_event = 3, cut = true }"), (policy::StreamEstimate{3, true}));
  EXPECT_FALSE(
      parse(with_rule("cost = { response_json = \"/a\", reserve = 5 }\n")).rules[1].settlement->stream);
}

TEST(Settings, ReservedCostMayBeAnAmountInTheRequest) {
  const auto rule =
      parse(with_rule("burst = 50\ncost = { response_json = \"/n\", max_body = \"4KiB\", reserve = "
                      "{ json = \"/a|/b\", default = 20, most = 40 } }\n"))
          .rules[1];
  EXPECT_EQ(rule.cost_from.kind, policy::CostSource::Kind::Reserve);
  EXPECT_THAT(rule.cost_from.terms, ElementsAre(policy::CostTerm{{"/a", "/b"}}));
  EXPECT_EQ(rule.cost_from.most, 40U);
  EXPECT_EQ(rule.cost, 20U);
  EXPECT_EQ(rule.max_body, 4096U) << "of the request";
  EXPECT_EQ(rule.settlement->max_body, 4096U) << "of the answer";
  const auto by_header = parse(with_rule("burst = 50\ncost = { response_header = \"X-N\", reserve = { json = "
                                         "{ \"/a\" = 4 }, default = 20 } }\n"))
                             .rules[1];
  EXPECT_THAT(by_header.cost_from.terms, ElementsAre(policy::CostTerm{{"/a"}, 4 * policy::CostTerm::kOne}));
  EXPECT_EQ(by_header.cost_from.most, limit::kMaxCost);
  EXPECT_EQ(by_header.max_body, 64U << 10U);
}

}  // namespace
}  // namespace weir::config::test
