// Servers read some paths in several ways. weir rejects an ambiguous path if a condition, a key or a route
// would treat its readings differently. Otherwise weir accepts the path.
#include "unit/policy/sample.hpp"

#include "weir/policy/explain_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::policy {
namespace {

enum class Outcome { Refused, Met, NotMet };

Match on_path(std::string_view pattern) {
  Match match;
  match.path = PathMatch::parse(pattern).value();
  return match;
}

Match except(Match match) {
  Match outer;
  outer.negated = std::make_shared<const Match>(std::move(match));
  return outer;
}

Rule rule_on(Match match, std::initializer_list<std::string_view> key = {"ip"}) {
  auto rule = rule_of("few", key);
  rule.match = std::move(match);
  return rule;
}

ExplainRequest asking_for(const std::string& target) {
  ExplainRequest explain_request;
  explain_request.host = "a";
  explain_request.target = target;
  explain_request.peer = ip("203.0.113.7");
  return explain_request;
}

Outcome outcome(const Rule& rule, const std::string& target) {
  const ClientSettings settings;
  DescribedRequest described;
  EXPECT_FALSE(described.read(asking_for(target), settings, {}, 1));
  Evaluation evaluation;
  const auto rejection = evaluation.collect(std::span(&rule, 1), described.request(), kKeys);
  if (!rejection) return evaluation.local.empty() ? Outcome::NotMet : Outcome::Met;
  EXPECT_TRUE(is_about_path(rejection)) << target;
  EXPECT_EQ(status_of(rejection), 400U);
  EXPECT_EQ(
      describe(rejection),
      "the path is ambiguous: servers may interpret it in several ways that rule few treats differently");
  return Outcome::Refused;
}

TEST(PathAmbiguity, PathIsAcceptedIfAConditionHoldsForAllOrNoneOfItsInterpretations) {
  for (const char* target : {"/signin;returnPath=%2Ftrack", "/sale;off=50%25", "/a//b/../c", "/x/..;/y",
                             "/x//../y", "/a%2Fb/../c", "/x/..%2Fy"}) {
    EXPECT_EQ(outcome(rule_on({}), target), Outcome::Met) << target;
    EXPECT_EQ(outcome(rule_on(on_path("/*")), target), Outcome::Met) << target;
    EXPECT_EQ(outcome(rule_on(on_path("/admin")), target), Outcome::NotMet) << target;
    EXPECT_EQ(outcome(rule_on(on_path("/admin/*")), target), Outcome::NotMet) << target;
    EXPECT_EQ(outcome(rule_on(except(on_path("/health"))), target), Outcome::Met) << target;
  }
  EXPECT_EQ(outcome(rule_on(on_path("/signin*")), "/signin;returnPath=%2Ftrack"), Outcome::Met);
  EXPECT_EQ(outcome(rule_on(on_path("/a/*")), "/a//b/../c"), Outcome::Met);
}

TEST(PathAmbiguity, RejectsAPathIfAConditionHoldsForOnlySomeOfItsInterpretations) {
  const std::pair<const char*, const char*> cases[] = {{"/signin", "/signin;returnPath=%2Ftrack"},
                                                       {"/signin/*", "/signin;returnPath=%2Ftrack"},
                                                       {"/b", "/a//../b"},
                                                       {"/a/*", "/a//../b"},
                                                       {"/admin/*", "/admin/..;/x"},
                                                       {"/x", "/admin/..;/x"},
                                                       {"/a/*", "/a%2Fb/../c"},
                                                       {"/c", "/a%2Fb/../c"},
                                                       {"~^/adm", "/x/..%2Fadm"},
                                                       {"/x/*", "/x/..%2Fadm"}};
  for (const auto& [pattern, target] : cases) {
    EXPECT_EQ(outcome(rule_on(on_path(pattern)), target), Outcome::Refused) << pattern << " " << target;
    EXPECT_EQ(outcome(rule_on(except(on_path(pattern))), target), Outcome::Refused)
        << pattern << " " << target;
  }
}

TEST(PathAmbiguity, PathThatAnyServerReadsAsAProtectedPathIsRejected) {
  for (const char* target :
       {"/%2fadmin", "/x%2f..%2fadmin", "/x/..%2fadmin", "/x/..%5cadmin", "/%5cadmin", "/%2561dmin",
        "/%252fadmin", "/x/%252e%252e/admin", "/x/%252e%252e%252fadmin", "/x/..;/admin", "/x/%2e%2e;/admin",
        "/x/..%3b/admin", "/x//../admin", "/%c1%a1dmin", "/x/%c0%ae%c0%ae/admin", "/%u0061dmin",
        "/x;%2f..%2f../admin", "/x/%25%32%65%25%32%65/admin"})
    EXPECT_EQ(outcome(rule_on(on_path("/admin*")), target), Outcome::Refused) << target;
  for (const char* target : {"/admin;x", "/%61dmin", "//admin", "/x/../admin", "/x/%2e%2E/admin", "/./admin"})
    EXPECT_EQ(outcome(rule_on(on_path("/admin*")), target), Outcome::Met) << target;
}

// Most servers treat "%2F" as a part of a name, not as a slash. If a rule applies to the path in this
// reading, the path is accepted, even if the rule does not apply to another reading.
TEST(PathAmbiguity, EncodedSlashIsAcceptedIfTheRuleAppliesToItAsAPartOfAName) {
  const auto rule = rule_on(on_path("~^/projects/[^/]+/issues$"));
  EXPECT_EQ(outcome(rule, "/projects/group%2Fproject/issues"), Outcome::Met);
  EXPECT_EQ(outcome(rule_on(on_path("/%2561")), "/%2561"), Outcome::Met);
  EXPECT_EQ(outcome(rule_on({}, {"path"}), "/projects/group%2Fproject/issues"), Outcome::Met);
}

TEST(PathAmbiguity, RejectsAnAmbiguousPathIfItIsPartOfTheKey) {
  for (const auto key : {"path", "user|path"}) {
    EXPECT_EQ(outcome(rule_on({}, {key}), "/signin;returnPath=%2Ftrack"), Outcome::Refused) << key;
    EXPECT_EQ(outcome(rule_on({}, {key}), "/a//b/../c"), Outcome::Met) << key;
    EXPECT_EQ(outcome(rule_on({}, {key}), "/a;v=1"), Outcome::Met) << key;
  }
  EXPECT_EQ(outcome(rule_on({}, {"ip|path"}), "/signin;returnPath=%2Ftrack"), Outcome::Met)
      << "every request has an address";
  EXPECT_EQ(outcome(rule_on(on_path("/b"), {"path"}), "/signin;returnPath=%2Ftrack"), Outcome::NotMet);
}

TEST(PathAmbiguity, AmbiguousPathIsAcceptedIfAnotherConditionExcludesTheRule) {
  auto match = on_path("/signin");
  match.methods = {"POST"};
  EXPECT_EQ(outcome(rule_on(match), "/signin;returnPath=%2Ftrack"), Outcome::NotMet);
  auto rule = rule_on({});
  rule.mode = Mode::Shadow;
  rule.match = on_path("/signin");
  EXPECT_EQ(outcome(rule, "/signin;returnPath=%2Ftrack"), Outcome::NotMet)
      << "a shadow rule refuses no request";
}

TEST(PathAmbiguity, RejectsAPathIfAnOverrideAppliesToOnlySomeOfItsInterpretations) {
  auto rule = rule_on({});
  rule.overrides.push_back({.tier = {}, .match = on_path("/signin"), .limiter = bucket(1, 1)});
  EXPECT_EQ(outcome(rule, "/signin;returnPath=%2Ftrack"), Outcome::Refused);
  EXPECT_EQ(outcome(rule, "/other;returnPath=%2Ftrack"), Outcome::Met);
}

TEST(PathAmbiguity, PathWithTooManyInterpretationsIsRejectedIfAConditionUsesThePath) {
  std::string target = "/x";
  while (target.size() < 8000) target += "/a%2F%255C..;%2F%3B";
  EXPECT_EQ(outcome(rule_on(on_path("/admin")), target), Outcome::Refused);
  EXPECT_EQ(outcome(rule_on(on_path("/*")), target), Outcome::Met);
  EXPECT_EQ(outcome(rule_on({}), target), Outcome::Met);
}

Route route(const char* name, Match match) {
  Route route;
  route.name = name;
  route.match = std::move(match);
  return route;
}

class RouteChoice : public testing::Test {
 protected:
  // Returns the route, and whether other readings of the path lead to other routes.
  std::string choose(const std::string& target) {
    EXPECT_FALSE(described_.read(asking_for(target), settings_, {}, 1));
    const auto chosen = choose_route(routes_, described_.request());
    const auto name = chosen ? routes_[*chosen].name : "none";
    return described_.request().routes_differ ? name + " differs" : name;
  }

  ClientSettings settings_;
  DescribedRequest described_;
  std::vector<Route> routes_{route("admin", on_path("/admin/*")), route("shop", on_path("/shop/*")),
                             route("rest", {})};
};

TEST_F(RouteChoice, RejectsAmbiguousPathsThatLeadToDifferentRoutes) {
  EXPECT_EQ(choose("/x/..;/admin/a"), "admin differs");
  EXPECT_EQ(choose("/admin/..;/a"), "rest differs");
  EXPECT_EQ(choose("/x/..%2fadmin/a"), "rest differs");
  EXPECT_EQ(choose("/%2fadmin/a"), "rest differs");
  EXPECT_EQ(choose("/shop/..;/x"), "rest differs");
}

TEST_F(RouteChoice, AcceptsAmbiguousPathsThatLeadToTheSameRoute) {
  EXPECT_EQ(choose("/signin;returnPath=%2Ftrack"), "rest");
  EXPECT_EQ(choose("/shop/sale;off=50%25"), "shop");
  EXPECT_EQ(choose("/shop/a//b/../c"), "shop");
  EXPECT_EQ(choose("/shop/a%2Fb"), "shop");
  EXPECT_EQ(choose("/admin/%2Fshop/x"), "admin") << "routes after the first match are not compared";
}

TEST_F(RouteChoice, RouteCanBeConfiguredToAcceptAmbiguousPaths) {
  for (auto& route : routes_) route.ambiguous_paths = AmbiguousPaths::Pass;
  EXPECT_EQ(choose("/admin/..;/a"), "rest");
  EXPECT_EQ(described_.request().interpretations, nullptr) << "rules use the normal form";
}

TEST_F(RouteChoice, RejectsAmbiguousPathsIfOnlySomeInterpretationsHaveARoute) {
  routes_.pop_back();
  EXPECT_EQ(choose("/x/..%2fadmin/a"), "none differs");
  EXPECT_EQ(choose("/signin;returnPath=%2Ftrack"), "none");
}

}  // namespace
}  // namespace weir::policy
