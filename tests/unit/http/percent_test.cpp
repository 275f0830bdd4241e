#include "weir/http/percent.hpp"

#include <random>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

using namespace std::string_view_literals;

TEST(Percent, DecodesEachEscapeOnlyOnceAndKeepsInvalidEscapes) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", ""},          {"plain", "plain"}, {"%61", "a"},          {"a%2Fb%2fc", "a/b/c"}, {"%2561", "%61"},
      {"100%", "100%"},  {"%4", "%4"},       {"%zz%41", "%zzA"},    {"%%41", "%A"},         {"a+b", "a+b"},
      {"%00"sv, "\0"sv}, {"%ff", "\xff"},    {"%C3%BC", "\xc3\xbc"}};
  for (const auto& [raw, text] : cases) {
    std::string scratch;
    EXPECT_EQ(percent_decoded(raw, scratch), text) << raw;
    EXPECT_TRUE(decodes_to(raw, text)) << raw;
    EXPECT_FALSE(decodes_to(raw, std::string(text) + "x")) << raw;
    EXPECT_FALSE(decodes_to(std::string(raw) + "x", text)) << raw;
  }
}

TEST(Percent, DecodesPlusAsASpaceInForms) {
  std::string scratch;
  EXPECT_EQ(percent_decoded("a+b%2B%20", scratch, Plus::Blank), "a b+ ");
  EXPECT_TRUE(decodes_to("a+b%2B", "a b+", Plus::Blank));
  EXPECT_FALSE(decodes_to("a+b", "a+b", Plus::Blank));
  EXPECT_EQ(percent_decoded("a%20+", scratch), "a +");
}

TEST(Percent, TextWithoutEncodedCharactersIsReturnedWithoutACopy) {
  std::string scratch = "untouched";
  const std::string_view raw = "value";
  EXPECT_EQ(percent_decoded(raw, scratch).data(), raw.data());
  EXPECT_EQ(scratch, "untouched");
}

// The decoded text must be the same whichever octets a client has encoded.
TEST(Percent, EverySpellingOfATextDecodesToTheSameText) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr char kUpper[] = "0123456789ABCDEF";
  constexpr char kLower[] = "0123456789abcdef";
  for (int i = 0; i < 10'000; ++i) {
    std::string text, raw, scratch;
    for (auto n = random() % 12; n > 0; --n) {
      const auto octet = static_cast<unsigned char>(random());
      text.push_back(static_cast<char>(octet));
      const auto* digits = random() % 2 != 0 ? kUpper : kLower;
      if (octet == '%' || random() % 2 != 0)
        raw.append({'%', digits[octet >> 4], digits[octet & 15]});
      else
        raw.push_back(static_cast<char>(octet));
    }
    ASSERT_EQ(percent_decoded(raw, scratch), text);
    ASSERT_TRUE(decodes_to(raw, text));
  }
}

}  // namespace
}  // namespace weir::http
