#include "cli/import/write/path_expression.hpp"

#include "weir/policy/routing/patterns.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weir::cli::nginx {
namespace {

// Returns true if the translated expression matches `path`, which must be in weir's normal form.
bool finds(const std::string& pcre, const std::string& path) {
  const auto expression = path_expression(pcre);
  EXPECT_TRUE(expression.exact) << pcre;
  const auto match = policy::PathMatch::parse("~" + expression.pattern);
  EXPECT_TRUE(match.has_value()) << expression.pattern;
  return match && match->holds(path);
}

TEST(PathExpression, SpecialCharactersArePercentEncodedAsInNormalisedPaths) {
  EXPECT_TRUE(finds("^/private area/", "/private%20area/x"));
  EXPECT_TRUE(finds("^/v1/users/\\{me\\}/", "/v1/users/%7Bme%7D/"));
  EXPECT_TRUE(finds("^/a\\|b", "/a%7Cb"));
  EXPECT_TRUE(finds("^/a {2}b$", "/a%20%20b"));
  EXPECT_TRUE(finds("^/caf\xc3\xa9$", "/caf%C3%A9"));
  EXPECT_TRUE(finds("^/a%b", "/a%25b"));
  EXPECT_FALSE(finds("^/a\\|b", "/a"));
}

TEST(PathExpression, PatternForAnyCharacterAlsoMatchesAPercentEncodedOctet) {
  for (const char* pcre : {"^/a.b$", "^/a[^/]b$", "^/a\\Db$", "^/a.{1}b$", "^/a.*b$"}) {
    EXPECT_TRUE(finds(pcre, "/a%20b")) << pcre;
    EXPECT_TRUE(finds(pcre, "/a-b")) << pcre;
    EXPECT_FALSE(finds(pcre, "/a-bc")) << pcre;
  }
}

TEST(PathExpression, DollarMatchesBeforeAFinalNewlineAsInPcre) {
  EXPECT_TRUE(finds("\\.php$", "/x.php%0A"));
  EXPECT_TRUE(finds("\\.php$", "/x.php"));
  EXPECT_FALSE(finds("\\.php$", "/x.php%0Ab"));
}

TEST(PathExpression, CommonExpressionsAreTranslatedUnchanged) {
  for (const char* pcre :
       {"^/a/(b|c)/[a-z0-9_-]+/\\d{2,3}", "^/~u/.*\\.(gif|jpg)", "(?i)^/a+?", "^/[^/]+/x"}) {
    EXPECT_EQ(path_expression(pcre).pattern, pcre);
    EXPECT_TRUE(path_expression(pcre).exact);
  }
  EXPECT_EQ(path_expression("^/(?<n>a)").pattern, "^/(?P<n>a)");
}

TEST(PathExpression, ExpressionThatMayMissSomePathsIsMarkedAsInexact) {
  for (const char* pcre : {"[a ]", "[A-z]", "[^\"]", "\\s", "\\x20", "a;b", "[[:space:]]", "[\\s]", "\\bx"})
    EXPECT_FALSE(path_expression(pcre).exact) << pcre;
}

TEST(PathExpression, StartIsTheLiteralPrefixOfAllMatchingPaths) {
  EXPECT_EQ(path_expression("^/a b/[cd]").start, "/a%20b/");
  EXPECT_EQ(path_expression("^/a/bc?d").start, "/a/b");
  EXPECT_EQ(path_expression("^/a/(b|c)").start, "/a/");
  EXPECT_EQ(path_expression("^/a|^/b").start, "");
  EXPECT_EQ(path_expression("/a").start, "");
  EXPECT_EQ(path_expression("^/a;b").start, "/a");
}

}  // namespace
}  // namespace weir::cli::nginx
