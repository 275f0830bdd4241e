// Tests reading of keys files.
#include "config/read/client/keys_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::config::test {
namespace {

using ::testing::ElementsAre;

class KeysFileTest : public ::testing::Test {
 protected:
  const KeysFile& read(std::string_view text) { return keys_ = read_keys(text, "keys.toml", mistakes_); }

  ConfigErrors mistakes_;
  KeysFile keys_;
};

TEST_F(KeysFileTest, OwnerOfAKeyIsFoundIfTheFileHasTheKeyOrItsDigest) {
  const auto& ring = read(
                         "[[key]]\nkey = \"a\"\nuser = \"paula\"\ntier = \"gold\"\n"
                         "[[key]]\norg = \"acme\"\n"
                         "sha256 = \"3E23E8160039594A33894F6564E1B1348BBD7A0088D42C4ACB73EEAED59C009D\"\n")
                         .ring;
  EXPECT_TRUE(mistakes_.empty());
  ASSERT_NE(ring.find("a"), nullptr);
  EXPECT_EQ(ring.find("a")->user, "paula");
  EXPECT_EQ(ring.find("a")->tier, "gold");
  ASSERT_NE(ring.find("b"), nullptr) << "SHA-256 of \"b\", in capitals";
  EXPECT_EQ(ring.find("b")->org, "acme");
  EXPECT_EQ(ring.find("c"), nullptr);
}

TEST_F(KeysFileTest, TierHasTheLineOfItsFirstKeyAndTellsWhetherAnyOfItsKeysHasAnOwner) {
  read(
      "[[key]]\nkey = \"a\"\ntier = \"gold\"\n[[key]]\nkey = \"b\"\ntier = \"gold\"\nuser = \"u\"\n"
      "[[key]]\nkey = \"c\"\ntier = \"free\"\n");
  EXPECT_EQ(keys_.tiers["gold"].where, "keys.toml:1");
  EXPECT_FALSE(keys_.tiers["gold"].alone);
  EXPECT_EQ(keys_.tiers["free"].where, "keys.toml:8");
  EXPECT_TRUE(keys_.tiers["free"].alone);
}

TEST_F(KeysFileTest, ReportsMistakesWithoutShowingAnApiKey) {
  read(
      "[[key]]\nkey = \"secret\"\nsha256 = \"secret\"\n[[key]]\nsha256 = \"secret\"\n[[key]]\n"
      "[[key]]\nkey = \"secret\"\n[[key]]\nkey = \"secret\"\n");
  EXPECT_THAT(mistakes_.lines(),
              ElementsAre("keys.toml:1: key[#1]: found both key and sha256; expected one of them",
                          "keys.toml:5: key[#2].sha256: not a SHA-256; expected 64 hexadecimal digits",
                          "keys.toml:6: key[#3]: found neither key nor sha256; expected one of them",
                          "keys.toml:9: key[#5]: this key appears in the file twice; remove one of them"));
  EXPECT_EQ(keys_.ring.size(), 1);
}

TEST_F(KeysFileTest, NeverQuotesALineThatIsInvalidToml) {
  for (const char* line :
       {"kye = \"secret", "keys \"secret\"", "key = \"sec\\qret\"", "secret", "key = secret", "[secret"}) {
    ConfigErrors mistakes;
    (void)read_keys(std::string("[[key]]\n") + line + "\n", "keys.toml", mistakes);
    ASSERT_EQ(mistakes.lines().size(), 1U) << line;
    EXPECT_THAT(mistakes.lines().front(), ::testing::StartsWith("keys.toml:2: found a line that is not TOML"))
        << line;
    EXPECT_THAT(mistakes.lines().front(), ::testing::Not(::testing::ContainsRegex("sec|qret"))) << line;
  }
}

}  // namespace
}  // namespace weir::config::test
