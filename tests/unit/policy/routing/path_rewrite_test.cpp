#include "weir/policy/routing/path_rewrite.hpp"

#include "weir/http/target.hpp"

#include <random>

#include <gmock/gmock.h>

namespace weir::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string applied(const PathRewrite& rewrite, std::string_view path) {
  std::string out;
  return rewrite.apply(path, out) ? out : "unchanged";
}

PathRewrite prefixes(std::string strip, std::string add) {
  return {.strip = std::move(strip), .add = std::move(add), .pattern = std::nullopt};
}

PathRewrite pattern(std::string_view pattern, std::string_view to) {
  auto parsed = PathPattern::parse(pattern, to);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return {.strip = {}, .add = {}, .pattern = *parsed};
}

TEST(PathRewrite, OnlyWholeSegmentsAreStripped) {
  const auto strip = prefixes("/api", "");
  EXPECT_EQ(applied(strip, "/api/users"), "/users");
  EXPECT_EQ(applied(strip, "/api/"), "/");
  EXPECT_EQ(applied(strip, "/api"), "/");
  EXPECT_EQ(applied(strip, "/apiary"), "unchanged");
  EXPECT_EQ(applied(strip, "/v1/api"), "unchanged");
  EXPECT_EQ(applied(strip, "*"), "unchanged");
}

TEST(PathRewrite, PrefixIsAddedToThePath) {
  EXPECT_EQ(applied(prefixes("", "/v2"), "/users"), "/v2/users");
  EXPECT_EQ(applied(prefixes("", "/v2"), "/"), "/v2/");
  EXPECT_EQ(applied(prefixes("/v1", "/v2"), "/v1/users"), "/v2/users");
  EXPECT_EQ(applied(prefixes("/v1", "/v2"), "/v1"), "/v2/");
  EXPECT_EQ(applied(prefixes("/v1", "/v2"), "/users"), "unchanged");
}

TEST(PathRewrite, PatternReplacesTheWholePath) {
  const auto users = pattern("^/users/([0-9]+)/(.*)$", "/u/{1}/x/{2}");
  EXPECT_EQ(applied(users, "/users/7/a/b"), "/u/7/x/a/b");
  EXPECT_EQ(applied(users, "/users/x"), "unchanged");
  EXPECT_EQ(applied(pattern("v[0-9]", "/old/{0}"), "/api/v7/x"), "/old/v7");
  EXPECT_EQ(applied(pattern("^/(a)?(b)$", "/x{1}/{2}"), "/b"), "/x/b") << "the first group is absent";
}

std::vector<std::string> refused(const PathRewrite& rewrite, std::initializer_list<const char*> paths,
                                 bool all_servers = true) {
  std::vector<std::string> found;
  for (const std::string path : paths) {
    std::string scratch;
    if (rewrite.leaves_target(http::normalise_path(path, scratch), all_servers)) found.push_back(path);
  }
  return found;
}

TEST(PathRewrite, RequestIsRefusedIfTheNewPathHasADotSegment) {
  const auto users = pattern("^/u/([^-/]+)-(.+)$", "/users/{1}/{2}");
  for (const bool all_servers : {true, false}) {
    EXPECT_THAT(refused(users, {"/u/..-admin/secret", "/u/a-..", "/u/.-x"}, all_servers), SizeIs(3));
    EXPECT_THAT(refused(users, {"/u/a-b", "/u/a.b-c.d", "/u/...-b", "/u/a-b/../c", "/x/..-a"}, all_servers),
                IsEmpty());
    EXPECT_THAT(refused(pattern("^/(.+)\\.html$", "/pages/{1}"), {"/...html", "/..html", "/a/b/...html"},
                        all_servers),
                SizeIs(3));
    EXPECT_THAT(refused(pattern("^/profile/(.)-(.)", "/profile/{1}{2}"), {"/profile/.-."}, all_servers),
                SizeIs(1));
    EXPECT_THAT(refused(pattern("^/f(.*)-(.*)$", "/x/{1}..{2}"), {"/f-", "/f-/a"}, all_servers), SizeIs(2))
        << "the dots are constant";
  }
}

TEST(PathRewrite, RequestIsRefusedIfSomeServersReadTheNewPathOutsideThePrefix) {
  const std::initializer_list<const char*> ways = {
      "/..%2f..%2fadmin/secret",      "/a/..%2f..%2f..%2f..%2fadmin/x", "/..%5c..%5cadmin",
      "/%252e%252e/%252e%252e/admin", "/..%252f..%252fadmin",           "/..%c0%af..%c0%afadmin",
      "/%2e%2e%2f..%u002fadmin",      "/a%2f..%2f..%2fpublic-not/x"};
  const auto prefix = prefixes("", "/v2/public");
  EXPECT_THAT(refused(prefix, ways), ElementsAreArray(ways));
  EXPECT_THAT(refused(prefix, ways, false), IsEmpty());
  EXPECT_THAT(refused(pattern("^(/.*)$", "/v2/public{1}"), ways), ElementsAreArray(ways));
  EXPECT_THAT(refused(pattern("^/(.*)$", "/v2/public/{1}/end"), ways), ElementsAreArray(ways));
  EXPECT_THAT(refused(prefixes("/a", "/v2"), {"/a/..%2fx", "/b/..%2f..%2fx"}), ElementsAre("/a/..%2fx"));
  EXPECT_THAT(refused(prefix, {"/", "/a", "/a/../b", "/group%2Fproject", "/a%2f..%2fb", "/50%25", "/a%20b..c",
                               "/..;/x"}),
              IsEmpty());
  EXPECT_THAT(refused(prefixes("/api", ""), {"/api/..%2fx"}), IsEmpty())
      << "without a new prefix, no path can lead out of it";
}

TEST(PathRewrite, ConfiguredPrefixMayContainAnEncodedSlash) {
  const auto project = prefixes("", "/projects/group%2Fname");
  EXPECT_THAT(refused(project, {"/files/a%2Fb.txt", "/50%25", "/..%2F..%2Fother"}),
              ElementsAre("/..%2F..%2Fother"));
}

// The groups may match any text. Still, the new path is in normal form, and a server finds no host, dot
// segment or query in it.
TEST(PathRewrite, NewPathIsAlwaysInNormalForm) {
  EXPECT_EQ(applied(pattern("^/go(.*)$", "/{1}"), "/go/evil.example"), "/evil.example");
  EXPECT_EQ(applied(pattern("^/a(.*)b/(.*)$", "/x/{1}/{2}"), "/a..b/c"), "/c");
  EXPECT_EQ(applied(pattern("^/(.*)$", "/{1}"), "/a%3Fb"), "/a%3Fb");
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto cutting = pattern("^/(.{0,3})(.{0,4})(.*)$", "/{3}/{2}/{1}{2}");
  for (int i = 0; i < 5000; ++i) {
    std::string raw = "/", scratch, normal, out;
    for (std::size_t n = random() % 16; n > 0; --n) raw += "a./%2F5C;0?\r \xff"[random() % 14];
    normal = http::normalise_path(raw, scratch);
    if (!cutting.apply(normal, out)) continue;
    ASSERT_TRUE(out.starts_with('/') && !out.starts_with("//")) << normal << " -> " << out;
    ASSERT_EQ(out, std::string(http::normalise_path(out, scratch))) << normal;
    for (const unsigned char c : out)
      ASSERT_TRUE(c > 0x20 && c < 0x7f && c != '?') << normal << " -> " << out;
  }
}

TEST(PathRewrite, ConfigurationWhoseNewPathIsNotInNormalFormIsRejected) {
  const auto message = [](std::string_view pattern, std::string_view to) {
    const auto parsed = PathPattern::parse(pattern, to);
    EXPECT_FALSE(parsed) << to;
    return parsed ? "" : parsed.error().message;
  };
  EXPECT_THAT(message("^/(.*)$", "{1}"), HasSubstr("begins with \"/\", where x stands for a group"));
  EXPECT_THAT(message("^/(.*)$", "//{1}"), HasSubstr("in normal form: \"/x\""));
  EXPECT_THAT(message("^/(.*)$", "/a/../{1}"), HasSubstr("in normal form"));
  EXPECT_THAT(message("^/(.*)$", "/%{1}"), HasSubstr("in normal form"));
  EXPECT_THAT(message("^/(.*)$", "/a?b={1}"), HasSubstr("weir forwards the query as it is"));
  EXPECT_THAT(message("^/(.*)$", "/{2}"), HasSubstr("that the pattern does not have; it has 1"));
  EXPECT_THAT(message("^/(.*)$", "/{host}"), HasSubstr("{host} is no group"));
  EXPECT_THAT(message("^/(.*)$", "/{10}"), HasSubstr("{10} is no group"));
}

TEST(PathRewrite, ConfigurationWithAnInvalidExpressionOrOneThatNeverMatchesIsRejected) {
  EXPECT_EQ(fault_of_expression("^/(.*)$"), "");
  EXPECT_EQ(fault_of_expression("("), "expected a regular expression such as \"^/old/(.*)$\": missing ): (");
  EXPECT_THAT(fault_of_expression("^/caf\xc3\xa9"), HasSubstr("write other characters as %XX"));
}

TEST(PathRewrite, ConfigurationWithAnInvalidPrefixIsRejected) {
  EXPECT_EQ(fault_of_prefix("/api"), "");
  EXPECT_EQ(fault_of_prefix("/api/v1"), "");
  EXPECT_THAT(fault_of_prefix("api"), HasSubstr("begins with \"/\""));
  EXPECT_THAT(fault_of_prefix("/api/"), HasSubstr("expected \"/api\""));
  EXPECT_THAT(fault_of_prefix("/"), HasSubstr("or remove this key"));
  EXPECT_THAT(fault_of_prefix("/a//b"), HasSubstr("in normal form: \"/a/b\""));
  EXPECT_THAT(fault_of_prefix("/a?b"), HasSubstr("without \"?\""));
  EXPECT_THAT(fault_of_prefix(""), HasSubstr("begins with"));
}

}  // namespace
}  // namespace weir::policy
