// The text of `weir check`, and what it warns of.
#include "unit/app/configuration.hpp"

#include <gmock/gmock.h>

namespace weir::app::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// What stands below the route of that path, up to the next one.
std::string rules_below(const std::string& route, const std::string& rule) {
  const auto text = describe(parse_settings(
      "[[listener]]\naddress = \"127.0.0.1:1\"\n[[route]]\nname = \"r\"\nmatch = " + route +
          "\nrespond = {}\n[[rule]]\nname = \"x\"\nlimit = \"1/s\"\nkey = [\"ip\"]\nmatch = " + rule + "\n",
      kFile));
  return text.substr(text.find("route "));
}

TEST(Describe, LeavesOutRulesThatPlainlyNeverApply) {
  const auto none = HasSubstr("no rule applies");
  EXPECT_THAT(rules_below(R"({ path = "/a" })", R"({ path = "/b" })"), none);
  EXPECT_THAT(rules_below(R"({ path = "/a" })", R"({ path = "/b/*" })"), none);
  EXPECT_THAT(rules_below(R"({ path = "/b/*" })", R"({ path = "/a" })"), none);
  EXPECT_THAT(rules_below(R"({ path = "/a/*" })", R"({ path = "/b/*" })"), none);
  EXPECT_THAT(rules_below(R"({ methods = "GET" })", R"({ methods = ["POST", "PUT"] })"), none);
  EXPECT_THAT(rules_below(R"({ host = "a" })", R"({ host = "b" })"), none);
}

TEST(Describe, ListsRulesThatMayApplyWithTheirCondition) {
  const auto listed = HasSubstr("rule \"x\": token_bucket 1/s, burst 1");
  EXPECT_THAT(rules_below(R"({ path = "/a" })", R"({ path = "/a" })"), listed);
  EXPECT_THAT(rules_below(R"({ path = "/a/*" })", R"({ path = "/a/b" })"), listed);
  EXPECT_THAT(rules_below(R"({ path = "/a/*" })", R"({ path = "/a/b/*" })"), listed);
  EXPECT_THAT(rules_below(R"({ path = "/a" })", R"({ path = "~^/b" })"), Not(listed));
  EXPECT_THAT(rules_below(R"({ path = "/a/*" })", R"({ path = "~^/b" })"), listed);
  EXPECT_THAT(rules_below(R"({ methods = "GET" })", R"({ path = "/b" })"),
              AllOf(listed, HasSubstr("where path /b")));
  EXPECT_THAT(rules_below("{}", "{}"), AllOf(listed, Not(HasSubstr("where"))));
}

TEST(Describe, TellsPrioritiesThatAreNotTheDefault) {
  const auto text =
      describe(parse_settings(with_rule("algorithm = \"leaky_bucket\"\nqueue_per_client = 3\n"
                                        "tiers = { pro = { limit = \"20/s\", priority = 1 } }\n"
                                        "[[route]]\nname = \"batch\"\nupstream = \"api\"\npriority = 9\n"),
                              kFile));
  EXPECT_THAT(text, HasSubstr("tier \"pro\": priority 1\n"));
  EXPECT_THAT(text, HasSubstr("route \"*\": everything -> upstream \"api\"\n"));
  EXPECT_THAT(text, HasSubstr("route \"batch\": everything -> upstream \"api\", priority 9\n"));
  EXPECT_THAT(text, HasSubstr(", at most 3 of one client\n"));
}

std::vector<std::string> warnings_of(const std::string& text) {
  return parse_settings(text, kFile).warnings;
}

TEST(Warnings, OfKeysThatClientsCanInvent) {
  EXPECT_THAT(warnings_of(kLeast), Contains(HasSubstr("who invents keys gets a fresh limit with each")));
  EXPECT_THAT(warnings_of(with_rule("key = [\"api_key\", \"ip\"]\n")),
              Not(Contains(HasSubstr("rule \"x\""))));
  EXPECT_THAT(warnings_of(with_rule("key = []\n")), Not(Contains(HasSubstr("rule \"x\""))));
}

TEST(Warnings, OfRoutesBehindOneThatTakesAll) {
  EXPECT_THAT(
      warnings_of(with("[[route]]\nname = \"late\"\nmatch = { path = \"/a\" }\nupstream = \"api\"\n")),
      Contains("route \"late\" is never reached: \"*\" before it takes every request"));
}

TEST(Warnings, OfTiersThatNobodyHas) {
  EXPECT_THAT(warnings_of(with_rule("tiers = { gold = { limit = \"1/s\" } }\n")),
              Contains(HasSubstr("rule \"x\" names the tier \"gold\"")));
  const Folder folder;
  folder.write("keys.toml", "[[key]]\nkey = \"k\"\ntier = \"free\"\n");
  const auto warnings =
      parse_settings(with_rule("tiers = { free = { limit = \"1/s\" }, gold = { limit = \"1/s\" } }\n"
                               "[client]\nkeys = \"keys.toml\"\n"),
                     folder.file(kFile))
          .warnings;
  EXPECT_THAT(warnings, ::testing::ElementsAre(
                            "rule \"x\" names the tier \"gold\", which no key of the keys file has"));
}

TEST(Warnings, OfASharedStoreWithoutASecret) {
  const std::string redis = "store = \"redis\"\n[state]\nredis = { url = \"redis://a\" }\n";
  EXPECT_THAT(warnings_of(with_rule(redis)), Contains(HasSubstr("key_secret is missing")));
  EXPECT_THAT(warnings_of(with_rule(redis + "key_secret = \"s\"\n")), Not(Contains(HasSubstr("key_secret"))));
}

TEST(Warnings, OfWhatNeverApplies) {
  EXPECT_THAT(warnings_of(with_rule("cost = 11\n")), Contains(HasSubstr("rule \"x\" admits nothing")));
  EXPECT_THAT(warnings_of(with_rule("key = [\"user\"]\n")), Contains(HasSubstr("which no request has")));
  EXPECT_THAT(warnings_of(with("[client]\nuser = { header = \"X-User\" }\n")),
              Contains(HasSubstr("believed from trusted proxies alone")));
  EXPECT_THAT(warnings_of(with("[[upstream]]\nname = \"spare\"\nservers = [\"a:1\"]\n")),
              Contains("upstream \"spare\" is used by no route"));
}

}  // namespace
}  // namespace weir::app::test
