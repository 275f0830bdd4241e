#include "cli/import/write/host_order.hpp"
#include "cli/import/write/location_order.hpp"

#include "weir/policy/routing/patterns.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::cli::nginx {
namespace {

using enum Modifier;
using testing::ElementsAre;

Location at(Modifier modifier, const std::string& path) {
  return {.position = {}, .modifier = modifier, .path = path, .scope = {}, .action = {}};
}

std::vector<std::string> order_of(const std::vector<Location>& locations) {
  Notes notes;
  std::vector<std::string> paths;
  for (const auto& entry : order_locations(locations, notes))
    paths.push_back(entry.path + (entry.except.empty() ? "" : " not " + entry.except));
  return paths;
}

TEST(LocationOrder, ExactPathsComeBeforeRegexesAndRegexesBeforePrefixes) {
  EXPECT_THAT(order_of({at(Prefix, "/"), at(Prefix, "/a/"), at(Prefix, "/a/b"), at(Regex, "\\.php$"),
                        at(Exact, "/a/"), at(RegexNoCase, "\\.gif$")}),
              ElementsAre("/a/", "~\\.php(?:%0A)?$", "~(?i)\\.gif(?:%0A)?$", "/a/b*", "/a/*", ""));
}

TEST(LocationOrder, PrefixesWithCaretTildeComeBeforeRegexes) {
  EXPECT_THAT(order_of({at(Prefix, "/"), at(FirstPrefix, "/s/"), at(Prefix, "/s/p/"), at(Regex, "x")}),
              ElementsAre("/s/* not /s/p/*", "~x", "/s/p/*", ""));
  EXPECT_THAT(order_of({at(FirstPrefix, "/s/"), at(Prefix, "/s/p/"), at(Prefix, "/s/q+/"), at(Regex, "x")}),
              ElementsAre("/s/* not ~^(?:/s/p/|/s/q\\+/)", "~x", "/s/q+/*", "/s/p/*"));
  EXPECT_THAT(order_of({at(FirstPrefix, "/s/"), at(Prefix, "/s/p/")}), ElementsAre("/s/p/*", "/s/*"));
}

TEST(LocationOrder, LocationsThatWeirCannotMatchAreLeftOutAndReported) {
  Notes notes;
  const std::vector<Location> locations{at(Regex, "a(?=b)"), at(Exact, "/a//b")};
  EXPECT_TRUE(order_locations(locations, notes).empty());
  EXPECT_EQ(notes.sorted().size(), 2u);
}

TEST(LocationOrder, AsteriskInAnNginxPathMatchesOnlyAnAsterisk) {
  EXPECT_THAT(order_of({at(Exact, "/a*"), at(Prefix, "/b*c")}), ElementsAre("~^/a\\*$", "~^/b\\*c"));
}

// Returns the location that nginx chooses according to its documentation. The test's regular expressions are
// plain texts, which match anywhere in the path.
const Location* nginx_choice(const std::vector<Location>& locations, const std::string& path) {
  const Location* longest = nullptr;
  for (const auto& location : locations) {
    if (location.modifier == Exact && location.path == path) return &location;
    const bool prefix = location.modifier == Prefix || location.modifier == FirstPrefix;
    if (prefix && path.starts_with(location.path) &&
        (longest == nullptr || location.path.size() > longest->path.size()))
      longest = &location;
  }
  if (longest != nullptr && longest->modifier == FirstPrefix) return longest;
  for (const auto& location : locations)
    if (location.modifier == Regex && path.find(location.path) != std::string::npos) return &location;
  return longest;
}

bool holds(const std::string& pattern, const std::string& path) {
  return policy::PathMatch::parse(pattern)->holds(path);
}

TEST(LocationOrder, ChoosesTheLocationThatNginxChooses) {
  std::mt19937 random(20'261'127);
  const std::vector<std::string> prefixes{"/", "/a", "/a/", "/a/b", "/a/b/", "/b/", "/b/a/b/", "/a/b/a"};
  const std::vector<std::string> expressions{"a/b", "b/a", "/b", "aa", "b$"};
  for (int round = 0; round < 500; ++round) {
    std::vector<Location> locations;
    for (const auto& prefix : prefixes) {
      if (random() % 2 != 0) locations.push_back(at(random() % 3 == 0 ? FirstPrefix : Prefix, prefix));
      if (random() % 4 == 0) locations.push_back(at(Exact, prefix));
    }
    for (const auto& expression : expressions)
      if (expression.back() != '$' && random() % 3 == 0) locations.push_back(at(Regex, expression));
    Notes notes;
    const auto order = order_locations(locations, notes);
    for (int i = 0; i < 50; ++i) {
      std::string path = "/";
      while (random() % 5 != 0) path += std::string_view("ab/")[random() % 3];
      path.erase(std::unique(path.begin(), path.end(), [](char x, char y) { return x == '/' && y == '/'; }),
                 path.end());
      const auto chosen = std::find_if(order.begin(), order.end(), [&](const OrderedLocation& entry) {
        return (entry.path.empty() || holds(entry.path, path)) &&
               (entry.except.empty() || !holds(entry.except, path));
      });
      const auto* expected = nginx_choice(locations, path);
      EXPECT_EQ(chosen == order.end() ? nullptr : chosen->location, expected)
          << path << " in round " << round;
    }
  }
}

Server named(std::vector<HostName> names) {
  Server server;
  server.names = std::move(names);
  return server;
}

using Kind = HostName::Kind;

TEST(HostOrder, ExactNamesComeBeforeWildcardsAndWildcardsBeforeExpressions) {
  const std::vector<Server> servers{named({{Kind::Regex, "~^x"}}), named({{Kind::Leading, "*.example.com"}}),
                                    named({{Kind::Leading, "*.a.example.com"}}),
                                    named({{Kind::Exact, "b.example.com"}}), named({})};
  EXPECT_THAT(order_hosts(servers, {0, 1, 2, 3, 4}, 4),
              ElementsAre(HostUnit{3, {"b.example.com"}}, HostUnit{2, {"*.a.example.com"}},
                          HostUnit{1, {"*.example.com"}}, HostUnit{0, {"~^x"}}, HostUnit{4, {}}));
}

TEST(HostOrder, NamesOfAServerShareARouteUnlessANameOfAnotherServerComesBetween) {
  const std::vector<Server> servers{
      named({{Kind::Exact, "a.org"}, {Kind::Leading, "*.a.org"}, {Kind::Exact, "b.net"}}),
      named({{Kind::Exact, "x.a.org"}, {Kind::Leading, "*.net"}}), named({})};
  EXPECT_THAT(order_hosts(servers, {0, 1, 2}, 2),
              ElementsAre(HostUnit{1, {"x.a.org"}}, HostUnit{0, {"a.org", "b.net", "*.a.org"}},
                          HostUnit{1, {"*.net"}}, HostUnit{2, {}}));
}

TEST(HostOrder, NamesOfTheDefaultServerAreWrittenOnlyIfAnotherServerAlsoMatchesThem) {
  const std::vector<Server> servers{named({{Kind::Exact, "a.org"}}), named({{Kind::Exact, "b.org"}})};
  EXPECT_THAT(order_hosts(servers, {0, 1}, 0), ElementsAre(HostUnit{1, {"b.org"}}, HostUnit{0, {}}));
  const std::vector<Server> overlapping{named({{Kind::Exact, "a.org"}}), named({{Kind::Regex, "~org"}})};
  EXPECT_THAT(order_hosts(overlapping, {0, 1}, 0),
              ElementsAre(HostUnit{0, {"a.org"}}, HostUnit{1, {"~org"}}, HostUnit{0, {}}));
}

}  // namespace
}  // namespace weir::cli::nginx
