// Tests changes of the text of a keys file.
#include "weir/config/keys_edit.hpp"

#include "unit/config/configuration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::config::test {
namespace {

using policy::ApiKeyOwner;
using policy::ApiKeys;

constexpr std::string_view kKeys =
    "# the keys of acme\n"
    "[[key]]\n"
    "key = \"a\"   # on the laptop\n"
    "user = \"ann\"\n"
    "# since May\n"
    "tier = \"free\"\n"
    "\n"
    "# the keys of initech\n"
    "[[key]]\n"
    "org = \"initech\"\n"
    "key = \"b\"\n";

EditedKeys set(std::string_view text, std::string_view key, const ApiKeyOwner& owner) {
  return edit_keys(text, "keys.toml",
                   {.digest = ApiKeys::digest(key),
                    .owner = policy::ApiKeyOwnerChange{owner.user, owner.org, owner.tier, owner.service}});
}

EditedKeys remove(std::string_view text, std::string_view key) {
  return edit_keys(text, "keys.toml", {.id = ApiKeys::id_of(ApiKeys::digest(key))});
}

TEST(KeysEdit, NewKeyIsWrittenOnlyAsItsDigest) {
  const auto edited = set(kKeys, "secret", {.user = "eve", .org = "", .tier = "pro", .service = ""});
  ASSERT_EQ(edited.fault, KeyEditFault::None) << edited.why;
  EXPECT_EQ(edited.text, std::string(kKeys) +
                             "\n[[key]]\n"
                             "sha256 = \"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\"\n"
                             "user = \"eve\"\ntier = \"pro\"\n");
  EXPECT_FALSE(edited.was);
  EXPECT_EQ(edited.keys.size(), 3U);
  EXPECT_EQ(edited.keys.find("secret")->tier, "pro");
  EXPECT_EQ(set("", "secret", {}).text.substr(0, 8), "[[key]]\n");
  EXPECT_EQ(set("# none", "secret", {}).keys.size(), 1U) << "the last line has no line break";
}

TEST(KeysEdit, ChangeOfTheOwnerKeepsTheKeyAndTheComments) {
  const auto edited = set(kKeys, "a", {.user = "ann", .org = "acme", .tier = "pro", .service = ""});
  ASSERT_EQ(edited.fault, KeyEditFault::None) << edited.why;
  EXPECT_EQ(edited.text,
            "# the keys of acme\n[[key]]\nkey = \"a\"   # on the laptop\nuser = \"ann\"\n# since May\n"
            "tier = \"pro\"\norg = \"acme\"\n\n"
            "# the keys of initech\n[[key]]\norg = \"initech\"\nkey = \"b\"\n");
  EXPECT_EQ(edited.was->tier, "free");
  const auto last =
      set(kKeys.substr(0, kKeys.size() - 1), "b", {.user = "", .org = "", .tier = "x", .service = ""});
  EXPECT_TRUE(last.text.ends_with("[[key]]\nkey = \"b\"\ntier = \"x\"\n")) << last.text;
}

TEST(KeysEdit, ChangedLineKeepsItsComment) {
  const std::string_view text =
      "[[key]]\nkey = \"a\"\n  user   = 'ann' # on call\ntier = \"a\\\"#b\"  # until May\norg='x'#y\r\n"
      "service = \"s\" # goes\n";
  const auto edited = set(text, "a", {.user = "ann", .org = "z", .tier = "pro", .service = ""});
  ASSERT_EQ(edited.fault, KeyEditFault::None) << edited.why;
  EXPECT_EQ(
      edited.text,
      "[[key]]\nkey = \"a\"\n  user   = 'ann' # on call\ntier = \"pro\"  # until May\norg= \"z\"#y\r\n");
}

TEST(KeysEdit, ChangeKeepsTheValuesThatItDoesNotName) {
  const auto edited = edit_keys(
      kKeys, "keys.toml",
      {.id = ApiKeys::id_of(ApiKeys::digest("a")), .owner = policy::ApiKeyOwnerChange{.tier = "pro"}});
  ASSERT_EQ(edited.fault, KeyEditFault::None) << edited.why;
  EXPECT_EQ(edited.owner, (ApiKeyOwner{"ann", "", "pro", ""}));
  EXPECT_EQ(*edited.keys.find("a"), edited.owner);
  const auto cleared = edit_keys(
      edited.text, "keys.toml",
      {.digest = ApiKeys::digest("a"), .owner = policy::ApiKeyOwnerChange{.user = "", .org = "acme"}});
  EXPECT_EQ(cleared.owner, (ApiKeyOwner{"", "acme", "pro", ""}));
}

TEST(KeysEdit, RemovingAKeyKeepsTheOtherKeys) {
  const auto edited = remove(kKeys, "a");
  ASSERT_EQ(edited.fault, KeyEditFault::None) << edited.why;
  EXPECT_EQ(edited.text,
            "# the keys of acme\n# the keys of initech\n[[key]]\norg = \"initech\"\nkey = \"b\"\n");
  EXPECT_EQ(edited.was->user, "ann");
  EXPECT_EQ(remove(edited.text, "b").keys.size(), 0U);
}

TEST(KeysEdit, TextWithQuotesOrLineBreaksIsReadBackUnchanged) {
  for (const auto* text :
       {"a\"b", "a\\b", "line\nbreak", "\x01", "\x7f", "caf\xc3\xa9", "# no comment", "]]"}) {
    const auto edited = set(kKeys, "n", {.user = text, .org = "", .tier = "", .service = ""});
    ASSERT_EQ(edited.fault, KeyEditFault::None) << text << edited.why;
    EXPECT_EQ(edited.keys.find("n")->user, text);
    EXPECT_EQ(set(edited.text, "n", {}).keys.find("n")->user, "") << text;
  }
}

TEST(KeysEdit, RefusesAnUnknownKeyAndNamesIt) {
  const auto edited = remove(kKeys, "c");
  EXPECT_EQ(edited.fault, KeyEditFault::Unknown);
  EXPECT_EQ(edited.why,
            "keys.toml has no key \"sha256:2e7d2c03a9507ae2\"; GET /api/client-keys lists the keys");
  EXPECT_EQ(
      edit_keys(kKeys, "keys.toml", {.id = "sha256:2e7d2c03a9507ae2", .owner = policy::ApiKeyOwnerChange{}})
          .fault,
      KeyEditFault::Unknown)
      << "an id names no new key";
}

TEST(KeysEdit, RefusesAFileWithMistakes) {
  const auto edited = set("[[key]]\nkey = \"a\"\ncolour = 1\n", "a", {});
  EXPECT_EQ(edited.fault, KeyEditFault::Mistakes);
  EXPECT_THAT(edited.why, testing::StartsWith("keys.toml:3: "));
  EXPECT_TRUE(edited.text.empty());
}

// weir edits the text of the file line by line. To damage no file, weir refuses a file unless its keys are
// [[key]] tables with one entry a line.
TEST(KeysEdit, RefusesAFileThatDoesNotWriteEachValueOnALineOfItsOwn) {
  for (const auto* text :
       {"key = [{ key = \"a\", user = \"u\" }]\n", "[[key]]\nkey = \"a\"\n\"user\" = \"u\"\n",
        "[[key]]\nkey = \"a\"\nuser = \"\"\"\nu\n[[key]]\n\"\"\"\n"}) {
    const auto edited = set(text, "a", {.user = "v", .org = "", .tier = "", .service = ""});
    EXPECT_EQ(edited.fault, KeyEditFault::OtherForm) << text << edited.why << edited.text;
    EXPECT_EQ(edited.why,
              "keys.toml writes the key in a form that weir cannot change; write each key as a [[key]] table "
              "with one entry a line, or change the file by hand");
  }
}

TEST(KeysEdit, WarnsOfATierThatNoRuleOrRouteUses) {
  const auto settings = parse(with("tiers = { pro = { limit = \"2/s\" } }\n"));
  EXPECT_FALSE(warn_of_unused_tier(settings, "pro"));
  EXPECT_FALSE(warn_of_unused_tier(settings, ""));
  EXPECT_EQ(warn_of_unused_tier(settings, "pru"),
            "the tier \"pru\" is not used by any rule or route, so the key gets the limits of keys without a "
            "tier; did you mean \"pro\"?");
}

}  // namespace
}  // namespace weir::config::test
