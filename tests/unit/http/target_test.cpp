#include "weir/http/target.hpp"

#include "weir/http/path_interpretations.hpp"

#include <cctype>
#include <cstdio>
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

// Calls `check` with many short texts of these octets.
template <class Check>
void for_random_texts(std::string_view octets, Check check) {
  std::mt19937 random(42);
  for (int i = 0; i < 200'000; ++i) {
    std::string text(random() % 12, '/');
    for (auto& c : text) c = octets[random() % octets.size()];
    check(text);
  }
}

TEST(PlainPath, RecognisesUsualPaths) {
  for (const char* raw : {"/", "/api/v1/things", "/a.b/c.html", "/a/", "/A-_~!$&'()*+,=:@", "/a..b"})
    EXPECT_TRUE(is_plain_path(raw)) << raw;
  for (const char* raw : {"", "*", "a", "//", "/a//b", "/.", "/a/../b", "/.well-known", "/a;b", "/%61",
                          "/a\\b", "/a b", "/a#b", "/\xC3\xA4", "/a\"b"})
    EXPECT_FALSE(is_plain_path(raw)) << raw;
}

TEST(PlainPath, IsItsOwnNormalFormAndHasNoFaultOrOtherInterpretation) {
  for_random_texts("///aB..;%2f0\\#\xFF_", [](const std::string& raw) {
    if (!is_plain_path(raw)) return;
    std::string scratch;
    PathInterpretations interpretations;
    ASSERT_EQ(normalise_path(raw, scratch).data(), raw.data()) << raw;
    ASSERT_EQ(path_fault(raw), nullptr) << raw;
    ASSERT_EQ(path_warning(raw), nullptr) << raw;
    ASSERT_FALSE(find_path_interpretations(raw, raw, interpretations)) << raw;
  });
}

TEST(PlainHost, RecognisesUsualHosts) {
  const std::pair<const char*, const char*> cases[] = {{"example.com", "example.com"},
                                                       {"example.com:8080", "example.com"},
                                                       {"127.0.0.1:65535", "127.0.0.1"},
                                                       {"a_b-c", "a_b-c"},
                                                       {"", ""},
                                                       {"Example.com", ""},
                                                       {"example.com.", ""},
                                                       {"a..b", ""},
                                                       {".a", ""},
                                                       {"a:65536", ""},
                                                       {"a:x", ""},
                                                       {"[::1]", ""},
                                                       {"a%41", ""}};
  for (const auto& [authority, name] : cases) EXPECT_EQ(plain_host(authority), name) << authority;
}

TEST(PlainHost, IsTheNormalFormOfAValidAuthority) {
  for_random_texts("aZ09-_..:[]%@/ \xFF", [](const std::string& authority) {
    const auto name = plain_host(authority);
    if (name.empty()) return;
    ASSERT_TRUE(valid_authority(authority)) << authority;
    ASSERT_EQ(name, host(authority)) << authority;
  });
}

TEST(NormalisePath, AllSpellingsOfAPathHaveTheSameNormalForm) {
  for (const char* way :
       {"/a", "//a", "///a", "/./a", "/%61", "/a/../a", "/x/../a", "/x/%2e%2e/a", "/x/%2E./a", "/a;v=1",
        "/a;", "/a%3Bv", "/;x/a", "/%3bx/a", "/../a", "/../../a", "/x/..;y/a", "/a#fragment", "/x/y/../../a"})
    EXPECT_EQ(path(way), "/a") << way;
}

// A path may contain the octets of pchar (RFC 3986 §3.3) unencoded. Servers decode such octets before they
// look up the resource, so the encoded form names the same resource.
TEST(NormalisePath, DecodesCharactersThatAPathMayContain) {
  for (const char c : std::string_view("-._~!$&'()*+,=:@")) {
    char encoded[4];
    std::snprintf(encoded, sizeof encoded, "%%%02x", static_cast<unsigned>(c));
    const auto normal = std::string("/a") + c + "b";
    EXPECT_EQ(path(std::string("/a") + encoded + "b"), normal);
    EXPECT_EQ(path(normal), normal);
  }
}

TEST(NormalisePath, EncodesOctetsThatAPathMayNotContainInUpperCaseHexadecimal) {
  for (unsigned c = 0; c < 256; ++c) {
    const char octet = static_cast<char>(c);
    if (std::isalnum(static_cast<int>(c)) != 0 && c < 0x80) continue;
    if (std::string_view("-._~!$&'()*+,=:@/;#").find(octet) != std::string_view::npos) continue;
    char upper[4], lower[4];
    std::snprintf(upper, sizeof upper, "%%%02X", c);
    std::snprintf(lower, sizeof lower, "%%%02x", c);
    const auto normal = std::string("/a") + upper + "b";
    EXPECT_EQ(path(normal), normal);
    EXPECT_EQ(path(std::string("/a") + lower + "b"), normal);
    EXPECT_EQ(path(std::string("/a") + octet + "/b"), std::string("/a") + upper + "/b");
  }
}

TEST(NormalisePath, PathsThatNameDifferentResourcesHaveDifferentNormalForms) {
  const std::pair<const char*, const char*> cases[] = {
      {"/a/", "/a/"},
      {"/A", "/A"},
      {"/a%2Fb", "/a%2Fb"},
      {"/a%2fb", "/a%2Fb"},
      {"/a%3fb%23", "/a%3Fb%23"},
      {"/%c3%a4", "/%C3%A4"},
      {"/caf\xc3\xa9", "/caf%C3%A9"},
      {"/%C0%AF%c1%a1", "/%C0%AF%C1%A1"},  // overlong UTF-8 forms, not a slash or a letter
      {"/%252e%252e/a", "/%252e%252e/a"},  // decoded only once
      {"/%256cogin", "/%256cogin"},
      {"/%zz%4", "/%25zz%254"},
      {"/%%361", "/%2561"},
      {"/%", "/%25"},
      {"/.well-known/x", "/.well-known/x"},
      {"/...", "/..."},
      {"/a..", "/a.."},
      {"/login.", "/login."},
      {"/login%20", "/login%20"},
      {"/a b", "/a%20b"},
      {"/a%5cb", "/a%5Cb"},
  };
  for (const auto& [raw, normal] : cases) EXPECT_EQ(path(raw), normal) << raw;
}

TEST(PathWarning, WarnsOfPathsThatServersReadDifferently) {
  for (const char* raw : {"/a\\b", "/a%00", "/login%00.js", "/a/..;x/b", "/a/%2e.%3bx/b", "/a/.;/b", "/..;/a",
                          "/a//../b", "/a/;x/../b", "/a/%3B/../b", "/a//b/../../c", "/a//./../b"})
    EXPECT_NE(path_warning(raw), nullptr) << raw;
  for (const char* raw : {"/", "*", "/a//b", "/a/../b", "//../a", "///a/../b", "/;x/../b", "/a;x/../b",
                          "/a/...;x", "/a/..b;x", "/a%2500", "/a%5Cb", "/../a", "/a/b/../c//"})
    EXPECT_EQ(path_warning(raw), nullptr) << raw << ": " << path_warning(raw);
}

// A server such as nginx decodes slashes before it removes dot segments. The server then reads a path that
// differs from the normal form.
TEST(PathWarning, WarnsOfAnEncodedSlashThatIsRemovedFromTheNormalisedPath) {
  for (const std::string slash : {"%2f", "%2F", "%5c", "%5C", "%25"}) {
    for (const std::string& raw :
         {"/pub;" + slash + "..;x/admin", "/a;v=" + slash, "/a%3bv=" + slash, "/;" + slash + "/a",
          "/admin" + slash + "z/../secret", "/" + slash + "/../a", "/x/a" + slash + "/b/../../c",
          "/a/.." + slash + "b", "/a/b" + slash + "..", "/a/%2e" + slash + "b",
          "/a/b" + slash + "%2E" + slash})
      EXPECT_NE(path_warning(raw), nullptr) << raw;
    for (const std::string& raw :
         {"/a" + slash + "b", "/a" + slash + "b;x", "/" + slash, "/a" + slash + "b/c/../d", "/c/../a" + slash,
          "/a" + slash + "...", "/a.." + slash + "b", "/./a" + slash})
      EXPECT_EQ(path_warning(raw), nullptr) << raw << ": " << path_warning(raw);
  }
  EXPECT_EQ(path_warning("/pub;v=1/a"), nullptr);
  EXPECT_EQ(path_warning("/%20/../a"), nullptr);
}

TEST(NormalisePath, SlashBeforeAFinalDotSegmentIsKept) {
  const std::pair<const char*, const char*> cases[] = {
      {"/a/.", "/a/"}, {"/a/..", "/"},   {"/a/b/..", "/a/"}, {"/a/b/../", "/a/"},
      {"/a//", "/a/"}, {"/a/;x", "/a/"}, {"/..", "/"},       {"/.", "/"},
      {"//", "/"},     {"/", "/"},       {"", "/"},          {"*", "*"},
  };
  for (const auto& [raw, normal] : cases) EXPECT_EQ(path(raw), normal) << raw;
}

TEST(NormalisePath, PathInNormalFormIsReturnedWithoutACopy) {
  std::string scratch = "untouched";
  const std::string_view raw = "/api/v1/things";
  EXPECT_EQ(normalise_path(raw, scratch).data(), raw.data());
  EXPECT_EQ(scratch, "untouched");
  const std::string_view upper_hex = "/a%2Fb";
  EXPECT_EQ(normalise_path(upper_hex, scratch).data(), upper_hex.data());
}

TEST(NormalisePath, NormalisedPathIsWrittenIntoTheCallersBuffer) {
  std::string scratch;
  scratch.reserve(256);
  const auto* storage = scratch.data();
  EXPECT_EQ(normalise_path("/x/../" + std::string(100, 'a'), scratch).data(), storage);
  EXPECT_EQ(normalise_path("//b", scratch), "/b");
  EXPECT_EQ(scratch.data(), storage);
}

// Every normal form begins with '/', has no dot or empty segment, and is its own normal form.
TEST(NormalisePath, SecondNormalisationChangesNothing) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const char* pieces[] = {"/",   ".", "..", "%2e", "%2F", ";",   "a",    "%",  "%61",
                          "%C3", "5", "//", "2",   "B",   "%40", "\xe9", "%3b"};
  for (int i = 0; i < 20'000; ++i) {
    std::string raw = "/";
    for (auto left = random() % 12; left > 0; --left) raw += pieces[random() % std::size(pieces)];
    const auto once = path(raw);
    ASSERT_TRUE(once.starts_with('/')) << raw;
    ASSERT_EQ(once.find("//"), std::string::npos) << raw;
    ASSERT_EQ((once + "/").find("/./"), std::string::npos) << raw;
    ASSERT_EQ((once + "/").find("/../"), std::string::npos) << raw;
    ASSERT_EQ(path(once), once) << raw;
    ASSERT_EQ(path_spelling(once), once) << raw;
  }
}

TEST(NormaliseHost, ReturnsLowerCaseWithoutPortAndTrailingDot) {
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

TEST(NormaliseHost, AllSpellingsOfAnIpv6AddressGiveTheSameHost) {
  for (const char* spelt :
       {"[::1]", "[::1]:8080", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]:1", "[0::1]",
        "[::0:1]", "[0:0::0:0:1]", "[::0.0.0.1]"})
    EXPECT_EQ(host(spelt), "[::1]") << spelt;
  for (const char* spelt :
       {"[2001:db8::a]", "[2001:DB8::A]:443", "[2001:0db8:0:0:0:0:0:000a]", "[2001:db8:0:0::a]"})
    EXPECT_EQ(host(spelt), "[2001:db8::a]") << spelt;
  EXPECT_EQ(host("[::ffff:203.0.113.7]"), host("[::FFFF:cb00:7107]"));
  EXPECT_NE(host("[::ffff:203.0.113.7]"), "203.0.113.7") << "the address of another family";
  EXPECT_EQ(host("[v1.x]"), "[v1.x]");
}

TEST(NormaliseHost, HostInNormalFormIsReturnedWithoutACopy) {
  std::string scratch = "untouched";
  const std::string_view raw = "api.example.com:8443";
  EXPECT_EQ(normalise_host(raw, scratch).data(), raw.data());
  EXPECT_EQ(scratch, "untouched");
}

}  // namespace
}  // namespace weir::http
