// Mistakes in an element of a list must be reported at the line of the element.
#include "unit/config/configuration.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

// Returns the setting `key` with a list of two elements. The valid element is on the second line, the faulty
// element on the third.
std::string list(const std::string& key, const std::string& good, const std::string& bad) {
  return key + " = [\n  " + good + ",\n  " + bad + ",\n]\n";
}

std::string texts(const std::string& key, const std::string& good, const std::string& bad) {
  return list(key, '"' + good + '"', '"' + bad + '"');
}

TEST(ListMistakes, ErrorAboutAServerNamesTheLineOfTheServerInTheList) {
  const auto of = [](const std::string& bad) {
    return mistakes_in(with("[[upstream]]\nname = \"b\"\n" + list("servers", "\"a:1\"", bad)));
  };
  EXPECT_THAT(of("\"a\""),
              ElementsAre(StartsWith("weir.toml:15: upstream[b].servers: \"a\" is not an address")));
  EXPECT_THAT(of("\"a:0\""), ElementsAre(StartsWith("weir.toml:15: upstream[b].servers: found \"a:0\"")));
  EXPECT_THAT(of("9000"),
              ElementsAre(StartsWith("weir.toml:15: upstream[b].servers: found a list with a whole")));
  EXPECT_THAT(of("{ address = \"b:1\", weight = 0 }"),
              ElementsAre(StartsWith("weir.toml:15: upstream[b].servers[#2].weight: found 0")));
}

TEST(ListMistakes, ErrorAboutAnElementOfAWrongTypeNamesTheLineOfTheElement) {
  EXPECT_THAT(mistakes_in(with_rule(list("key", "\"ip\"", "5"))),
              ElementsAre("weir.toml:16: rule[x].key: found a list with a whole number in it; expected a "
                          "list of strings"));
  EXPECT_THAT(
      mistakes_in(with_rule(list("overrides", "{ match = { path = \"/a\" }, limit = \"1/s\" }", "5"))),
      ElementsAre(StartsWith("weir.toml:16: rule[x].overrides: found a list with a whole number in it")));
}

TEST(ListMistakes, ErrorAboutAConditionNamesTheLineOfTheConditionInTheList) {
  const auto of = [](const std::string& key, const std::string& good, const std::string& bad) {
    return mistakes_in(with_rule("[rule.match]\n" + texts(key, good, bad)));
  };
  EXPECT_THAT(of("methods", "GET", "get"), ElementsAre(StartsWith("weir.toml:17: rule[x].match.methods: ")));
  EXPECT_THAT(of("methods", "GET", "CONNECT"),
              ElementsAre(StartsWith("weir.toml:17: rule[x].match.methods: ")));
  EXPECT_THAT(of("methods", "GET", "A B"), ElementsAre(StartsWith("weir.toml:17: rule[x].match.methods: ")));
  EXPECT_THAT(of("ip", "10.0.0.0/8", "10.0.0.1/8"),
              ElementsAre(StartsWith("weir.toml:17: rule[x].match.ip: ")));
  EXPECT_THAT(of("days", "mon", "day"), ElementsAre(StartsWith("weir.toml:17: rule[x].match.days: ")));
  EXPECT_THAT(of("body_contains", "a", ""),
              ElementsAre(StartsWith("weir.toml:17: rule[x].match.body_contains: ")));
}

TEST(ListMistakes, ErrorAboutAnInvalidTextInAListNamesTheLineOfTheText) {
  EXPECT_THAT(mistakes_in(with_rule(texts("key", "ip", "ipp"))),
              ElementsAre(StartsWith("weir.toml:16: rule[x].key: ")));
  EXPECT_THAT(mistakes_in(with_rule("[rule.charge]\n" + texts("status", "401", "9xx"))),
              ElementsAre(StartsWith("weir.toml:17: rule[x].charge.status: ")));
  EXPECT_THAT(mistakes_in(with("[[route]]\nupstream = \"api\"\n" + texts("upgrade", "websocket", "h2c"))),
              ElementsAre(StartsWith("weir.toml:15: route[#2].upgrade: ")));
  EXPECT_THAT(mistakes_in(with("[client]\n" + texts("trusted_proxies", "10.0.0.0/8", "proxy"))),
              ElementsAre(StartsWith("weir.toml:14: client.trusted_proxies: ")));
  EXPECT_THAT(mistakes_in(with("[client]\n" + texts("trusted_fields", "X-Auth-*", "a b"))),
              ElementsAre(StartsWith("weir.toml:14: client.trusted_fields: ")));
  EXPECT_THAT(mistakes_in(with("[server]\n" + texts("ratelimit_headers", "x", "y"))),
              ElementsAre(StartsWith("weir.toml:14: server.ratelimit_headers: ")));
  EXPECT_THAT(mistakes_in(with("[log]\n" + texts("fields", "usual", "unusual"))),
              ElementsAre(StartsWith("weir.toml:14: log.fields: ")));
  EXPECT_THAT(mistakes_in(with("[state.redis]\nurl = \"redis://a\"\ntopology = \"cluster\"\n" +
                               texts("nodes", "a:1", "b"))),
              ElementsAre(StartsWith("weir.toml:16: state.redis.nodes: ")));
  const std::string upstream = "[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\n";
  EXPECT_THAT(mistakes_in(with(upstream + "[upstream.retry]\n" + texts("on", "late", "never"))),
              ElementsAre(StartsWith("weir.toml:17: upstream[b].retry.on: ")));
  EXPECT_THAT(
      mistakes_in(with(upstream + "[upstream.health]\npath = \"/\"\n" + texts("status", "200", "100"))),
      ElementsAre(StartsWith("weir.toml:18: upstream[b].health.status: ")));
}

}  // namespace
}  // namespace weir::config::test
