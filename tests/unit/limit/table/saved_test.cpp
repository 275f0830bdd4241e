// Tests which limiters a snapshot treats as equal.
#include "weir/limit/saved.hpp"

#include "unit/limit/traffic.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace weir::limit {
namespace {

std::vector<Limiter> limiters() {
  const auto calendar = [](const char* zone) {
    return std::make_shared<Calendar>(zone, std::vector<Calendar::Run>{{-1, std::chrono::hours(1)}});
  };
  using Align = FixedWindow::Align;
  return {token_bucket("10/s", 10),
          token_bucket("9/s", 10),
          token_bucket("10/2s", 10),
          token_bucket("10/s", 11),
          gcra("10/s", 10),
          gcra("10/s", 9),
          leaky_bucket("10/s", 10),
          leaky_bucket("10/s", 9),
          leaky_bucket("9/s", 10),
          leaky_bucket("10/s", 10, 2s),
          leaky_bucket("10/s", 10, 3s),
          SteppedBucket::make(rate("10/s"), 10).value(),
          SteppedBucket::make(rate("10/s"), 11).value(),
          SteppedBucket::make(rate("9/s"), 10).value(),
          FixedWindow::make(rate("10/day")).value(),
          FixedWindow::make(rate("9/day")).value(),
          FixedWindow::make(rate("10/h")).value(),
          FixedWindow::make(10, Align::Day, calendar("Here")).value(),
          FixedWindow::make(10, Align::Day, calendar("There")).value(),
          FixedWindow::make(9, Align::Day, calendar("Here")).value(),
          FixedWindow::make(10, Align::Month, calendar("Here")).value(),
          SlidingWindow::make(rate("10/day")).value(),
          SlidingWindow::make(rate("9/day")).value(),
          SlidingLog::make(rate("10/day")).value(),
          SlidingLog::make(rate("9/day")).value(),
          SlidingLog::make(rate("10/day"), 10).value(),
          SlidingLog::make(rate("10/day"), 20).value(),
          Concurrency::make(10).value(),
          Concurrency::make(9).value(),
          AdaptiveConcurrency::make(1, 10).value(),
          AdaptiveConcurrency::make(2, 10).value(),
          AdaptiveConcurrency::make(1, 9).value()};
}

TEST(SavedRules, LimitersHaveEqualFingerprintsOnlyIfAlgorithmAndParametersAreEqual) {
  const auto some = limiters(), same = limiters();
  for (std::size_t i = 0; i < some.size(); ++i)
    for (std::size_t j = 0; j < same.size(); ++j)
      EXPECT_EQ(fingerprint(some[i]) == fingerprint(same[j]), i == j)
          << describe(some[i]) << " and " << describe(same[j]);
}

// counts_as() returns true if a reload may leave the states of a rule's keys unchanged.
TEST(SavedRules, StatesOfKeysMayStayUnchangedOnlyIfAtMostAConcurrencyLimitChanges) {
  const Limiter window = FixedWindow::make(rate("10/day")).value();
  const Limiter two = Concurrency::make(2).value(), three = Concurrency::make(3).value();
  const Limiter adaptive = AdaptiveConcurrency::make(1, 3).value();
  const auto counts = [](const SavedRule::Variant& a, const SavedRule::Variant& b) {
    return SavedRule{.name = "r", .variants = {a}}.counts_as({.name = "r", .variants = {b}});
  };
  EXPECT_TRUE(counts({1, 5, 0, &window}, {1, 5, 0, &window}));
  EXPECT_TRUE(counts({1, 5, 0, nullptr}, {1, 5, 0, nullptr}));
  EXPECT_FALSE(counts({1, 5, 0, &window}, {1, 6, 0, &window}));
  EXPECT_FALSE(counts({1, 5, 0, &window}, {2, 5, 0, &window})) << "another tier";
  EXPECT_FALSE(counts({1, 5, 0, &window}, {1, 5, 2, &window})) << "another limiter ID";
  EXPECT_TRUE(counts({1, 5, 0, &two}, {1, 6, 0, &three}));
  EXPECT_FALSE(counts({1, 5, 0, &two}, {1, 6, 0, &adaptive}));
  EXPECT_FALSE(counts({1, 5, 0, &two}, {1, 6, 0, nullptr}));
  EXPECT_FALSE(counts({1, 5, 0, nullptr}, {1, 6, 0, &two}));
  const SavedRule one{.name = "r", .variants = {{1, 5}}};
  EXPECT_FALSE(one.counts_as({.name = "s", .variants = {{1, 5}}}));
  EXPECT_FALSE(one.counts_as({.name = "r", .variants = {{1, 5}, {2, 5}}}));
}

}  // namespace
}  // namespace weir::limit
