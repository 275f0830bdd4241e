// A rule that can never admit a request must be reported as a mistake.
#include "unit/config/wrong_configuration.hpp"

#include <chrono>

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

const WrongConfiguration kWrongCapacities[] = {
    {"CostAboveTheCapacity",
     with_rule("cost = 11\n"),
     {"weir.toml:14: rule[x].cost: found 11, but the rule admits at most 10 at once, so every request would "
      "be refused; expected a cost of at most 10, or a larger burst"}},
    {"CostAboveTheCapacityOfAWindow",
     with_rule("algorithm = \"fixed_window\"\ncost = 11\n"),
     {"weir.toml:15: rule[x].cost: found 11, but the rule admits at most 10 at once, so every request would "
      "be refused; expected a cost of at most 10, or a larger limit"}},
    {"ReserveAboveTheCapacity",
     with_rule("algorithm = \"sliding_log\"\ncost = { response_header = \"X-Tokens\", reserve = 11 }\n"),
     {"weir.toml:15: rule[x].cost: found 11, but the rule admits at most 10 at once, so every request would "
      "be refused; expected a cost of at most 10, or a larger limit"}},
    {"CostAboveTheCapacityOfATierAndAnOverride",
     with_rule("cost = 5\ntiers = { free = { limit = \"9/s\", burst = 4 } }\n"
               "overrides = [{ match = { path = \"/a\" }, limit = \"3/s\" }]\n"),
     {"weir.toml:14: rule[x].cost: found 5, but its override for path /a admits at most 3 at once, so every "
      "request would be refused; expected a cost of at most 3, or a larger burst",
      "weir.toml:14: rule[x].cost: found 5, but its tier \"free\" admits at most 4 at once, so every request "
      "would be refused; expected a cost of at most 4, or a larger burst"}},
};

class CapacityMistakes : public ::testing::TestWithParam<WrongConfiguration> {};

TEST_P(CapacityMistakes, ErrorNamesTheCostAndTheHighestCostThatTheLimitAdmits) {
  EXPECT_THAT(mistakes_in(GetParam().text), ::testing::ElementsAreArray(GetParam().mistakes));
}

INSTANTIATE_TEST_SUITE_P(InvalidConfigurations, CapacityMistakes, ::testing::ValuesIn(kWrongCapacities),
                         [](const auto& wrong) { return wrong.param.name; });

TEST(Capacity, CostIsAcceptedIfAtLeastOneLimitOfTheRuleAdmitsIt) {
  for (const char* more :
       {"cost = 10\n", "cost = 11\nburst = 11\n", "cost = 11\nsoft = \"10%\"\n",
        "cost = 11\nelastic = { limit = \"20/s\", while_load_below = 0.7 }\n",
        "algorithm = \"gcra\"\ncost = 3\nburst = 2\n", "cost = { header = \"X-Cost\", default = 11 }\n"})
    EXPECT_THAT(mistakes_in(with_rule(more)), ::testing::IsEmpty()) << more;
}

// A leaky bucket's queue counts requests and not their cost.
TEST(Capacity, CostMayExceedTheQueueLengthOfALeakyBucket) {
  for (unsigned queue = 0; queue < 4; ++queue)
    for (unsigned cost = 1; cost < 6; ++cost) {
      const auto bucket = limit::LeakyBucket::make({10, std::chrono::seconds(1)}, queue, base::kForever);
      ASSERT_TRUE(bucket);
      const bool admitted = bucket->step({}, base::TimePoint(std::chrono::hours(1)), cost).outcome.allowed;
      const auto mistakes =
          mistakes_in(with_rule("algorithm = \"leaky_bucket\"\nqueue = " + std::to_string(queue) +
                                "\ncost = " + std::to_string(cost) + "\n"));
      EXPECT_TRUE(admitted) << queue << " " << cost;
      EXPECT_THAT(mistakes, ::testing::IsEmpty()) << queue << " " << cost;
    }
}

}  // namespace
}  // namespace weir::config::test
