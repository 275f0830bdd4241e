#include "weir/http/path_interpretations.hpp"

#include "weir/http/target.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::http {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

// Returns the interpretations that differ from the normal form. Returns none if all servers read the normal
// form.
PathInterpretations interpretations_of(std::string_view raw) {
  std::string scratch;
  PathInterpretations interpretations;
  const bool several = find_path_interpretations(raw, normalise_path(raw, scratch), interpretations);
  if (!several) return {};
  return interpretations;
}

TEST(PathInterpretations, NoneIsFoundIfAllServersReadThePathAlike) {
  for (const char* raw : {"/", "/a/b", "/.well-known/x", "/a%20b", "/caf%C3%A9", "/caf\xc3\xa9", "/a//b",
                          "/a//b/../c", "/a/./b/../c", "/a;v=1/b", "/a%3Bv", "/;x/a", "/%61", "*",
                          "/%E0%A4%85", "/a/../b", "/sale;off=50%25"})
    EXPECT_THAT(interpretations_of(raw).others, IsEmpty()) << raw;
}

TEST(PathInterpretations, IncludeThePathOfServersThatDecodeASlashInAPathParameter) {
  const auto interpretations = interpretations_of("/signin;returnPath=%2Ftrack");
  EXPECT_TRUE(interpretations.equal);
  EXPECT_THAT(interpretations.others, ::testing::ElementsAre("/signin/track"));
}

// Each expected path is a path that some server reads, whether or not that server is right.
TEST(PathInterpretations, IncludeThePathThatEachServerReads) {
  const std::pair<const char*, const char*> cases[] = {
      {"/%2fadmin", "/admin"},
      {"/x%2f..%2fadmin", "/admin"},
      {"/x/..%2fadmin", "/admin"},
      {"/x/..%5cadmin", "/admin"},
      {"/x%5c..%5cadmin", "/admin"},
      {"/%5cadmin", "/admin"},
      {"/%2561dmin", "/admin"},
      {"/%252fadmin", "/admin"},
      {"/%255cadmin", "/admin"},
      {"/x/%252e%252e/admin", "/admin"},
      {"/x/%252e%252e%252fadmin", "/admin"},
      {"/x/%25%32%65%25%32%65/admin", "/admin"},
      {"/%%36%31dmin", "/admin"},
      {"/x/..;/admin", "/admin"},
      {"/x/..;/admin", "/x/..;/admin"},
      {"/x/%2e%2e;/admin", "/admin"},
      {"/x/%2e%2e;a=b/admin", "/admin"},
      {"/x/..%3b/admin", "/admin"},
      {"/x/..%253b/admin", "/admin"},
      {"/a/..%3B/..;/admin", "/a/admin"},
      {"/x//../admin", "/admin"},
      {"/admin//../x", "/admin/x"},
      {"/x;%2f..%2f../admin", "/admin"},
      {"/%c0%afadmin", "/admin"},
      {"/%c1%a1dmin", "/admin"},
      {"/\xc1\xa1"
       "dmin",
       "/admin"},
      {"/%e0%81%a1dmin", "/admin"},
      {"/%f0%80%81%a1dmin", "/admin"},
      {"/x/%c0%ae%c0%ae/admin", "/admin"},
      {"/x/%c0%ae%c0%ae%c0%afadmin", "/admin"},
      {"/%u0061dmin", "/admin"},
      {"/x/%u002e%u002e/admin", "/admin"},
      {"/x%u002f..%u002fadmin", "/admin"},
      {"/x/%252e%252e/../admin", "/admin"},
      {"/x/%252e%252e/../admin", "/x/admin"},
  };
  std::string scratch;
  for (const auto& [raw, reading] : cases) {
    auto all = interpretations_of(raw).others;
    all.emplace_back(normalise_path(raw, scratch));
    EXPECT_THAT(all, Contains(reading)) << raw;
  }
}

TEST(PathInterpretations, AreMarkedAsUnlikelyIfOnlyFewServersReadAnotherPath) {
  for (const char* raw : {"/a%2Fb", "/a%5Cb", "/%2561", "/%C0%AF", "/group%2Fproject/issues"}) {
    const auto interpretations = interpretations_of(raw);
    EXPECT_FALSE(interpretations.equal) << raw;
    EXPECT_FALSE(interpretations.others.empty()) << raw;
  }
}

TEST(PathInterpretations, NumberOfInterpretationsIsBoundedForLongPaths) {
  std::string raw = "/admin;%2F%5C%25%3B/..";
  while (raw.size() < 16'000) raw += "/a%2F%255C..;%2F%3B";
  const auto interpretations = interpretations_of(raw);
  EXPECT_TRUE(interpretations.too_many);
  EXPECT_THAT(interpretations.others, IsEmpty());
  EXPECT_TRUE(interpretations_of("/%2F" + std::string(7'800, 'a')).too_many);
  std::string slashes = "/";
  for (int i = 0; i < 2'600; ++i) slashes += "%2F";
  EXPECT_TRUE(interpretations_of(slashes).too_many);
  EXPECT_FALSE(interpretations_of("/x" + std::string(1000, 'a') + "/%2fadmin").too_many);
}

// Each interpretation is in normal form except for parameters, and no interpretation is listed twice.
TEST(PathInterpretations, AreInNormalFormAndListedOnlyOnce) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const char* pieces[] = {"/", "..", ".", "%2e", "%2F", "%5c", ";", "a", "%25", "%3b", "%c0%ae", "%u002f"};
  std::string scratch;
  for (int i = 0; i < 5'000; ++i) {
    std::string raw = "/";
    for (auto left = random() % 12; left > 0; --left) raw += pieces[random() % std::size(pieces)];
    auto others = interpretations_of(raw).others;
    for (const auto& other : others) {
      ASSERT_TRUE(other.starts_with('/')) << raw;
      ASSERT_EQ(path_spelling(other), other) << raw;
      ASSERT_EQ(other.find("//"), std::string::npos) << raw;
      ASSERT_NE(other, normalise_path(raw, scratch)) << raw;
    }
    std::sort(others.begin(), others.end());
    ASSERT_EQ(std::adjacent_find(others.begin(), others.end()), others.end()) << raw;
  }
}

}  // namespace
}  // namespace weir::http
