#include "weir/policy/body.hpp"

#include <random>
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

TEST(BodyContains, FindsAnyWordIgnoringCase) {
  EXPECT_TRUE(contains("Win a FREE prize", {"bitcoin", "free"}));
  EXPECT_TRUE(contains("win a free prize", {"FREE"}));
  EXPECT_TRUE(contains("free", {"free"}));
  EXPECT_TRUE(contains("carefree", {"free"}));  // a word may be part of a longer word
  EXPECT_FALSE(contains("f-ree", {"free"}));
  EXPECT_FALSE(contains("fre", {"free"}));
  EXPECT_FALSE(contains("", {"free"}));
  EXPECT_FALSE(contains("anything", {}));
  EXPECT_TRUE(contains("", {""}));
}

TEST(BodyContains, FindsWordsOfOneOctetAndWordsAtTheEndOfTheBody) {
  EXPECT_TRUE(contains("x", {"X"}));
  EXPECT_TRUE(contains("abX", {"zz", "x"}));
  EXPECT_TRUE(contains("Xab", {"x"}));
  EXPECT_FALSE(contains("ab", {"x"}));
  EXPECT_TRUE(contains("the free", {"free"}));
  EXPECT_FALSE(contains("the fre", {"free"}));
  EXPECT_FALSE(contains("f", {"free"}));
  EXPECT_TRUE(contains(std::string_view("a\0", 2), {std::string(1, '\0')}));
}

// Compares the result with a separate search for each word.
TEST(BodyContains, FindsTheSameWordsAsASeparateSearchForEachWord) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto text = [&](std::size_t most) {
    std::string out;
    for (auto n = random() % (most + 1); n > 0; --n) out += "abAB\xe4"[random() % 5];
    return out;
  };
  for (int i = 0; i < 10'000; ++i) {
    const auto body = text(20);
    const std::vector<std::string> words{text(4) + "a", text(4) + "b", text(4) + "\xc4"};
    bool found = false;
    for (const auto& word : words)
      found = found || body_word(body).find(body_word(word)) != std::string::npos;
    ASSERT_EQ(contains(body, words), found) << body << ": " << words[0] << ' ' << words[1] << ' ' << words[2];
  }
}

TEST(BodyContains, ComparesNonAsciiOctetsExactly) {
  EXPECT_TRUE(contains("gratis f\xc3\xbcr dich", {"F\xc3\xbcR"}));
  EXPECT_FALSE(contains("gratis f\xc3\x9cr dich", {"f\xc3\xbcr"}));
  EXPECT_TRUE(contains(std::string_view("a\0Free", 6), {"free"}));
  // in ASCII, '[' and '{' differ only in the bit that distinguishes upper and lower case
  EXPECT_FALSE(contains("[", {"{"}));
}

TEST(BodyContains, FindsWordsInEveryEncodingThatUpstreamsDecode) {
  const std::vector<std::string> words{"free \xf0\x9f\x8e\x81", "a/b"};
  for (const auto* body :
       {R"({"t": "\u0066r\u0045e \uD83C\udf81"})", "t=%66re%65+%F0%9F%8E%81", R"({"t": "a\/b"})", "t=a%2Fb",
        "t=%7B%22t%22%3A%22\\u0066ree+\xf0\x9f\x8e\x81%22%7D"})  // JSON inside a form field
    EXPECT_TRUE(contains(body, words)) << body;
  for (const auto* body : {R"(\u0066re)", R"(\u00)", R"(\)", R"(fre\e)", "%6", "%%66ree", R"(\ud83c)"})
    EXPECT_FALSE(contains(body, words)) << body;
  EXPECT_TRUE(contains(R"(fr\ee)", {R"(fr\ee)"}));  // weir also searches the body as received
  EXPECT_TRUE(contains(R"(one\ntwo\tthree)", {"one\ntwo\tthree"}));
  EXPECT_TRUE(contains(R"(\u00fc \u20AC)", {"\xc3\xbc \xe2\x82\xac"}));
}

}  // namespace
}  // namespace weir::policy
