#include "server/adaptation.hpp"

#include <chrono>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace weir::server {
namespace {

using namespace std::chrono_literals;
using limit::kWholeFactor;

const limit::Limiter kLimiter = limit::FixedWindow::make({100, base::Duration{1s}}).value();

policy::Rule adapting(const std::string& name, limit::RuleIndex index, const std::string& upstream,
                      limit::AdaptTerms terms = {.errors_above = 5, .floor = 4}) {
  return {.name = name,
          .index = index,
          .limiter = kLimiter,
          .adapt = policy::Adapt{.upstream = upstream, .terms = terms}};
}

class AdaptationTest : public testing::Test {
 protected:
  void watch(std::vector<policy::Rule> rules) {
    proxy::Configuration config;
    for (const auto* name : {"web", "api"}) {
      upstream::UpstreamSettings settings;
      settings.name = name;
      config.upstreams.push_back(std::move(settings));
    }
    config.upstream_indexes = {7, 8};
    config.rules = std::move(rules);
    adaptation_.watch(config);
  }
  // Ends a period in which this upstream gave 100 answers.
  void period(std::size_t upstream, std::uint64_t failed) {
    answers_[upstream].all += 100;
    answers_[upstream].failed += failed;
    adaptation_.end_period();
  }
  int factor(limit::RuleIndex index) { return factors_.of(index); }

  net::asio::io_context control_;
  limit::Factors factors_;
  log::Log log_{log::LogLevel::Off};
  std::map<std::size_t, limit::UpstreamAnswers> answers_;  // the key is the index of the upstream's counters
  Adaptation adaptation_{control_.get_executor(), factors_,
                         [this](std::size_t upstream) { return answers_[upstream]; }, log_};
};

TEST_F(AdaptationTest, LimitOfEachRuleFollowsItsOwnUpstream) {
  watch({adapting("of-web", 0, "web"), adapting("of-api", 1, "api")});
  period(8, 50);
  EXPECT_EQ(factor(0), kWholeFactor);
  EXPECT_EQ(factor(1), 10);
  period(7, 50);
  EXPECT_EQ(factor(0), 10);
  EXPECT_EQ(factor(1), 11) << "no answer in this period";
}

TEST_F(AdaptationTest, AnswersOfEarlierPeriodsAreNotCounted) {
  answers_[8] = {.all = 1000, .failed = 1000, .measured = 0, .time = {}};
  watch({adapting("r", 1, "api")});
  adaptation_.end_period();
  EXPECT_EQ(factor(1), kWholeFactor) << "the answers before the rule adapted do not count";
  period(8, 100);
  EXPECT_EQ(factor(1), 10);
  adaptation_.end_period();
  EXPECT_EQ(factor(1), 11);
}

TEST_F(AdaptationTest, ReloadKeepsTheFactorOnlyIfNameAndAdaptSettingsAreUnchanged) {
  watch({adapting("kept", 0, "api"), adapting("changed", 1, "api"), adapting("renamed", 2, "api")});
  period(8, 100);
  watch({adapting("kept", 0, "api"), adapting("changed", 1, "api", {.errors_above = 5, .floor = 5}),
         adapting("other", 2, "api")});
  EXPECT_EQ(factor(0), 10);
  EXPECT_EQ(factor(1), kWholeFactor);
  EXPECT_EQ(factor(2), kWholeFactor)
      << "a new rule with the label of a former rule starts at the whole limit";
}

TEST_F(AdaptationTest, NoTimerRunsIfNoRuleAdapts) {
  watch({});
  EXPECT_EQ(control_.poll(), 0U);
  EXPECT_TRUE(control_.stopped()) << "nothing to wait for";
}

}  // namespace
}  // namespace weir::server
