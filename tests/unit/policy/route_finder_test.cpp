#include "unit/policy/sample.hpp"

#include "weir/policy/explain_request.hpp"
#include "weir/policy/route.hpp"

#include <random>

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

Route route_for(std::string name, std::string_view host, std::string_view path,
                std::vector<std::string> methods = {}) {
  Route route;
  route.name = std::move(name);
  if (!host.empty()) route.match.hosts = {*HostMatch::parse(host)};
  if (!path.empty()) route.match.path = PathMatch::parse(path).value();
  route.match.methods = std::move(methods);
  return route;
}

// Adds routes that match no request of these tests. With only a few routes, the finder would test all of
// them.
std::vector<Route> with_many_others(std::vector<Route> routes) {
  for (std::size_t i = 0; i <= MatchIndex::kFew; ++i)
    routes.push_back(route_for("other", "other.example.com", "/other/" + std::to_string(i)));
  return routes;
}

std::string chosen(const std::vector<Route>& routes, std::string_view host, std::string_view path) {
  const auto head = head_with({});
  auto request = request_of(head);
  request.host = host;
  request.path = path;
  RouteFinder::Scratch room;
  const auto route = RouteFinder(routes).choose(routes, request, room);
  return route ? routes[*route].name : "none";
}

TEST(RouteFinder, ChoosesTheFirstRouteThatMatches) {
  const auto routes = with_many_others({route_for("a", "a.example.com", "/x/*"),
                                        route_for("wide", "", "/x/*"), route_for("late", "", "/x/y")});
  EXPECT_EQ(chosen(routes, "a.example.com", "/x/y"), "a");
  EXPECT_EQ(chosen(routes, "b.example.com", "/x/y"), "wide");
  EXPECT_EQ(chosen(routes, "b.example.com", "/y"), "none");
}

TEST(RouteFinder, ChoosesRoutesForAllHostsBelowADomain) {
  const auto routes =
      with_many_others({route_for("deep", "*.b.example.com", ""), route_for("wide", "*.example.com", ""),
                        route_for("exact", "example.com", "")});
  EXPECT_EQ(chosen(routes, "a.b.example.com", "/"), "deep");
  EXPECT_EQ(chosen(routes, "x.a.b.example.com", "/"), "deep");
  EXPECT_EQ(chosen(routes, "b.example.com", "/"), "wide");
  EXPECT_EQ(chosen(routes, "example.com", "/"), "exact");
  EXPECT_EQ(chosen(routes, "badexample.com", "/"), "none");
  EXPECT_EQ(chosen(routes, ".example.com", "/"), "none") << "no label before the domain";
  EXPECT_EQ(chosen(routes, "com", "/"), "none");
  EXPECT_EQ(chosen(routes, "", "/"), "none");
}

TEST(RouteFinder, FindsARouteByEachKindOfHostPatternThatItHas) {
  auto routes = with_many_others({route_for("several", "", "")});
  routes[0].match.hosts = {*HostMatch::parse("one.org"), *HostMatch::parse("*.two.org")};
  EXPECT_EQ(chosen(routes, "one.org", "/"), "several");
  EXPECT_EQ(chosen(routes, "x.two.org", "/"), "several");
  EXPECT_EQ(chosen(routes, "two.org", "/"), "none");
  routes[0].match.hosts.push_back(*HostMatch::parse("~^three"));
  EXPECT_EQ(chosen(routes, "three.net", "/"), "several");
}

std::string random_text(std::mt19937_64& random, std::string_view letters, std::size_t most) {
  std::string text;
  for (std::size_t i = 0, length = 1 + random() % most; i < length; ++i)
    text += letters[random() % letters.size()];
  return text;
}

Route random_route(std::mt19937_64& random, const std::string& name) {
  const std::vector<std::string> hosts = {"", "a.c", "b.a.c", "*.a.c", "*.c", "~a"};
  const std::vector<std::vector<std::string>> methods = {{}, {"GET"}, {"PUT"}};
  auto path = "/" + random_text(random, "ab", 3) + (random() % 2 == 0 ? "/*" : "");
  if (random() % 10 == 0) path = "";
  return route_for(name, hosts[random() % hosts.size()], path, methods[random() % methods.size()]);
}

// The finder chooses the same route as a test of all routes, and finds the same ambiguities of paths.
TEST(RouteFinder, ChoosesTheRouteThatATestOfAllRoutesChooses) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const std::vector<std::string> hosts = {"a.c", "b.a.c", "x.b.a.c", "c", "q"};
  const ClientSettings settings;
  std::size_t matched = 0, differing = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Route> routes;
    for (int i = 0; i < 40; ++i) routes.push_back(random_route(random, std::to_string(i)));
    const RouteFinder finder(routes);
    RouteFinder::Scratch room;
    for (int i = 0; i < 50; ++i) {
      ExplainRequest asked;
      asked.host = hosts[random() % hosts.size()];
      const auto joint = random() % 3 == 0 ? "%2F" : "/";
      asked.target = "/" + random_text(random, "ab", 3) + joint + random_text(random, "ab", 2);
      asked.peer = ip("203.0.113.7");
      DescribedRequest one, other;
      ASSERT_FALSE(one.read(asked, settings, {}, 1));
      ASSERT_FALSE(other.read(asked, settings, {}, 1));
      const auto expected = choose_route(routes, one.request());
      EXPECT_EQ(finder.choose(routes, other.request(), room), expected) << *asked.host << asked.target;
      EXPECT_EQ(other.request().routes_differ, one.request().routes_differ) << *asked.host << asked.target;
      matched += expected ? 1U : 0U;
      differing += one.request().routes_differ ? 1U : 0U;
    }
  }
  EXPECT_GT(matched, 2'000U);
  EXPECT_GT(differing, 200U);
}

}  // namespace
}  // namespace weir::policy
