// Mistakes in `adapt` of a rule, and what a valid `adapt` makes of the rule.
#include "unit/config/configuration.hpp"
#include "unit/config/wrong_configuration.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kBeforeTheLines =
    "[[listener]]\naddress = \"127.0.0.1:8080\"\n[[upstream]]\nname = \"api\"\nservers = "
    "[\"127.0.0.1:9001\"]\n[[route]]\nupstream = \"api\"\n[[rule]]\nname = \"x\"\n";

// Returns a configuration whose rule has these lines; line 10 is the first of them.
std::string with_lines(const std::string& lines) {
  return kBeforeTheLines + lines;
}

const std::string kAdaptToApi = "adapt = { upstream = \"api\", errors_above = \"5%\" }\n";

TEST(AdaptMistakes, ErrorNamesAnUnknownUpstream) {
  EXPECT_THAT(
      mistakes_in(with_lines("limit = \"10/s\"\nadapt = { upstream = \"apii\", errors_above = \"5%\" }\n")),
      ElementsAre("weir.toml:11: rule[x].adapt.upstream: found \"apii\", which is no upstream; "
                  "expected one of \"api\""));
}

TEST(AdaptMistakes, ErrorAsksForABoundOnLatencyOrErrors) {
  EXPECT_THAT(mistakes_in(with_lines("limit = \"10/s\"\nadapt = { upstream = \"api\" }\n")),
              ElementsAre("weir.toml:11: rule[x].adapt: found no sign of an unwell upstream; expected "
                          "latency_above = \"500ms\", errors_above = \"5%\" or both"));
}

TEST(AdaptMistakes, ErrorNamesAPercentageOutOfRange) {
  for (const auto* share : {"0%", "100%", "100", "5.5%", "%", ""})
    EXPECT_THAT(mistakes_in(with_lines("limit = \"10/s\"\nadapt = { upstream = \"api\", errors_above = \"" +
                                       std::string(share) + "\" }\n")),
                ElementsAre("weir.toml:11: rule[x].adapt.errors_above: found \"" + std::string(share) +
                            "\"; expected a share from \"1%\" to \"99%\""));
  for (const auto* share : {"0%", "100%", "22%", "22"})
    EXPECT_THAT(mistakes_in(with_lines(
                    "limit = \"10/s\"\nadapt = { upstream = \"api\", errors_above = \"5%\", floor = \"" +
                    std::string(share) + "\" }\n")),
                ElementsAre("weir.toml:11: rule[x].adapt.floor: found \"" + std::string(share) +
                            "\"; expected a multiple of 5% from \"5%\" to \"95%\""));
}

// weir makes 20 limiters of each limit with `adapt`, and the number of limiters is bounded.
TEST(AdaptMistakes, ErrorNamesTheFirstRuleBeyondTheMaximumNumberOfLimitsWithAdapt) {
  const auto with_rules = [](int count) {
    std::string text = kLeast;
    for (int i = 0; i < count; ++i) {
      const auto number = std::to_string(i);
      text += "[[rule]]\nname = \"r" + number + "\"\nmatch = { path = \"/" + number + "\" }\n" +
              "limit = \"" + std::to_string(1000 * (i + 1)) + "/min\"\n" + kAdaptToApi + "overrides = [";
      for (int j = 1; j <= 100; ++j)
        text += "{ match = { query = { q = \"" + std::to_string(j) + "\" } }, limit = \"" +
                std::to_string(1000 * (i + 1) + j) + "/min\" }, ";
      text += "]\n";
    }
    return text;
  };
  EXPECT_THAT(mistakes_in(with_rules(32)), IsEmpty()) << "32 * 101 * 20 limiters";
  EXPECT_THAT(
      mistakes_in(with_rules(33)),
      ElementsAre("weir.toml:203: rule[r32]: found more than 65536 different limits in this rule and "
                  "those before it; expected at most 65536. With adapt each limit counts as 20, and in "
                  "Redis with on_store_failure = \"local\" as 40. Write fewer tiers, overrides or "
                  "rules with adapt"));
}

TEST(AdaptMistakes, ErrorNamesSettingsThatCannotBeCombinedWithAdapt) {
  const std::pair<std::string, std::string> cases[] = {
      {"limit = \"10/s\"\nalgorithm = \"leaky_bucket\"\n",
       "leaky_bucket, which has promised departures at the configured rate; expected token_bucket, gcra, "
       "fixed_window, sliding_window, sliding_log or concurrency"},
      {"limit = \"10/s\"\nrefill = \"stepwise\"\n",
       "refill = \"stepwise\", which refills whole amounts; expected refill = \"continuous\""},
      {"min = 1\nmax = 10\nalgorithm = \"adaptive_concurrency\"\n",
       "adaptive_concurrency, which adapts by itself; expected algorithm = \"concurrency\", or no adapt"},
      {"limit = \"10/s\"\nsoft = \"10%\"\n",
       "soft (of the rule, a tier or an override); expected one of them"},
      {"limit = \"10/s\"\ntiers.pro = { limit = \"10/s\", elastic = { limit = \"20/s\", while_load_below = "
       "0.5 } }\n",
       "elastic (of the rule, a tier or an override); expected one of them"},
      {"limit = \"10/s\"\npenalty = { for = \"1min\" }\n",
       "penalty, which would punish clients while the upstream is unwell; expected one of them"},
  };
  for (const auto& [lines, why] : cases) {
    const auto line = 10 + std::count(lines.begin(), lines.end(), '\n');
    EXPECT_THAT(mistakes_in(with_lines(lines + kAdaptToApi)),
                ElementsAre("weir.toml:" + std::to_string(line) + ": rule[x].adapt: found beside " + why));
  }
}

TEST(AdaptMistakes, ErrorSaysThatARuleCannotHaveBothAdaptAndLease) {
  const auto text = "[state]\nredis = { url = \"redis://127.0.0.1\" }\n" +
                    with_lines("limit = \"1000/s\"\nstore = \"redis\"\nlease = \"10%\"\n" + kAdaptToApi);
  EXPECT_THAT(mistakes_in(text),
              ElementsAre("weir.toml:15: rule[x].adapt: found beside lease, whose units were taken under an "
                          "earlier limit; expected one of them"));
}

TEST(AdaptMistakes, ErrorSaysHowManyTiersAndOverridesARuleHasIfTheyAreMoreThanAHundred) {
  const auto with_tiers = [](int count) {
    std::string tiers;
    for (int i = 0; i < count; ++i) tiers += "t" + std::to_string(i) + " = { limit = \"1/s\" }, ";
    return with_lines("limit = \"10/s\"\ntiers = { " + tiers + "t = { limit = \"1/s\" } }\n" + kAdaptToApi);
  };
  EXPECT_THAT(mistakes_in(with_tiers(99)), IsEmpty());
  EXPECT_THAT(mistakes_in(with_tiers(100)),
              ElementsAre("weir.toml:12: rule[x].adapt: found beside 101 tiers and overrides; expected at "
                          "most 100 in a rule with adapt"));
}

TEST(Adapt, RuleWithAdaptHasALimiterForEachReducedShareOfItsLimit) {
  const auto settings = parse_settings(
      "[state]\nredis = { url = \"redis://127.0.0.1\" }\nreplicas = 2\n" +
          with_lines(
              "limit = \"100/s\"\ncost = 10\nstore = \"redis\"\ntiers.pro = { limit = \"400/s\" }\n" +
              std::string("adapt = { upstream = \"api\", latency_above = \"250ms\", floor = \"30%\" }\n")),
      kFile);
  const auto& rule = settings.rules.front();
  EXPECT_EQ(rule.adapt->upstream, "api");
  EXPECT_EQ(rule.adapt->terms,
            (limit::AdaptTerms{.latency_above = std::chrono::milliseconds(250), .floor = 6}));
  ASSERT_EQ(rule.scaled.size(), std::size_t{limit::kWholeFactor - 1});
  ASSERT_EQ(rule.scaled_share.size(), rule.scaled.size());
  ASSERT_EQ(rule.tiers[0].scaled.size(), rule.scaled.size());
  EXPECT_EQ(limit::quota(rule.scaled[9]), 50U);
  EXPECT_EQ(limit::quota(rule.scaled[0]), 10U) << "one request of the rule's cost still fits";
  EXPECT_EQ(limit::quota(rule.scaled_share[9]), 25U);
  EXPECT_EQ(limit::quota(rule.tiers[0].scaled[9]), 200U);
}

}  // namespace
}  // namespace weir::config::test
