// Tests that must hold for each key of each table in the schema.
#include "config/schema/schema.hpp"

#include "unit/config/configuration.hpp"

#include <random>

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The text that opens a table, such as its header, and the table's path in messages. A key of the table may
// follow the text.
struct Door {
  const TableSpec* spec;
  std::string path;
  std::string opening;
};

const std::vector<Door>& doors() {
  static const std::vector<Door> kDoors = {
      {&schema::kServer, "server.", "[server]\n"},
      {&schema::kLog, "log.", "[log]\n"},
      {&schema::kAdmin, "admin.", "[admin]\n"},
      {&schema::kListener, "listener[#2].", "[[listener]]\n"},
      {&schema::kTls, "listener[#2].tls.", "[[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\n"},
      {&schema::kCertificate, "listener[#2].tls.certificates[#1].",
       "[[listener]]\naddress = \"127.0.0.1:0\"\n[[listener.tls.certificates]]\n"},
      {&schema::kClient, "client.", "[client]\n"},
      {&schema::kApiKeySource, "client.api_key.", "[client.api_key]\n"},
      {&schema::kSource, "client.user.", "[client.user]\n"},
      {&schema::kTierSource, "client.tier.", "[client.tier]\n"},
      {&schema::kJwt, "client.jwt.", "[client.jwt]\n"},
      {&schema::kKeyFetch, "client.jwt.fetch.", "[client.jwt]\njwks = \"https://a\"\n[client.jwt.fetch]\n"},
      {&schema::kState, "state.", "[state]\n"},
      {&schema::kMemory, "state.memory.", "[state.memory]\n"},
      {&schema::kRedis, "state.redis.", "[state.redis]\n"},
      {&schema::kRedisTls, "state.redis.tls.", "[state.redis]\nurl = \"rediss://a\"\n[state.redis.tls]\n"},
      {&schema::kUpstream, "upstream[#2].", "[[upstream]]\n"},
      {&schema::kServerOfUpstream, "upstream[u].servers[#1].",
       "[[upstream]]\nname = \"u\"\n[[upstream.servers]]\n"},
      {&schema::kTimeouts, "upstream[u].timeouts.",
       "[[upstream]]\nname = \"u\"\nservers = [\"a:1\"]\n[upstream.timeouts]\n"},
      {&schema::kEject, "upstream[u].eject.",
       "[[upstream]]\nname = \"u\"\nservers = [\"a:1\"]\n[upstream.eject]\n"},
      {&schema::kHealth, "upstream[u].health.",
       "[[upstream]]\nname = \"u\"\nservers = [\"a:1\"]\n[upstream.health]\n"},
      {&schema::kRetry, "upstream[u].retry.",
       "[[upstream]]\nname = \"u\"\nservers = [\"a:1\"]\n[upstream.retry]\n"},
      {&schema::kRoute, "route[#2].", "[[route]]\n"},
      {&schema::kCors, "cors.", "[cors]\n"},
      {&schema::kTracing, "tracing.", "[tracing]\n"},
      {&schema::kAcme, "acme.", "[acme]\n"},
      {&schema::kExternalAccount, "acme.external_account.", "[acme]\n[acme.external_account]\n"},
      {&schema::kRespond, "route[#2].respond.", "[[route]]\n[route.respond]\n"},
      {&schema::kMatch, "route[#2].match.", "[[route]]\n[route.match]\n"},
      {&schema::kMatch, "rule[x].match.not.", "[[rule]]\nname = \"x\"\n[rule.match.not]\n"},
      {&schema::kRule, "rule[#2].", "[[rule]]\n"},
      {&schema::kCost, "rule[x].cost.", "[[rule]]\nname = \"x\"\n[rule.cost]\n"},
      {&schema::kCharge, "rule[x].charge.", "[[rule]]\nname = \"x\"\n[rule.charge]\n"},
      {&schema::kElastic, "rule[x].elastic.", "[[rule]]\nname = \"x\"\n[rule.elastic]\n"},
      {&schema::kAdapt, "rule[x].adapt.", "[[rule]]\nname = \"x\"\n[rule.adapt]\n"},
      {&schema::kPenalty, "rule[x].penalty.", "[[rule]]\nname = \"x\"\n[rule.penalty]\n"},
      {&schema::kTier, "rule[x].tiers.free.", "[[rule]]\nname = \"x\"\n[rule.tiers.free]\n"},
      {&schema::kOverride, "rule[x].overrides[#1].", "[[rule]]\nname = \"x\"\n[[rule.overrides]]\n"},
  };
  return kDoors;
}

std::vector<std::string> mistakes_behind(const Door& door, const std::string& key, const std::string& value) {
  return mistakes_in(with(door.opening + key + " = " + value + "\n"));
}

std::string literal(const KeySpec& key) {
  const std::string text(key.fallback);
  switch (key.kind) {
    case Kind::Bool:
    case Kind::Whole:
    case Kind::Mixed:
      return text;
    case Kind::Texts: {
      std::string list = "[\"" + text + "\"]";
      for (auto space = list.find(' '); space != std::string::npos; space = list.find(' ', space + 4))
        list.replace(space, 1, "\", \"");
      return list;
    }
    default:
      return "\"" + text + "\"";
  }
}

TEST(Schema, RejectsUnknownKeysInEveryTable) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_";
  for (const auto& door : doors()) {
    for (int i = 0; i < 40; ++i) {
      std::string word(1 + random() % 12, 'a');
      for (auto& c : word) c = kLetters[random() % kLetters.size()];
      if (door.spec->find(word) != nullptr) continue;
      EXPECT_THAT(mistakes_behind(door, word, "1"),
                  Contains(HasSubstr(": " + door.path + word + ": unknown key; ")));
    }
  }
}

TEST(Schema, ErrorAboutAnUnknownKeySuggestsTheMostSimilarKey) {
  for (const auto& door : doors()) {
    for (const auto& key : door.spec->keys) {
      if (key.name.size() < 4) continue;
      auto word = std::string(key.name);
      word.erase(2, 1);
      if (door.spec->find(word) != nullptr) continue;
      EXPECT_THAT(mistakes_behind(door, word, "1"),
                  Contains(HasSubstr(door.path + word + ": unknown key; did you mean \"" +
                                     std::string(key.name) + "\"?")));
    }
  }
}

TEST(Schema, RejectsATomlDateForEveryKey) {
  for (const auto& door : doors())
    for (const auto& key : door.spec->keys) {
      if (!key.instead.empty()) continue;
      const auto path = door.path + std::string(key.name) + ": ";
      // `path` is right for the key `name`, too. A message shows the name instead of "#2" only if the name
      // is a string.
      EXPECT_THAT(
          mistakes_behind(door, std::string(key.name), "1979-05-27"),
          Contains(AllOf(HasSubstr(path), HasSubstr("found a date or time"), HasSubstr("; expected "))));
    }
}

TEST(Schema, ErrorAboutAMisplacedKeyNamesTheTableOfTheKey) {
  int refused = 0;
  for (const auto& door : doors())
    for (const auto& key : door.spec->keys) {
      if (key.instead.empty()) continue;
      EXPECT_THAT(mistakes_behind(door, std::string(key.name), "1"),
                  Contains(HasSubstr(door.path + std::string(key.name) + ": unknown key here; write " +
                                     std::string(key.instead))));
      ++refused;
    }
  EXPECT_GT(refused, 0);
}

// Ignores errors that say "only a listener with serves = ". Some keys are errors, whatever their value, on a
// listener that answers no questions, such as the listener in this test.
TEST(Schema, EveryDefaultIsValidForItsKey) {
  for (const auto& door : doors())
    for (const auto& key : door.spec->keys) {
      if (key.fallback.empty()) continue;
      EXPECT_THAT(mistakes_behind(door, std::string(key.name), literal(key)),
                  Not(Contains(AllOf(HasSubstr(door.path + std::string(key.name) + ": "),
                                     Not(HasSubstr(": only a listener with serves = "))))))
          << literal(key);
    }
}

TEST(Schema, EveryKeyHasADescription) {
  for (const auto& door : doors())
    for (const auto& key : door.spec->keys)
      EXPECT_TRUE(!key.about.empty() || !key.instead.empty()) << key.name;
}

TEST(Schema, RejectsUnknownKeysAtTheTopLevelAndInTheKeysFile) {
  EXPECT_THAT(mistakes_in("rules = 1\n" + kLeast),
              Contains("weir.toml:1: rules: unknown key; did you mean \"rule\"?"));
  const Folder folder;
  const auto keys = folder.write("keys.toml", "[[key]]\nkey = \"a\"\nteir = \"free\"\n");
  EXPECT_THAT(mistakes_in(with("[client]\nkeys = \"keys.toml\"\n"), folder.file(kFile)),
              ::testing::ElementsAre(keys + ":3: key[#1].teir: unknown key; did you mean \"tier\"?"));
}

// Users copy from config/weir.toml, so it must show every key with its default.
TEST(Schema, EveryKeyAppearsInTheReferenceConfiguration) {
  const auto text = contents(shipped("weir.toml"));
  ASSERT_THAT(text, Not(IsEmpty()));
  for (const auto& door : doors())
    for (const auto& key : door.spec->keys) {
      if (!key.instead.empty()) continue;
      const auto name = std::string(key.name);
      const bool table = text.find("[" + name + "]") != std::string::npos ||
                         text.find("." + name + "]") != std::string::npos;
      const bool bare = text.find(name + " = ") != std::string::npos;
      EXPECT_TRUE(table || bare) << door.path << name;
      if (key.fallback.empty() || key.kind == Kind::Texts || name == "bearer" || name == "max_keys") continue;
      EXPECT_THAT(text, HasSubstr(name + " = " + literal(key))) << door.path << name;
    }
}

}  // namespace
}  // namespace weir::config::test
