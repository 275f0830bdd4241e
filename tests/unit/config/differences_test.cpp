#include "weir/config/differences.hpp"

#include "unit/config/configuration.hpp"

#include <string>

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Differences, ListTheLinesThatOnlyOneOfTwoTextsHas) {
  EXPECT_THAT(differences("a\nb\nc\n", "a\nd\nc\n"), ElementsAre("no longer: b", "now: d"));
  EXPECT_THAT(differences("", "a"), ElementsAre("now: a"));
  EXPECT_THAT(differences("a", ""), ElementsAre("no longer: a"));
  EXPECT_THAT(differences("a\nb\n", "a\nb"), IsEmpty());
}

TEST(Differences, ListEachLineOnceInTheOrderOfTheText) {
  EXPECT_THAT(differences("z\nold\nz\nold\nb\n", "y\nnew\ny\nb\nnew\na"),
              ElementsAre("no longer: z", "no longer: old", "now: y", "now: new", "now: a"));
}

TEST(Differences, IgnoreBlankLinesRepeatedLinesAndTheOrderOfLines) {
  EXPECT_THAT(differences("b\na\n    c\na\n    c\n", "a\n    c\n\n   \nb\n"), IsEmpty());
  EXPECT_THAT(differences("route 1\n    rule a\n    rule b\n", "route 1\n    rule b\n    rule a\n"),
              IsEmpty());
}

TEST(Differences, NameTheLineAboveAChangedIndentedLine) {
  EXPECT_THAT(differences("upstream \"a\": x\n    connect 1s\n", "upstream \"a\": x\n    connect 2s\n"),
              ElementsAre("no longer: upstream \"a\": connect 1s", "now: upstream \"a\": connect 2s"));
}

// The rules "login" and "api" exchange their paths. So both texts have the same lines, in another order.
TEST(Differences, NameTheRuleToWhichAChangedLineBelongs) {
  const auto text = [](const std::string& login, const std::string& api) {
    return "route \"all\": everything\n    rule \"login\": 5/day\n      where path " + login +
           "\n    rule \"api\": 9/s\n      where path " + api + "\n";
  };
  EXPECT_THAT(differences(text("/login", "/items"), text("/items", "/login")),
              ElementsAre("no longer: rule \"login\": where path /login",
                          "no longer: rule \"api\": where path /items",
                          "now: rule \"login\": where path /items", "now: rule \"api\": where path /login"));
}

TEST(Differences, SayWhichRoutesARuleNoLongerOrNowAppliesTo) {
  const std::string before = "route \"1\": x\n    rule \"a\": 5/s\nroute \"2\": y\n    no rule applies\n";
  EXPECT_THAT(
      differences(before, "route \"1\": x\n    no rule applies\nroute \"2\": y\n    rule \"a\": 5/s\n"),
      ElementsAre("no longer: route \"2\": no rule applies", "no longer: route \"1\": rule \"a\"",
                  "now: route \"1\": no rule applies", "now: route \"2\": rule \"a\""));
  EXPECT_THAT(
      differences(before, "route \"1\": x\n    rule \"a\": 6/s\nroute \"2\": y\n    no rule applies\n"),
      ElementsAre("no longer: rule \"a\": 5/s", "now: rule \"a\": 6/s"))
      << "the change is reported for the rule, not for each route";
}

TEST(Differences, ReportAChangedOrderOfRoutesOrOverrides) {
  EXPECT_THAT(differences("route \"1\": x\nroute \"2\": y\nroute \"3\": z\n",
                          "route \"4\": w\nroute \"2\": y\nroute \"1\": x\n"),
              ElementsAre("no longer: route \"3\": z", "now: route \"4\": w",
                          "now in this order: route \"2\": y; route \"1\": x"));
  EXPECT_THAT(
      differences("route \"1\": x\n    rule \"a\": 5/s\n      override b: 1/s\n      override c: 2/s\n",
                  "route \"1\": x\n    rule \"a\": 5/s\n      override c: 2/s\n      override b: 1/s\n"),
      ElementsAre("now in this order: rule \"a\": override c: 2/s; rule \"a\": override b: 1/s"));
}

// The two descriptions have no line in common. But within each description many lines are equal, as in a
// configuration with thousands of routes and the same rules for each.
TEST(Differences, ListEachChangeOnceInTextsOfVeryManyLines) {
  constexpr int kRoutes = 4'000, kRules = 30;
  const auto text = [](const std::string& word) {
    std::string lines;
    for (int route = 0; route < kRoutes; ++route) {
      lines += "route " + word + std::to_string(route) + "\n";
      for (int rule = 0; rule < kRules; ++rule) lines += "  rule " + word + std::to_string(rule) + "\n";
    }
    return lines;
  };
  const auto said = differences(text("old"), text("new"));
  ASSERT_EQ(said.size(), 2U * (kRoutes + kRules));
  EXPECT_EQ(said[0], "no longer: route old0");
  EXPECT_EQ(said[1], "no longer: rule old0");
  EXPECT_EQ(said[kRules + 1], "no longer: route old1");
  EXPECT_EQ(said.back(), "now: route new3999");
}

class UnshownDifferences : public ::testing::Test {
 protected:
  Settings read(const std::string& more, const std::string& keys = "[[key]]\nkey = \"a\"\n") {
    folder_.write("keys.toml", keys);
    return parse_settings(with_rule("key = [\"claim:sub|ip\"]\n" + more), folder_.file(kFile));
  }
  static std::string tokens(char letter) {
    return "[client]\njwt = { algorithm = \"HS256\", secret = \"" + std::string(32, letter) + "\" }\n";
  }
  static std::string alert(const std::string& path) {
    return "[[alert]]\nname = \"many\"\nrule = \"x\"\nrefused_above = \"1/s\"\nwebhook = "
           "\"http://127.0.0.1:1" +
           path + "\"\n";
  }
  const std::string by_keys_ = tokens('a') + "keys = \"keys.toml\"\n";
  Folder folder_;
};

TEST_F(UnshownDifferences, AreEmptyForEqualConfigurations) {
  EXPECT_THAT(unshown_differences(read(by_keys_ + alert("/a")), read(by_keys_ + alert("/a"))), IsEmpty());
}

TEST_F(UnshownDifferences, ReportChangedApiKeysAndKeyOwners) {
  const auto before = read(by_keys_);
  const auto told = ElementsAre("now: the keys file has other keys, or says other things of them");
  EXPECT_THAT(unshown_differences(before, read(by_keys_, "[[key]]\nkey = \"b\"\n")), told);
  EXPECT_THAT(unshown_differences(before, read(by_keys_, "[[key]]\nkey = \"a\"\nuser = \"u\"\n")), told);
  EXPECT_THAT(unshown_differences(before, read(by_keys_, "")), IsEmpty())
      << "describe() shows the number of keys";
}

TEST_F(UnshownDifferences, ReportAChangedTokenKey) {
  EXPECT_THAT(unshown_differences(read(tokens('a')), read(tokens('b'))),
              ElementsAre("now: tokens are verified with other keys"));
}

TEST_F(UnshownDifferences, ReportAChangedWebhookPath) {
  EXPECT_THAT(unshown_differences(read(tokens('a') + alert("/a")), read(tokens('a') + alert("/b"))),
              ElementsAre("now: alert \"many\" has another path, authorization or ca"));
}

}  // namespace
}  // namespace weir::config::test
