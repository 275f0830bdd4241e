#include "weir/http/parameters.hpp"

#include "weir/http/head.hpp"
#include "weir/http/percent.hpp"

#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::http {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kMany = 1000;

std::vector<std::string> values(const Parameters& parameters, std::string_view name) {
  std::vector<std::string> values;
  for (const auto& each : parameters.named(name)) values.emplace_back(each.value);
  return values;
}

TEST(Parameters, ReturnsAllValuesOfAParameterInOrder) {
  Parameters parameters;
  parameters.read_query("b=2&a=1&b=1&c&=x&&b", kMany);
  EXPECT_THAT(values(parameters, "b"), ElementsAre("2", "1", ""));
  EXPECT_THAT(values(parameters, "a"), ElementsAre("1"));
  EXPECT_THAT(values(parameters, "c"), ElementsAre(""));
  EXPECT_THAT(values(parameters, ""), ElementsAre("x", ""));
  EXPECT_THAT(values(parameters, "B"), IsEmpty());
}

TEST(Parameters, DecodesNamesAndValues) {
  Parameters parameters;
  parameters.read_query("%61%62=x%20y+z", kMany);
  ASSERT_EQ(parameters.named("ab").size(), 1U);
  const auto& found = parameters.named("ab")[0];
  EXPECT_EQ(found.value, "x%20y+z");
  EXPECT_EQ(found.decoded, "x y+z");
  EXPECT_EQ(found.spaced, "x y z");
}

TEST(Parameters, PlusInANameMatchesBothAPlusAndASpace) {
  Parameters parameters;
  parameters.read_query("a+b=1&a%2Bb=2&a%20b=3", kMany);
  EXPECT_THAT(values(parameters, "a+b"), ElementsAre("1", "2"));
  EXPECT_THAT(values(parameters, "a b"), ElementsAre("1", "3"));
}

TEST(Parameters, QueryWithTooManyParametersHasNoValues) {
  Parameters parameters;
  parameters.read_query("a&a&a", 3);
  EXPECT_FALSE(parameters.too_many());
  parameters.read_query("a&&a&", 3);
  EXPECT_TRUE(parameters.too_many()) << "empty parameters count as well";
  EXPECT_THAT(values(parameters, "a"), IsEmpty());
  parameters.read_query("a=1", 3);
  EXPECT_FALSE(parameters.too_many());
}

TEST(Parameters, ParsesTheCookiesOfAllCookieFields) {
  Parameters cookies;
  cookies.begin_cookies();
  cookies.add_cookies("sid=1; theme = dark ", kMany);
  cookies.add_cookies("sid=2;flag", kMany);
  cookies.end_cookies();
  EXPECT_THAT(values(cookies, "sid"), ElementsAre("1", "2"));
  EXPECT_THAT(values(cookies, "theme"), ElementsAre("dark"));
  EXPECT_THAT(values(cookies, "flag"), ElementsAre(""));
}

TEST(Parameters, CountsTheCookiesOfAllCookieFieldsTogether) {
  Parameters cookies;
  cookies.begin_cookies();
  cookies.add_cookies("a; a", 3);
  cookies.add_cookies("a; a", 3);
  cookies.end_cookies();
  EXPECT_TRUE(cookies.too_many());
  EXPECT_THAT(values(cookies, "a"), IsEmpty());
}

TEST(Parameters, CopyDoesNotKeepTheParsedParameters) {
  Parameters parameters;
  parameters.read_query("%61=1", kMany);
  const Parameters copy(parameters);
  EXPECT_FALSE(copy.is_read());
  EXPECT_THAT(values(copy, "a"), IsEmpty());
}

// Compares the result with a simple search through all parameters for every name.
TEST(Parameters, FindsTheSameValuesAsASearchThroughAllParameters) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::minstd_rand random(seed);
  const std::vector<std::string> pieces{"a", "b", "+", "%61", "%2B", "%20", "%", "=", "&", "&", "=", "b"};
  for (int round = 0; round < 2000; ++round) {
    std::string query;
    for (auto count = random() % 20; count > 0; --count) query += pieces[random() % pieces.size()];
    Parameters parameters;
    parameters.read_query(query, kMany);
    for (const std::string name : {"a", "b", "a b", "a+b", "+", " ", "", "ab"}) {
      std::vector<std::string> expected;
      for (std::string_view rest = query; !rest.empty();) {
        const auto piece = rest.substr(0, rest.find('&'));
        rest.remove_prefix(std::min(piece.size() + 1, rest.size()));
        const auto raw = piece.substr(0, piece.find('='));
        const auto value = piece.substr(std::min(raw.size() + 1, piece.size()));
        const bool same = decodes_to(raw, name) ||
                          (raw.find('+') != std::string_view::npos && decodes_to(raw, name, Plus::Blank));
        if (same) expected.emplace_back(value);
      }
      ASSERT_EQ(values(parameters, name), expected) << query << " / " << name;
    }
  }
}

RequestHead head_of(std::string_view query) {
  RequestHead head;
  head.query = query;
  return head;
}

TEST(RequestHead, ReportsWhetherTooManyParametersOrTooManyRepetitionsWereFound) {
  auto many = head_of("a&a&a&a");
  many.bounds = {.parameters = 3, .repeats = 3};
  EXPECT_FALSE(many.query_values("a").complete);
  EXPECT_EQ(many.excess().kind, Excess::Kind::Parameters);

  auto repeated = head_of("a=1&a=2&b&a=3");
  repeated.bounds = {.parameters = 9, .repeats = 2};
  EXPECT_TRUE(repeated.query_values("b").complete);
  EXPECT_FALSE(repeated.excess());
  const auto found = repeated.query_values("a");
  EXPECT_FALSE(found.complete);
  EXPECT_EQ(found.values.size(), 2U);
  EXPECT_EQ(repeated.excess().kind, Excess::Kind::Repeats);
  EXPECT_EQ(repeated.excess().name, "a");
}

TEST(RequestHead, ClearedHeadHasNoParsedParameters) {
  auto head = head_of("a=1");
  EXPECT_EQ(head.query_values("a").values.size(), 1U);
  head.clear();
  EXPECT_EQ(head.query_values("a").values.size(), 0U);
}

}  // namespace
}  // namespace weir::http
