// Reads each algorithm from a configuration, and checks the limiter and the messages about mistakes.
#include "unit/config/configuration.hpp"

#include "weir/limit/limiter.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string understood(const std::string& more) {
  return limit::describe(parse_settings(rule(more), kFile).rules[1].limiter);
}

std::vector<std::string> rule_mistakes(const std::string& more) {
  return mistakes_in(rule(more));
}

TEST(LimiterReader, ReadsEveryAlgorithm) {
  EXPECT_EQ(understood("limit = \"10/s\"\nalgorithm = \"token_bucket\"\nburst = 3\n"),
            "token_bucket 10/s, burst 3");
  EXPECT_EQ(understood("limit = \"50/6h\"\nrefill = \"stepwise\"\nburst = 200\n"),
            "token_bucket 50/6h stepwise, burst 200");
  EXPECT_EQ(understood("limit = \"10/s\"\nalgorithm = \"gcra\"\n"), "gcra 10/s, burst 0");
  EXPECT_EQ(understood("limit = \"10/s\"\nalgorithm = \"leaky_bucket\"\n"), "leaky_bucket 10/s, queue 10");
  EXPECT_EQ(understood("limit = \"10/min\"\nalgorithm = \"fixed_window\"\n"), "fixed_window 10/min");
  EXPECT_EQ(understood("limit = \"10/day\"\nalgorithm = \"fixed_window\"\n"), "fixed_window 10/day");
  EXPECT_EQ(understood("limit = \"20/day\"\nalgorithm = \"sliding_log\"\n"), "sliding_log 20/day");
  EXPECT_EQ(understood("limit = \"100/min\"\nalgorithm = \"sliding_window\"\n"), "sliding_window 100/min");
  EXPECT_EQ(understood("limit = \"100/min\"\nalgorithm = \"sliding_window\"\nbuckets = 6\n"),
            "sliding_window 100/min, 6 buckets");
  EXPECT_EQ(understood("limit = 20\nalgorithm = \"concurrency\"\n"), "concurrency 20 in flight");
  EXPECT_EQ(understood("min = 2\nmax = 200\nalgorithm = \"adaptive_concurrency\"\n"),
            "adaptive_concurrency 2 to 200 in flight");
}

std::string with_margin(const std::string& more) {
  const auto settings = parse_settings(rule(more + "soft = \"10%\"\n"), kFile);
  return limit::describe(settings.rules[1].soft.value());
}

TEST(LimiterReader, MarginOfASoftLimitIsAddedToTheLimitOfEachAlgorithm) {
  EXPECT_EQ(with_margin("limit = \"10/s\"\nrefill = \"stepwise\"\n"), "token_bucket 10/s stepwise, burst 11");
  EXPECT_EQ(with_margin("limit = \"10/s\"\nalgorithm = \"leaky_bucket\"\n"), "leaky_bucket 10/s, queue 11");
  EXPECT_EQ(with_margin("limit = \"20/day\"\nalgorithm = \"fixed_window\"\n"), "fixed_window 22/day");
  EXPECT_EQ(with_margin("limit = \"20/day\"\nalgorithm = \"sliding_log\"\n"), "sliding_log 22/day");
  EXPECT_EQ(with_margin("limit = \"20/day\"\nalgorithm = \"sliding_window\"\n"), "sliding_window 22/day");
  EXPECT_EQ(with_margin("limit = 20\nalgorithm = \"concurrency\"\n"), "concurrency 22 in flight");
  EXPECT_THAT(rule_mistakes("min = 2\nmax = 20\nalgorithm = \"adaptive_concurrency\"\nsoft = \"10%\"\n"),
              ElementsAre(HasSubstr("rule[x].soft: adaptive_concurrency adjusts its limit itself")));
}

TEST(LimiterReader, ReadsCalendarWindows) {
  const std::string fixed = "algorithm = \"fixed_window\"\n";
  EXPECT_EQ(understood(fixed + "limit = \"5/day\"\nalign = \"day\"\n"),
            "fixed_window 5/day by the calendar of UTC");
  EXPECT_EQ(understood(fixed + "limit = \"70/week\"\nalign = \"week\"\ntimezone = \"Europe/Berlin\"\n"),
            "fixed_window 70/week by the calendar of Europe/Berlin");
  EXPECT_THAT(rule_mistakes(fixed + "limit = \"70/day\"\nalign = \"week\"\n"),
              ElementsAre(HasSubstr("expected \"70/week\", because of align = \"week\"")));
  EXPECT_EQ(understood(fixed + "limit = \"10000/month\"\nalign = \"month\"\ntimezone = \"Europe/Berlin\"\n"),
            "fixed_window 10000/month by the calendar of Europe/Berlin");
  EXPECT_THAT(
      rule_mistakes(fixed + "limit = \"5/h\"\nalign = \"day\"\n"),
      ElementsAre(
          "weir.toml:14: rule[x].limit: found \"5/h\"; expected \"5/day\", because of align = \"day\""));
  EXPECT_THAT(rule_mistakes(fixed + "limit = \"5/day\"\nalign = \"month\"\n"),
              ElementsAre(HasSubstr("expected \"5/month\"")));
  EXPECT_THAT(rule_mistakes(fixed + "limit = \"x/day\"\nalign = \"day\"\n"),
              ElementsAre(HasSubstr("rule[x].limit: \"x/day\" is not a rate")));
  EXPECT_THAT(
      rule_mistakes(fixed + "limit = \"5/day\"\nalign = \"day\"\ntimezone = \"Europe/Berln\"\n"),
      ElementsAre("weir.toml:16: rule[x].timezone: found \"Europe/Berln\"; expected a time zone that this "
                  "system knows, as \"Europe/Berlin\""));
  EXPECT_THAT(rule_mistakes(fixed + "limit = \"5/day\"\ntimezone = \"UTC\"\n"),
              ElementsAre(HasSubstr("rule[x].timezone: found without a calendar")));
}

TEST(LimiterReader, TierInheritsTheAlgorithmButNotTheNumbersOfItsRule) {
  const auto rules =
      parse_settings(rule("limit = \"5/month\"\nalgorithm = \"fixed_window\"\nalign = \"month\"\n"
                          "tiers = { pro = { limit = \"50/month\" } }\n"
                          "overrides = [{ match = { path = \"/a\" }, limit = \"7/month\" }]\n"),
                     kFile)
          .rules;
  EXPECT_EQ(limit::describe(rules[1].tiers[0].limiter), "fixed_window 50/month by the calendar of UTC");
  EXPECT_EQ(limit::describe(rules[1].overrides[0].limiter), "fixed_window 7/month by the calendar of UTC");
  EXPECT_THAT(
      rule_mistakes("limit = 5\nalgorithm = \"concurrency\"\ntiers = { pro = { limit = \"5/s\" } }\n"),
      ElementsAre(HasSubstr("rule[x].tiers.pro.limit: found a string; expected a whole number from 1")));
}

TEST(LimiterReader, ErrorNamesKeysThatTheAlgorithmDoesNotUse) {
  EXPECT_THAT(
      rule_mistakes("limit = \"10001/h\"\nalgorithm = \"sliding_log\"\n"),
      ElementsAre("weir.toml:13: rule[x].limit: a sliding log of 10001 stores each of them; write at most "
                  "10000, or use sliding_window"));
  EXPECT_THAT(
      rule_mistakes("limit = \"5/s\"\nburst = 7\nalgorithm = \"sliding_window\"\n"),
      ElementsAre("weir.toml:14: rule[x].burst: not used by sliding_window; expected limit alone, or another "
                  "algorithm"));
  EXPECT_THAT(rule_mistakes("limit = \"5/s\"\nbuckets = 7\n"),
              ElementsAre("weir.toml:14: rule[x].buckets: only used by sliding_window; expected algorithm = "
                          "\"sliding_window\""));
  EXPECT_THAT(rule_mistakes("limit = \"5/s\"\nalign = \"day\"\n"),
              ElementsAre(HasSubstr("only used by fixed_window")));
  EXPECT_THAT(rule_mistakes("limit = \"5/s\"\nmin = 7\n"),
              ElementsAre(HasSubstr("only used by adaptive_concurrency")));
  EXPECT_THAT(rule_mistakes("limit = \"5/s\"\nbuckets = 1\nalgorithm = \"sliding_window\"\n"),
              ElementsAre(HasSubstr("found 1; expected a whole number from 2 to 1000")));
  EXPECT_THAT(rule_mistakes("limit = \"5/us\"\nbuckets = 2\nalgorithm = \"sliding_window\"\n"),
              ElementsAre(HasSubstr("a bucket must be at least 1us long")));
}

TEST(LimiterReader, ConcurrencyLimitMustBeAWholeNumber) {
  const std::string concurrency = "algorithm = \"concurrency\"\n";
  EXPECT_THAT(rule_mistakes(concurrency + "limit = \"10/s\"\n"),
              ElementsAre("weir.toml:14: rule[x].limit: found a string; expected a whole number from 1 to "
                          "1000000000"));
  EXPECT_THAT(rule_mistakes(concurrency + "limit = 0\n"),
              ElementsAre(HasSubstr("found 0; expected a whole number")));
  EXPECT_THAT(rule_mistakes(concurrency),
              ElementsAre(HasSubstr("limit: missing; expected a whole number such as 10")));
  EXPECT_THAT(rule_mistakes("limit = 10\n"), ElementsAre(HasSubstr("expected a rate such as \"10/s\"")));
  const std::string adaptive = "algorithm = \"adaptive_concurrency\"\n";
  EXPECT_THAT(rule_mistakes(adaptive + "min = 3\n"), ElementsAre(HasSubstr("rule[x].max: missing")));
  EXPECT_THAT(rule_mistakes(adaptive + "min = 3\nmax = 2\n"),
              ElementsAre(HasSubstr("max must be at least min")));
  EXPECT_THAT(rule_mistakes(adaptive + "min = 3\nmax = 10\nlimit = 5\n"),
              ElementsAre(HasSubstr("limit: not used by adaptive_concurrency; expected min and max")));
}

const std::string kRedis = "store = \"redis\"\n[state]\nredis = { url = \"redis://a\" }\nreplicas = 2\n";

// At low load the elastic limit replaces the rule's own limit. A lower elastic limit would then refuse
// requests that the rule's own limit admits.
TEST(LimiterReader, RejectsAnElasticLimitBelowTheNormalLimitOfTheRule) {
  const auto of = [](const std::string& own, const std::string& elastic) {
    return rule_mistakes(own + "elastic = { " + elastic + ", while_load_below = 0.7 }\n");
  };
  const auto says = [](const std::string& what) { return ElementsAre(HasSubstr(what)); };
  const std::string in_a_period = ", 1000 in a period, however long; expected that or more";
  EXPECT_THAT(
      of("algorithm = \"concurrency\"\nlimit = 20\n", "limit = 5"),
      says("elastic.limit: found less than the limit that elastic raises, 20; expected that or more"));
  for (const std::string window : {"fixed_window", "sliding_window", "sliding_log"})
    EXPECT_THAT(of("algorithm = \"" + window + "\"\nlimit = \"1000/h\"\n", "limit = \"20/min\""),
                says("elastic.limit: found less than the limit that elastic raises" + in_a_period));
  const std::string adaptive = "algorithm = \"adaptive_concurrency\"\nmin = 10\nmax = 20\n";
  EXPECT_THAT(of(adaptive, "min = 10, max = 15"),
              says("elastic.max: found less than the limit that elastic raises, 20; expected that or more"));
  EXPECT_THAT(of(adaptive, "min = 1, max = 30"),
              says("elastic.min: found less than the limit that elastic raises, 10; expected that or more"));
  EXPECT_THAT(of(adaptive, "min = 10, max = 30"), IsEmpty());
  const std::string queue = "algorithm = \"leaky_bucket\"\nlimit = \"10/s\"\nqueue = 10\n";
  EXPECT_THAT(
      of(queue + "max_wait = \"10s\"\n", "limit = \"20/s\", max_wait = \"10ms\""),
      says("elastic.max_wait: found less than the limit that elastic raises, 10s; expected that or more"));
  EXPECT_THAT(of(queue, "limit = \"20/s\", max_wait = \"10s\""),
              says("elastic.max_wait: found less than the limit that elastic raises, no limit; expected"));
  EXPECT_THAT(of(queue + "max_wait = \"10s\"\n", "limit = \"20/s\""), IsEmpty());
}

TEST(LimiterReader, EveryAlgorithmThatCountsAdmissionsMayUseRedis) {
  for (const std::string word :
       {"token_bucket", "gcra", "leaky_bucket", "fixed_window", "sliding_log", "sliding_window"}) {
    const auto plain = "limit = \"6/day\"\nalgorithm = \"" + word + "\"\n";
    EXPECT_THAT(rule_mistakes(plain + kRedis), IsEmpty()) << word;
    EXPECT_THAT(rule_mistakes(plain + "soft = \"100%\"\n" + kRedis), IsEmpty()) << word;
    EXPECT_THAT(rule_mistakes(plain + "elastic = { limit = \"9/day\", while_load_below = 0.5 }\n" + kRedis),
                IsEmpty())
        << word;
    const bool settles = word != "leaky_bucket";
    EXPECT_EQ(rule_mistakes(plain + "charge = { status = \"401\" }\n" + kRedis).empty(), settles) << word;
    EXPECT_EQ(
        rule_mistakes(plain + "cost = { response_header = \"X-Cost\", reserve = 1 }\n" + kRedis).empty(),
        settles)
        << word;
  }
  EXPECT_THAT(rule_mistakes("limit = \"5/s\"\nrefill = \"stepwise\"\n" + kRedis), IsEmpty());
  EXPECT_THAT(rule_mistakes("limit = \"5/s\"\nalgorithm = \"sliding_window\"\nbuckets = 3\n" + kRedis),
              IsEmpty());
  EXPECT_THAT(rule_mistakes("limit = \"5/day\"\nalgorithm = \"fixed_window\"\nalign = \"day\"\n" + kRedis),
              IsEmpty());
}

TEST(LimiterReader, LocalShareOfEachAlgorithmIsItsLimitDividedByTheReplicas) {
  const auto share = [](const std::string& more) {
    const auto settings = parse_settings(rule(more + kRedis), kFile);
    return limit::describe(settings.rules[1].local_share.value());
  };
  EXPECT_EQ(share("limit = \"5/day\"\nburst = 9\n"), "token_bucket 5/2day, burst 4");
  EXPECT_EQ(share("limit = \"6/day\"\nalgorithm = \"sliding_log\"\n"), "sliding_log 3/day");
  EXPECT_EQ(share("limit = \"1/day\"\nalgorithm = \"sliding_log\"\n"), "sliding_log 1/day");
  EXPECT_EQ(share("limit = \"6/day\"\nalgorithm = \"fixed_window\"\nalign = \"day\"\n"),
            "fixed_window 3/day by the calendar of UTC");
  EXPECT_EQ(share("limit = \"6/day\"\nalgorithm = \"sliding_window\"\nbuckets = 4\n"),
            "sliding_window 3/day, 4 buckets");
  EXPECT_EQ(share("limit = 9\nalgorithm = \"concurrency\"\n"), "concurrency 4 in flight");
}

TEST(LimiterReader, RejectsRedisForAdaptiveConcurrency) {
  EXPECT_THAT(rule_mistakes("limit = 5\nalgorithm = \"concurrency\"\n" + kRedis), IsEmpty());
  EXPECT_THAT(rule_mistakes("min = 1\nmax = 5\nalgorithm = \"adaptive_concurrency\"\n" + kRedis),
              ElementsAre(HasSubstr("adaptive_concurrency cannot be kept in Redis")));
}

}  // namespace
}  // namespace weir::config::test
