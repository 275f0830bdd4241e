#include "app/differences.hpp"

#include <string>

#include <gmock/gmock.h>

namespace weir::app::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Differences, AreLinesThatOneTextHasAndTheOtherHasNot) {
  EXPECT_THAT(differences("a\nb\nc\n", "a\nd\nc\n"), ElementsAre("no longer: b", "now: d"));
  EXPECT_THAT(differences("", "a"), ElementsAre("now: a"));
  EXPECT_THAT(differences("a", ""), ElementsAre("no longer: a"));
  EXPECT_THAT(differences("a\nb\n", "a\nb"), IsEmpty());
}

TEST(Differences, AreToldOnceEachInTheOrderOfTheirText) {
  EXPECT_THAT(differences("z\nold\nz\nold\nb\n", "y\nnew\ny\nb\nnew\na"),
              ElementsAre("no longer: z", "no longer: old", "now: y", "now: new", "now: a"));
}

TEST(Differences, DoNotLieInOrderNorNumberNorBlanks) {
  EXPECT_THAT(differences("route\n    rule\nroute 2\n    rule\n", "route 2\nrule\n\n   \nroute\n"),
              IsEmpty());
}

// All lines differ, and many say the same: as with thousands of routes that all have the same rules.
TEST(Differences, OfVeryManyLinesAreFoundAllTheSame) {
  constexpr int kRoutes = 4'000, kRules = 30;
  const auto text = [](const std::string& word) {
    std::string lines;
    for (int route = 0; route < kRoutes; ++route) {
      lines += word + " route " + std::to_string(route) + "\n";
      for (int rule = 0; rule < kRules; ++rule) lines += "  " + word + " rule " + std::to_string(rule) + "\n";
    }
    return lines;
  };
  const auto said = differences(text("old"), text("new"));
  ASSERT_EQ(said.size(), 2U * (kRoutes + kRules));
  EXPECT_EQ(said[0], "no longer: old route 0");
  EXPECT_EQ(said[1], "no longer: old rule 0");
  EXPECT_EQ(said[kRules + 1], "no longer: old route 1");
  EXPECT_EQ(said.back(), "now: new route 3999");
}

}  // namespace
}  // namespace weir::app::test
