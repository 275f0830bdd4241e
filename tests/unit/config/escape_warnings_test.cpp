// Tests warnings of `weir check` about clients that can avoid a rule, and about tiers that no rule mentions.
#include "unit/config/warnings.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Returns a configuration with a rule "x", and with a second rule that limits each client address.
std::string beside_ip(const std::string& more, const std::string& of_ip = "") {
  return with_rule(more + "[[rule]]\nname = \"ip\"\nlimit = \"9/s\"\nkey = [\"ip\"]\n" + of_ip);
}

TEST(EscapeWarnings, NoWarningOfInventedApiKeysIfAnotherRuleLimitsEachAddress) {
  const auto warned = Contains(HasSubstr("rule \"x\" counts clients by API key"));
  const std::string by_key = "key = [\"api_key|ip\"]\nmatch = { path = \"/a/*\" }\n";
  EXPECT_THAT(warnings_of(beside_ip(by_key)), Not(warned));
  EXPECT_THAT(warnings_of(beside_ip(by_key, "match = { path = \"/a/*\" }\n")), Not(warned));
  EXPECT_THAT(warnings_of(beside_ip(by_key, "match = { path = \"/b/*\" }\n")), warned);
  EXPECT_THAT(warnings_of(beside_ip(by_key, "mode = \"shadow\"\n")), warned);
  EXPECT_THAT(warnings_of(with_rule(by_key + "[[rule]]\nname = \"y\"\nlimit = \"9/s\"\nkey = []\n")), warned)
      << "one client could use up the limit of all clients";
}

TEST(EscapeWarnings, WarningAboutARuleThatLimitsRatesRemainsIfAddressesHaveOnlyAConcurrencyLimit) {
  const std::string concurrency =
      "[[rule]]\nname = \"few\"\nkey = [\"ip\"]\nalgorithm = \"concurrency\"\nlimit = 5\n";
  for (const auto& [key, warning] :
       {std::pair{"api_key|ip", "a client that invents keys gets a new limit with each"},
        {"api_key", "a client that leaves it out avoids the rule"},
        {"header:X", "a client that leaves it out avoids the rule"}}) {
    const auto rule = "key = [\"" + std::string(key) + "\"]\n";
    EXPECT_THAT(warnings_of(with_rule(rule + concurrency)), Contains(HasSubstr(warning)));
    EXPECT_THAT(warnings_of(beside_ip(rule)), Not(Contains(HasSubstr("rule \"x\" is keyed by")))) << key;
    EXPECT_THAT(warnings_of(with("[[rule]]\nname = \"x\"\nalgorithm = \"concurrency\"\nlimit = 5\n" + rule +
                                 concurrency)),
                Not(Contains(HasSubstr("rule \"x\" is keyed by"))))
        << "the rule bounds another concurrency rule: " << key;
  }
}

TEST(EscapeWarnings, WarnOfHigherOverridesThatAnyClientCanChoose) {
  const auto of = [](const std::string& match, const std::string& limit = "99/s") {
    return "key = [\"ip\"]\noverrides = [{ match = { " + match + " }, limit = \"" + limit + "\" }]\n";
  };
  const auto warned = Contains(HasSubstr("which clients choose, and it admits more"));
  EXPECT_THAT(
      located_warnings_of(with_rule(of("headers = { X-Plan = \"gold\" }"))),
      Contains("weir.toml:11: rule \"x\" has an override for header X-Plan = gold, which clients choose, "
               "and it admits more: any client gets it by writing that; use tier or ip in its match, or "
               "add a rule for the same requests with key = [\"ip\"]"));
  for (const char* match : {"query = { plan = \"gold\" }", "not = { headers = { X-Bot = true } }",
                            "path = \"/a\", headers = { X-Plan = true }"})
    EXPECT_THAT(warnings_of(with_rule(of(match))), warned) << match;
  for (const char* match : {"path = \"/a\"", "ip = [\"10.0.0.0/8\"], headers = { X-Plan = true }",
                            "tier = \"gold\", headers = { X-Plan = true }"})
    EXPECT_THAT(warnings_of(with_rule(of(match))), Not(warned)) << match;
  EXPECT_THAT(warnings_of(with_rule(of("headers = { X-Plan = true }", "5/s"))), Not(warned))
      << "the override admits less";
  EXPECT_THAT(warnings_of(with_rule(of("headers = { X-Plan = true }", "700/min"))), warned);
  EXPECT_THAT(warnings_of(beside_ip(of("headers = { X-Plan = true }"))), Not(warned));
  const auto bounds = "overrides = [{ match = { headers = { X-Plan = true } }, limit = \"99/s\" }]\n";
  EXPECT_THAT(warnings_of(beside_ip("key = [\"header:X\"]\n", bounds)),
              Contains(HasSubstr("rule \"x\" is keyed by \"header:x\"")))
      << "a rule with such an override does not bound another rule";
}

TEST(EscapeWarnings, WarnOfKeysThatAClientCanOmitToAvoidTheRule) {
  const auto of = [](const std::string& more) { return warnings_of(with_rule(more)); };
  const auto warned = Contains(HasSubstr("a client that leaves it out avoids the rule"));
  EXPECT_THAT(
      located_warnings_of(with_rule("key = [\"api_key\"]\n")),
      Contains("weir.toml:11: rule \"x\" is keyed by \"api_key\", but does not apply to requests without it: "
               "a client that leaves it out avoids the rule; write \"api_key|ip\", on_missing = "
               "\"ip\" or \"reject\", or add a rule for the same requests with key = [\"ip\"]"));
  for (const char* key : {R"(["api_key|user"])", R"(["ip", "api_key"])", R"(["route", "device"])",
                          R"(["user"])", R"(["org"])", R"(["service"])", R"(["tier"])",
                          R"(["header:X-Tenant"])", R"(["query:id"])", R"(["cookie:id"])", R"(["host"])"}) {
    EXPECT_THAT(of("key = " + std::string(key) + "\n"), warned) << key;
    for (const char* missing : {"ip", "reject"})
      EXPECT_THAT(of("key = " + std::string(key) + "\non_missing = \"" + missing + "\"\n"), Not(warned))
          << key;
    EXPECT_THAT(warnings_of(beside_ip("key = " + std::string(key) + "\n")), Not(warned)) << key;
    EXPECT_THAT(warnings_of(beside_ip("key = " + std::string(key) + "\n", "match = { path = \"/b\" }\n")),
                warned)
        << key;
  }
  for (const char* key : {"[]", R"(["ip"])", R"(["api_key|ip"])", R"(["user|path"])", R"(["route"])",
                          R"(["upstream", "method"])"})
    EXPECT_THAT(of("key = " + std::string(key) + "\n"), Not(warned)) << key;
}

TEST(EscapeWarnings, NoWarningOfAKeyThatTheMatchRequires) {
  const auto of = [](const std::string& key, const std::string& match) {
    return warnings_of(with_rule("key = [\"" + key + "\"]\nmatch = { " + match + " }\n"));
  };
  const auto warned = Contains(HasSubstr("a client that leaves it out avoids the rule"));
  for (const auto& [key, match] : {std::pair{"api_key", "tier = \"pro\""},
                                   {"api_key", "headers = { x-api-key = true }"},
                                   {"tier", "tier = [\"free\", \"pro\"]"},
                                   {"header:X-Tenant", "headers = { X-Tenant = \"~^[a-z]+$\" }"},
                                   {"query:id", "query = { id = true }"},
                                   {"host", "host = \"a.example\""}})
    EXPECT_THAT(of(key, match), Not(warned)) << key;
  for (const auto& [key, match] : {std::pair{"api_key", "headers = { X-Other = true }"},
                                   {"header:X-Tenant", "query = { X-Tenant = true }"},
                                   {"api_key", "not = { headers = { X-API-Key = true } }"},
                                   {"host", "path = \"/a\""}})
    EXPECT_THAT(of(key, match), warned) << key;
}

enum : unsigned { kNone = 0, kLeftOut = 1, kMadeUp = 2, kInvented = 4, kUnread = 8 };

// Returns which warnings a rule with the key `key` causes: kNone, or the sum of the constants of the enum
// above.
unsigned escapes_of(const std::string& key, const std::string& more = "") {
  constexpr std::pair<const char*, unsigned> kKinds[] = {{"a client that leaves it out avoids", kLeftOut},
                                                         {"which clients can choose freely", kMadeUp},
                                                         {"a client that invents keys", kInvented},
                                                         {"is never used", kUnread}};
  unsigned kinds = 0;
  for (const auto& warning : warnings_of(with_rule("key = " + key + "\n" + more)))
    for (const auto& [text, kind] : kKinds)
      if (warning.starts_with("rule \"x\"") && warning.find(text) != std::string::npos) kinds |= kind;
  return kinds;
}

TEST(EscapeWarnings, FindEachKeyThatAClientCanInventOrOmit) {
  const std::pair<const char*, unsigned> cases[] = {
      {R"([])", kNone},
      {R"(["ip"])", kNone},
      {R"(["ip", "route"])", kNone},
      {R"(["ip", "upstream"])", kNone},
      {R"(["user|ip"])", kNone},
      {R"(["tier|ip"])", kNone},
      {R"(["route|ip"])", kNone},
      {R"(["method"])", kMadeUp},
      {R"(["ip", "method"])", kMadeUp},
      {R"(["method", "ip"])", kMadeUp},
      {R"(["path"])", kMadeUp},
      {R"(["ip", "path"])", kMadeUp},
      {R"(["method|ip"])", kMadeUp | kUnread},
      {R"(["path|ip"])", kMadeUp | kUnread},
      {R"(["ip|method"])", kUnread},
      {R"(["ip|host"])", kUnread},
      {R"(["user|path"])", kMadeUp},
      {R"(["user|ip|path"])", kUnread},
      {R"(["host"])", kMadeUp | kLeftOut},
      {R"(["ip", "host"])", kMadeUp | kLeftOut},
      {R"(["host|ip"])", kMadeUp},
      {R"(["header:X-Tenant"])", kMadeUp | kLeftOut},
      {R"(["header:X-Tenant|ip"])", kMadeUp},
      {R"(["ip", "query:id|ip"])", kMadeUp},
      {R"(["cookie:id|ip"])", kMadeUp},
      {R"(["device|ip"])", kMadeUp},
      {R"(["ip", "device"])", kMadeUp | kLeftOut},
      {R"(["user"])", kLeftOut},
      {R"(["ip", "tier"])", kLeftOut},
      {R"(["api_key|ip"])", kInvented},
      {R"(["api_key"])", kInvented | kLeftOut},
      {R"(["api_key|host|ip"])", kInvented | kMadeUp},
  };
  for (const auto& [key, kinds] : cases) EXPECT_EQ(escapes_of(key), kinds) << key;
}

TEST(EscapeWarnings, NoWarningIfTheMatchFixesTheValuesOfTheKey) {
  for (const auto& [key, match] : {std::pair{"method", "methods = [\"GET\", \"POST\"]"},
                                   {"host", "host = \"a.example\""},
                                   {"path", "path = \"/login\""},
                                   {"header:X-Tenant", "headers = { x-tenant = \"a\" }"},
                                   {"query:id", "query = { id = \"7\" }"}}) {
    const auto where = "match = { " + std::string(match) + " }\n";
    EXPECT_EQ(escapes_of("[\"ip\", \"" + std::string(key) + "\"]", where), kNone) << key;
    EXPECT_NE(escapes_of("[\"ip\", \"" + std::string(key) + "\"]"), kNone) << key;
  }
  for (const auto& [key, match] : {std::pair{"path", "path = \"/login/*\""},
                                   {"path", "path = \"~^/login$\""},
                                   {"header:X-Tenant", "headers = { X-Tenant = true }"},
                                   {"header:X-Tenant", "headers = { X-Tenant = \"~^a\" }"},
                                   {"query:id", "query = { id = true }"},
                                   {"method", "not = { methods = [\"GET\"] }"}}) {
    const auto where = "match = { " + std::string(match) + " }\n";
    EXPECT_EQ(escapes_of("[\"ip\", \"" + std::string(key) + "\"]", where), kMadeUp) << match;
  }
}

// The warning must disappear if the user does what it advises.
TEST(EscapeWarnings, FollowingTheAdviceForAHostKeyRemovesTheWarning) {
  const auto warned = located_warnings_of(with_rule("key = [\"ip\", \"host\"]\n"));
  EXPECT_THAT(warned,
              Contains("weir.toml:11: rule \"x\" is keyed by \"host\", but does not apply to requests "
                       "without it: a client that leaves it out avoids the rule; add a rule for the same "
                       "requests with key = [\"ip\"]"));
  EXPECT_THAT(warned, Not(Contains(HasSubstr("host|ip"))));
  EXPECT_THAT(warnings_of(beside_ip("key = [\"ip\", \"host\"]\n")), Not(Contains(HasSubstr("is keyed by"))));
}

// Returns the warnings about a keys file that has one API key for each tier. Each API key takes three lines
// of the file.
std::vector<std::string> warnings_of_keys(const std::vector<std::string>& tiers, const std::string& more) {
  const Folder folder;
  std::string keys;
  for (const auto& tier : tiers)
    keys += "[[key]]\nkey = \"k" + std::to_string(keys.size()) + "\"\ntier = \"" + tier + "\"\n";
  folder.write("keys.toml", keys);
  std::vector<std::string> texts;
  for (const auto& [where, what] :
       parse_settings(with_rule(more + "[client]\nkeys = \"keys.toml\"\n"), folder.file(kFile)).warnings)
    texts.push_back(std::filesystem::path(where).filename().string() + ": " + what);
  return texts;
}

TEST(EscapeWarnings, WarnOfTiersOfTheKeysFileThatNoRuleUses) {
  const auto unnamed = HasSubstr("is not used by any rule or route");
  EXPECT_THAT(
      warnings_of_keys({"pro", "premuim", "premuim"},
                       "tiers = { pro = { limit = \"1/s\" }, premium = { limit = \"2/s\" } }\n"),
      Contains(
          "keys.toml:4: the tier \"premuim\" is not used by any rule or route, so its keys get the limits of "
          "keys without a tier; did you mean \"premium\"?"));
  for (const char* named : {"tiers = { pro = { limit = \"1/s\" } }\n", "match = { tier = \"pro\" }\n",
                            "match = { not = { tier = \"pro\" } }\n",
                            "overrides = [{ match = { tier = [\"pro\"] }, limit = \"1/s\" }]\n"}) {
    EXPECT_THAT(warnings_of_keys({"pro"}, named), Not(Contains(unnamed))) << named;
    EXPECT_THAT(warnings_of_keys({"pro", "free"}, named), Contains(unnamed)) << named;
  }
  EXPECT_THAT(warnings_of_keys({"free"}, "[[route]]\nmatch = { tier = \"pro\" }\nrespond = {}\n"),
              Contains(unnamed));
  EXPECT_THAT(warnings_of_keys({"free"}, "key = [\"tier|ip\"]\ntiers = { pro = { limit = \"1/s\" } }\n"),
              Not(Contains(unnamed)))
      << "each tier has its own count";
}

TEST(EscapeWarnings, NoWarningOfUnusedTiersIfTheKeysFileNamesUsersOrOrganisations) {
  const auto of = [](const std::string& more) {
    const Folder folder;
    folder.write("keys.toml", "[[key]]\nkey = \"k\"\ntier = \"gold\"\n" + more);
    return warnings_of(with_rule("key = [\"ip\"]\n[client]\nkeys = \"keys.toml\"\n"), folder.file(kFile));
  };
  const auto warned = Contains(HasSubstr("the tier \"gold\" is not used by any rule or route"));
  EXPECT_THAT(of(""), warned);
  for (const char* word : {"user", "org", "service"})
    EXPECT_THAT(of(std::string(word) + " = \"ann\"\n"), Not(warned))
        << "the keys file may be shared with another configuration";
}

}  // namespace
}  // namespace weir::config::test
