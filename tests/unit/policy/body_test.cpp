#include "weir/policy/body.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

bool contains(std::string_view body, const std::vector<std::string>& texts) {
  std::vector<std::string> words;
  words.reserve(texts.size());
  for (const auto& text : texts) words.push_back(body_word(text));
  return body_contains(body, words);
}

TEST(BodyContains, AnyWordWithoutCase) {
  EXPECT_TRUE(contains("Win a FREE prize", {"bitcoin", "free"}));
  EXPECT_TRUE(contains("win a free prize", {"FREE"}));
  EXPECT_TRUE(contains("free", {"free"}));
  EXPECT_TRUE(contains("carefree", {"free"}));  // anywhere, not as a word of its own
  EXPECT_FALSE(contains("f-ree", {"free"}));
  EXPECT_FALSE(contains("fre", {"free"}));
  EXPECT_FALSE(contains("", {"free"}));
  EXPECT_FALSE(contains("anything", {}));
  EXPECT_TRUE(contains("", {""}));
}

TEST(BodyContains, OctetsBeyondAsciiAreThemselves) {
  EXPECT_TRUE(contains("gratis f\xc3\xbcr dich", {"F\xc3\xbcR"}));
  EXPECT_FALSE(contains("gratis f\xc3\x9cr dich", {"f\xc3\xbcr"}));
  EXPECT_TRUE(contains(std::string_view("a\0Free", 6), {"free"}));
  EXPECT_FALSE(contains("[", {"{"}));  // '[' and '{' differ by the bit that tells cases apart
}

}  // namespace
}  // namespace weir::policy
