#include "weir/http/target.hpp"

#include <random>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

std::string path(std::string_view raw) {
  std::string scratch;
  return std::string(normalise_path(raw, scratch));
}

std::string host(std::string_view authority) {
  std::string scratch;
  return std::string(normalise_host(authority, scratch));
}

TEST(NormalisePath, OneResourceHasOneName) {
  for (const char* way :
       {"/a", "//a", "///a", "/./a", "/%61", "/a/../a", "/x/../a", "/x/%2e%2e/a", "/x/%2E./a", "/a;v=1",
        "/a;", "/;x/a", "/../a", "/../../a", "/x/..;y/a", "/a#fragment", "/x/y/../../a"})
    EXPECT_EQ(path(way), "/a") << way;
}

TEST(NormalisePath, KeepsWhatMakesADifference) {
  const std::pair<const char*, const char*> cases[] = {
      {"/a/", "/a/"},
      {"/A", "/A"},
      {"/a%2Fb", "/a%2Fb"},
      {"/a%2fb", "/a%2Fb"},
      {"/a%3b", "/a%3B"},
      {"/%c3%a4", "/%C3%A4"},
      {"/%252e%252e/a", "/%252e%252e/a"},
      {"/%zz%4", "/%zz%4"},
      {"/%", "/%"},
      {"/.well-known/x", "/.well-known/x"},
      {"/...", "/..."},
      {"/a..", "/a.."},
      {"/a b", "/a b"},
  };
  for (const auto& [raw, normal] : cases) EXPECT_EQ(path(raw), normal) << raw;
}

TEST(NormalisePath, DotSegmentsAtTheEndLeaveTheirSlash) {
  const std::pair<const char*, const char*> cases[] = {
      {"/a/.", "/a/"}, {"/a/..", "/"},   {"/a/b/..", "/a/"}, {"/a/b/../", "/a/"},
      {"/a//", "/a/"}, {"/a/;x", "/a/"}, {"/..", "/"},       {"/.", "/"},
      {"//", "/"},     {"/", "/"},       {"", "/"},          {"*", "*"},
  };
  for (const auto& [raw, normal] : cases) EXPECT_EQ(path(raw), normal) << raw;
}

TEST(NormalisePath, WhatIsNormalIsNotCopied) {
  std::string scratch = "untouched";
  const std::string_view raw = "/api/v1/things";
  EXPECT_EQ(normalise_path(raw, scratch).data(), raw.data());
  EXPECT_EQ(scratch, "untouched");
  const std::string_view upper_hex = "/a%2Fb";
  EXPECT_EQ(normalise_path(upper_hex, scratch).data(), upper_hex.data());
}

TEST(NormalisePath, UsesTheScratchAgain) {
  std::string scratch;
  scratch.reserve(256);
  const auto* storage = scratch.data();
  EXPECT_EQ(normalise_path("/x/../" + std::string(100, 'a'), scratch).data(), storage);
  EXPECT_EQ(normalise_path("//b", scratch), "/b");
  EXPECT_EQ(scratch.data(), storage);
}

// Whatever comes: normal form begins with '/', holds no dot or empty segment, and is its own normal form.
TEST(NormalisePath, IsAFixedPointOfItself) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const char* pieces[] = {"/", ".", "..", "%2e", "%2F", ";", "a", "%", "%61", "%C3", "5", "//", "2", "B"};
  for (int i = 0; i < 20'000; ++i) {
    std::string raw = "/";
    for (auto left = random() % 12; left > 0; --left) raw += pieces[random() % std::size(pieces)];
    const auto once = path(raw);
    ASSERT_TRUE(once.starts_with('/')) << raw;
    ASSERT_EQ(once.find("//"), std::string::npos) << raw;
    ASSERT_EQ((once + "/").find("/./"), std::string::npos) << raw;
    ASSERT_EQ((once + "/").find("/../"), std::string::npos) << raw;
    // "%%361" is "%61", and that once more is not wanted.
    if (once.find('%') == std::string::npos) {
      ASSERT_EQ(path(once), once) << raw;
    }
  }
}

TEST(NormaliseHost, LowerCaseWithoutPortAndTrailingDot) {
  const std::pair<const char*, const char*> cases[] = {
      {"api.example.com", "api.example.com"},
      {"API.Example.COM", "api.example.com"},
      {"api.example.com:8443", "api.example.com"},
      {"api.example.com.", "api.example.com"},
      {"Api.example.com.:443", "api.example.com"},
      {"[2001:DB8::1]:443", "[2001:db8::1]"},
      {"[::1]", "[::1]"},
      {"203.0.113.7:80", "203.0.113.7"},
      {"", ""},
      {":80", ""},
      {"[::1", "[::1"},
  };
  for (const auto& [raw, normal] : cases) EXPECT_EQ(host(raw), normal) << raw;
}

TEST(NormaliseHost, WhatIsNormalIsNotCopied) {
  std::string scratch = "untouched";
  const std::string_view raw = "api.example.com:8443";
  EXPECT_EQ(normalise_host(raw, scratch).data(), raw.data());
  EXPECT_EQ(scratch, "untouched");
}

}  // namespace
}  // namespace weir::http
