// Tests warnings of `weir check` about settings that are allowed but probably not intended.
#include "unit/config/warnings.hpp"

#include "unit/policy/country_file.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

TEST(Warnings, WarnOfRulesKeyedByApiKeysThatClientsCanInvent) {
  const auto of = [](const std::string& key) { return warnings_of(with_rule("key = " + key + "\n")); };
  const auto warned = Contains(HasSubstr("rule \"x\" counts clients by API key"));
  EXPECT_THAT(warnings_of(kLeast), Contains(HasSubstr("that invents keys gets a new limit with each")));
  for (const char* key :
       {R"(["api_key"])", R"(["ip", "api_key"])", R"(["route", "api_key|ip"])", R"(["user|api_key|ip"])"})
    EXPECT_THAT(of(key), warned) << key;
  for (const char* key : {"[]", R"(["ip"])", R"(["ip|api_key"])", R"(["path|api_key", "route"])"})
    EXPECT_THAT(of(key), Not(warned)) << key;
}

TEST(Warnings, WarnIfAcmeIsConfiguredButNoListenerOrdersACertificate) {
  const std::string acme = "[acme]\naccept_terms = true\n";
  EXPECT_THAT(located_warnings_of(with(acme)),
              Contains(testing::StartsWith("weir.toml:11: [acme] weir orders no certificate, because ")));
  const std::string listener =
      "[[listener]]\naddress = \"127.0.0.1:0\"\ntls = { certificates = [{ acme = [\"a.example\"] }] }\n";
  EXPECT_THAT(located_warnings_of(with(acme + listener)),
              Not(Contains(HasSubstr("weir orders no certificate"))));
}

TEST(Warnings, WarnOfASecretThatIsTheNameOfAVariableWithoutBraces) {
  const auto warned = Contains(HasSubstr("token is the name of a variable with \"$\" before it"));
  const auto of = [](const std::string& token) {
    return warnings_of(with("[admin]\naddress = \"127.0.0.1:9900\"\ntoken = \"" + token + "\"\n"));
  };
  EXPECT_THAT(of("$WEIR_ADMIN_TOKEN"), warned);
  for (const char* other : {"$", "$a-token", "a$TOKEN", "${WEIR_NONE:-}", "TOKEN"})
    EXPECT_THAT(of(other), Not(warned)) << other;
}

TEST(Warnings, WarnOfAShortSecretOfNames) {
  const auto warned = Contains(HasSubstr("key_secret has fewer than 16 characters"));
  EXPECT_THAT(warnings_of(with("[state]\nkey_secret = \"0123456789abcde\"\n")), warned);
  EXPECT_THAT(warnings_of(with("[state]\nkey_secret = \"0123456789abcdef\"\n")), Not(warned));
  EXPECT_THAT(warnings_of(kLeast), Not(warned));
}

TEST(Warnings, WarnOfConditionsThatExcludeEachOther) {
  const auto warned = Contains(HasSubstr("which no request meets: `not` excludes all that the others admit"));
  const auto of = [](const std::string& match) {
    return warnings_of(with_rule("match = { " + match + " }\n"));
  };
  EXPECT_THAT(of("ip = \"10.1.0.0/16\", not = { ip = \"10.0.0.0/8\" }"), warned);
  EXPECT_THAT(of("path = \"/a/b\", methods = [\"GET\"], not = { path = \"/a/*\" }"), warned);
  EXPECT_THAT(of("ip = \"10.0.0.0/8\", not = { ip = \"10.1.0.0/16\" }"), Not(warned));
  EXPECT_THAT(of("path = \"/a/*\", not = { path = \"/a/b\" }"), Not(warned));
  EXPECT_THAT(of("path = \"/a\", not = { path = \"/a\", methods = [\"GET\"] }"), Not(warned));
  EXPECT_THAT(of("not = { ip = \"10.0.0.0/8\" }"), Not(warned));
}

TEST(Warnings, WarnIfARuleMayReadABodyLargerThanMaxBodyMemory) {
  const auto of = [](const std::string& memory, const std::string& rule) {
    return warnings_of("[server]\nmax_body_memory = \"" + memory + "\"\n" + with_rule(rule));
  };
  const auto warned = Contains(
      AllOf(HasSubstr("rule \"x\" may read bodies of 131072 bytes"), HasSubstr("max_body_memory is 131071")));
  for (const char* rule : {"match = { body_contains = \"a\", max_body = \"128KiB\" }\n",
                           "cost = { json = \"/n\", max_body = \"128KiB\" }\n",
                           "cost = { response_json = \"/n\", reserve = 1, max_body = \"128KiB\" }\n"}) {
    EXPECT_THAT(of("131071", rule), warned) << rule;
    EXPECT_THAT(of("128KiB", rule), Not(Contains(HasSubstr("max_body_memory")))) << rule;
  }
  EXPECT_THAT(of("1KiB", ""), Not(Contains(HasSubstr("max_body_memory")))) << "the rule reads no body";
}

TEST(Warnings, WarnOfRulesKeyedByValuesThatClientsChooseFreely) {
  const auto of = [](const std::string& rules) { return warnings_of(with_rule(rules)); };
  const auto warned = Contains(HasSubstr("which clients can choose freely"));
  for (const char* key : {R"(["header:X-Tenant"])", R"(["path"])", R"(["ip", "query:id"])",
                          R"(["cookie:a|ip"])", R"(["user|header:a"])", R"(["method|path"])"})
    EXPECT_THAT(of("key = " + std::string(key) + "\n"), warned) << key;
  for (const char* key : {R"(["ip|header:X-Tenant"])", R"(["ip", "route"])", "[]"})
    EXPECT_THAT(of("key = " + std::string(key) + "\n"), Not(warned)) << key;
  const std::string by_header = "key = [\"header:a\"]\nmatch = { path = \"/a/*\" }\n";
  const std::string beside = "[[rule]]\nname = \"beside\"\nlimit = \"9/s\"\n";
  EXPECT_THAT(of(by_header + beside + "key = [\"ip\"]\n"), Not(warned));
  EXPECT_THAT(of(by_header + beside + "key = []\nmatch = { path = \"/a/*\" }\n"), Not(warned));
  for (const char* other :
       {"key = [\"ip\"]\nmatch = { path = \"/b/*\" }\n", "key = [\"ip\"]\nmode = \"shadow\"\n",
        "key = [\"api_key|ip\"]\n", "key = [\"cookie:b\"]\n", "key = [\"user\"]\n"})
    EXPECT_THAT(of(by_header + beside + other), warned) << other;
}

TEST(Warnings, WarnOfRepeatedPartsOfAKey) {
  const auto of = [](const std::string& key) { return warnings_of(with_rule("key = " + key + "\n")); };
  for (const char* key : {R"(["ip", "ip"])", R"(["api_key|ip", "ip", "api_key|ip"])",
                          R"(["descriptor:a", "descriptor:a"])", R"(["header:X-A", "header:x-a"])"})
    EXPECT_THAT(of(key), Contains(HasSubstr("more than once in its key"))) << key;
  for (const char* key : {R"(["api_key|ip", "ip"])", R"(["descriptor:a", "descriptor:A"])"})
    EXPECT_THAT(of(key), Not(Contains(HasSubstr("more than once in its key")))) << key;
}

TEST(Warnings, WarnIfMoreThan32RulesApplyToNearlyEveryRequest) {
  const auto of = [](int rules, const std::string& key) {
    std::string text = kLeast;
    for (int i = 1; i < rules; ++i)
      text += "[[rule]]\nname = \"r" + std::to_string(i) + "\"\nlimit = \"9/s\"\n" + key + "\n";
    return warnings_of(text);
  };
  const auto warned = Contains(HasSubstr(
      "rule \"r32\" is beyond the 32 limits that may apply to a request: nearly every request that it "
      "matches gets 503; give rules a narrower `match`"));
  for (const char* key : {R"(key = ["host"])", R"(key = ["upstream"])", R"(key = ["route"])",
                          "key = [\"user\"]\non_missing = \"reject\""}) {
    EXPECT_THAT(of(33, key), warned) << key;
    EXPECT_THAT(of(32, key), Not(Contains(HasSubstr("is beyond the 32")))) << key;
  }
  EXPECT_THAT(of(33, R"(key = ["user"])"), Not(Contains(HasSubstr("is beyond the 32"))));
}

TEST(Warnings, WarnIfMaxKeysIsTooSmallToReserveEnoughKeysForEachRule) {
  const auto of = [](const std::string& max_keys) {
    return warnings_of(with_rule("key = [\"ip\"]\n[state.memory]\nmax_keys = " + max_keys + "\n"));
  };
  EXPECT_THAT(of("500"),
              Contains("[state.memory] max_keys = 500 reserves 75 keys for each of the 2 rules, and the "
                       "clients of one rule may use up the rest; write max_keys = 800 or more"));
  EXPECT_THAT(of("800"), Not(Contains(HasSubstr("reserves"))));
  EXPECT_THAT(warnings_of(with("[state.memory]\nmax_keys = 1\n")), Not(Contains(HasSubstr("reserves"))))
      << "a single rule can use the whole table";
}

// A shard (a part of the table) reserves a quarter of its slots, in equal parts for all rules. A part is a
// whole number of slots. A table of 400,000 keys has 256 shards of about 1,900 slots. A quarter is fewer than
// a thousand slots, so no rule gets one.
TEST(Warnings, FollowingTheAdviceForMaxKeysReservesKeysForEachOfAThousandRules) {
  const auto of = [](const std::string& max_keys) {
    std::string text = "[state.memory]\nmax_keys = " + max_keys + "\n";
    for (int i = 1; i < 1'000; ++i) {
      const auto name = std::to_string(i);
      text += "[[rule]]\nname = \"r" + name + "\"\nmatch = { path = \"/" + name + "\" }\nlimit = \"1/s\"\n";
    }
    return warnings_of(with(text));
  };
  EXPECT_THAT(of("400000"), Contains(HasSubstr("reserves 0 keys for each of the 1000 rules")));
  EXPECT_THAT(of("400000"), Contains(HasSubstr("write max_keys = 900000 or more")));
  EXPECT_THAT(of("900000"), Not(Contains(HasSubstr("reserves"))));
}

TEST(Warnings, WarnIfASlidingLogNeedsMoreMemoryThanIsReservedForItsRule) {
  const std::string log = "algorithm = \"sliding_log\"\nlimit = \"10000/day\"\n";
  std::string rules = "[state.memory]\nmax_keys = 2000\n";
  for (const char* name : {"a", "b", "c"}) rules += "[[rule]]\nname = \"" + std::string(name) + "\"\n" + log;
  EXPECT_THAT(warnings_of(with(rules)),
              Contains("rule \"b\" remembers up to 10000 requests of a client, but max_keys = 2000 reserves "
                       "memory for 9555 for each such rule; raise max_keys, or use sliding_window"));
}

TEST(Warnings, WarnOfRoutesThatAreNeverReachedBecauseAnEarlierRouteMatchesEverything) {
  EXPECT_THAT(located_warnings_of(
                  with("[[route]]\nname = \"late\"\nmatch = { path = \"/a\" }\nupstream = \"api\"\n")),
              Contains("weir.toml:11: route \"late\" is never reached: route \"*\" before it (weir.toml:6) "
                       "matches every request; move the narrower one up"));
}

// Returns the warnings about a configuration with two routes, whose matches are `first` and `second`. The
// second route is on line 7.
std::vector<std::string> warnings_of_routes(const std::string& first, const std::string& second) {
  return located_warnings_of(
      "[[listener]]\naddress = \"127.0.0.1:1\"\n[[route]]\nname = \"first\"\nmatch = " + first +
      "\nrespond = {}\n[[route]]\nname = \"second\"\nmatch = " + second + "\nrespond = {}\n");
}

TEST(Warnings, WarnOfARouteThatIsNeverReachedBecauseAnEarlierRouteMatchesMore) {
  const auto hidden = Contains(
      "weir.toml:7: route \"second\" is never reached: route \"first\" before it (weir.toml:3) "
      "matches every request that it matches; move the narrower one up");
  const std::pair<const char*, const char*> hiding[] = {
      {R"({ path = "/a" })", R"({ path = "/a" })"},
      {R"({ path = "/api/*" })", R"({ path = "/api/v1/*", methods = "GET" })"},
      {R"({ path = "/api*" })", R"({ path = "/api/*" })"},
      {R"({ path = "~^/api/" })", R"({ path = "/api/login" })"},
      {R"({ path = "~^/api/" })", R"({ path = "~^/api/" })"},
      {R"({ methods = ["GET", "HEAD"] })", R"({ methods = "GET", path = "/a" })"},
      {R"({ host = "a.example" })", R"({ host = "A.example", path = "/a" })"},
      {R"({ headers = { X-A = true } })", R"({ headers = { x-a = "1" } })"},
      {R"({ query = { q = "~^1" } })", R"({ query = { q = "12" } })"},
      {R"({ ip = "10.0.0.0/8" })", R"({ ip = ["10.1.0.0/16", "10.2.0.1"] })"},
      {R"({ hours = "22:00-06:00" })", R"({ hours = "22:00-06:00", path = "/a" })"},
      {R"({ not = { path = "/a/b" } })", R"({ not = { path = "/a/*" } })"},
  };
  for (const auto& [first, second] : hiding)
    EXPECT_THAT(warnings_of_routes(first, second), hidden) << first << " " << second;
}

TEST(Warnings, NoWarningOfRoutesThatRequestsCanReach) {
  const std::pair<const char*, const char*> reached[] = {
      {R"({ path = "/api/v1/*" })", R"({ path = "/api/*" })"},
      {R"({ path = "/api/*" })", R"({ path = "/api" })"},
      {R"({ path = "/*" })", R"({ methods = "OPTIONS" })"},
      {R"({ path = "~^/api/" })", R"({ path = "/api/*" })"},
      {R"({ methods = "GET" })", R"({ path = "/a" })"},
      {R"({ host = "a.example" })", R"({ host = "b.example" })"},
      {R"({ headers = { X-A = "present" } })", R"({ headers = { X-A = true } })"},
      {R"({ query = { q = "1" } })", R"({ query = { Q = "1" } })"},
      {R"({ ip = "10.0.0.0/8" })", R"({ ip = ["10.1.0.0/16", "11.0.0.1"] })"},
      {R"({ hours = "22:00-06:00" })", R"({ hours = "22:00-05:00" })"},
      {R"({ not = { path = "/a/*" } })", R"({ not = { path = "/a/b" } })"},
      {R"({ path = "/a", not = { methods = "GET" } })", R"({ path = "/a" })"},
  };
  for (const auto& [first, second] : reached)
    EXPECT_THAT(warnings_of_routes(first, second), Not(Contains(HasSubstr("never reached"))))
        << first << " " << second;
}

TEST(Warnings, WarnOfAlternativesInAKeyThatAreNeverUsed) {
  const auto of = [](const std::string& key) {
    return located_warnings_of(with_rule("key = [\"" + key + "\"]\n"));
  };
  EXPECT_THAT(of("ip|api_key"),
              Contains("weir.toml:11: rule \"x\" is keyed by \"ip|api_key\", and every request has an ip: "
                       "\"api_key\" is never used; did you mean \"api_key|ip\"?"));
  EXPECT_THAT(of("user|path|api_key|org"),
              Contains(HasSubstr("every request has a path: \"api_key|org\" is never used; did you mean "
                                 "\"user|api_key|org|path\"?")));
  EXPECT_THAT(of("ip|path"),
              Contains(HasSubstr("did you mean [\"ip\", \"path\"], which counts all clients together?")));
  EXPECT_THAT(of("ip|host"),
              Contains(HasSubstr("did you mean [\"ip\", \"host\"], which counts all clients together?")));
  EXPECT_THAT(of("user|ip|header:X"), Contains(HasSubstr("did you mean \"user|ip\"?")));
  EXPECT_THAT(of("user|ip|api_key"), Contains(HasSubstr("did you mean \"user|api_key|ip\"?")));
  for (const char* key : {"api_key|ip", "ip", "user|api_key|ip"})
    EXPECT_THAT(of(key), Not(Contains(HasSubstr("never used")))) << key;
}

TEST(Warnings, WarnOfARuleThatAppliesToNoRoute) {
  const auto warned =
      Contains("rule \"x\" applies to no route: no route has its name, host, methods or path");
  const std::string routes =
      "[[listener]]\naddress = \"127.0.0.1:0\"\n[[route]]\nmatch = { path = \"/api/*\" }\n"
      "respond = { status = 200 }\n[[rule]]\nname = \"x\"\nlimit = \"1/s\"\n";
  EXPECT_THAT(warnings_of(routes + "match = { path = \"/apl/*\" }\n"), warned);
  EXPECT_THAT(warnings_of(routes + "match = { path = \"/api/a\" }\n"), Not(warned));
}

TEST(Warnings, WarnOfAnOverrideThatNeverAppliesBecauseAnEarlierOverrideMatchesMore) {
  const auto of = [](const std::string& first, const std::string& second) {
    return warnings_of(with_rule("overrides = [{ match = { path = \"" + first +
                                 "\" }, limit = \"1/s\" }, { match = { path = \"" + second +
                                 "\" }, limit = \"2/s\" }]\n"));
  };
  EXPECT_THAT(of("/a/*", "/a/b"),
              Contains("rule \"x\" has an override for path /a/b that never applies: the one for "
                       "path /a/* before it matches every request that it matches"));
  EXPECT_THAT(of("/a/b", "/a/*"), Not(Contains(HasSubstr("never applies"))));
}

TEST(Warnings, WarnIfTrustedProxiesContainsEveryAddress) {
  const auto warned = Contains(HasSubstr("trusted_proxies contains every address"));
  EXPECT_THAT(warnings_of(with("[client]\ntrusted_proxies = [\"0.0.0.0/0\"]\n")), warned);
  EXPECT_THAT(warnings_of(with("[client]\ntrusted_proxies = [\"::/0\"]\n")), warned);
  EXPECT_THAT(warnings_of(with("[client]\ntrusted_proxies = [\"0.0.0.0/1\", \"10.0.0.0/8\"]\n")),
              Not(warned));
}

TEST(Warnings, WarnOfRuleTiersThatNoApiKeyHas) {
  EXPECT_THAT(warnings_of(with_rule("tiers = { gold = { limit = \"1/s\" } }\n")),
              Contains(HasSubstr("rule \"x\" names the tier \"gold\"")));
  const Folder folder;
  folder.write("keys.toml", "[[key]]\nkey = \"k\"\ntier = \"free\"\n");
  const auto warnings =
      warnings_of(with_rule("tiers = { free = { limit = \"1/s\" }, gold = { limit = \"1/s\" } }\n"
                            "[client]\nkeys = \"keys.toml\"\n"),
                  folder.file(kFile));
  EXPECT_THAT(warnings, ::testing::ElementsAre(
                            "rule \"x\" names the tier \"gold\", which no key of the keys file has"));
}

TEST(Warnings, NoWarningOfAMissingKeySecret) {
  const std::string redis = "store = \"redis\"\n[state]\nredis = { url = \"redis://a\" }\n";
  EXPECT_THAT(warnings_of(with_rule(redis)), Not(Contains(HasSubstr("key_secret"))));
}

TEST(Warnings, WarnOfALongRedisTimeout) {
  const auto of = [](const std::string& timeout) {
    return warnings_of(with_rule(
        "store = \"redis\"\n[state]\nkey_secret = \"s\"\nredis = { url = \"redis://a\", timeout = \"" +
        timeout + "\" }\n"));
  };
  const auto warned = Contains(HasSubstr("each request that asks it may wait for 2s"));
  EXPECT_THAT(of("2s"), warned);
  EXPECT_THAT(of("1s"), Not(Contains(HasSubstr("may wait for"))));
}

TEST(Warnings, WarnIfPermitLeasesExpireBeforeASilentConnectionIsClosed) {
  const auto of = [](const std::string& store, const std::string& lease) {
    return warnings_of(
        with("[[rule]]\nname = \"x\"\nlimit = 10\nalgorithm = \"concurrency\"\nstore = \"" + store +
             "\"\n[state]\nkey_secret = \"s\"\nredis = { url = \"redis://a\", timeout = \"1s\", " +
             "lease_time = \"" + lease + "\" }\n"));
  };
  const auto warned = Contains(HasSubstr("lease_time is less than three times timeout"));
  EXPECT_THAT(of("redis", "2s"), warned);
  EXPECT_THAT(of("redis", "3s"), Not(warned));
  EXPECT_THAT(of("memory", "2s"), Not(warned));
}

TEST(Warnings, WarnIfOneClientCanFillASharedQueue) {
  const auto warned =
      Contains(HasSubstr("rule \"x\" is a queue that clients share, without queue_per_client"));
  const std::string queue = "algorithm = \"leaky_bucket\"\n";
  const std::string asks_redis =
      "[[rule]]\nname = \"y\"\nlimit = \"1/s\"\nstore = \"redis\"\n[state]\nredis = { url = \"redis://a\" "
      "}\n";
  const auto of = [&](const std::string& more) { return warnings_of(with_rule(queue + more)); };
  EXPECT_THAT(of("key = []\n" + asks_redis), warned);
  EXPECT_THAT(of("key = [\"route\", \"host|tier\"]\n" + asks_redis), warned);
  EXPECT_THAT(of("key = [\"ip\"]\n" + asks_redis), Not(warned));
  EXPECT_THAT(of("key = []\nqueue_per_client = 3\n" + asks_redis), Not(warned));
  EXPECT_THAT(of("key = []\n"), Not(warned)) << "a queue in memory gives places to other clients";
  EXPECT_THAT(warnings_of(with_rule("key = []\n" + asks_redis)), Not(warned)) << "the rule has no queue";
}

TEST(Warnings, WarnOfUnusedUpstreamsAndOfKeysThatNoRequestHasAndOfRulesThatReadEveryBody) {
  const auto every_body = HasSubstr("rule \"x\" reads the body of every request into memory");
  EXPECT_THAT(warnings_of(with_rule("cost = { json = \"/a\" }\n")), Contains(every_body));
  EXPECT_THAT(warnings_of(with_rule("match = { not = { body_contains = \"a\" } }\n")), Contains(every_body));
  EXPECT_THAT(warnings_of(with_rule("match = { path = \"/a\", body_contains = \"a\" }\n")),
              Not(Contains(every_body)));
  EXPECT_THAT(warnings_of(with_rule("key = [\"user\"]\n")), Contains(HasSubstr("which no request has")));
  EXPECT_THAT(warnings_of(with("[client]\nuser = { header = \"X-User\" }\n")),
              Contains(HasSubstr("believed only from trusted proxies")));
  EXPECT_THAT(warnings_of(with("[[upstream]]\nname = \"spare\"\nservers = [\"a:1\"]\n")),
              Contains("upstream \"spare\" is used by no route"));
}

TEST(Warnings, WarnOfUnixAndProxyProtocolListenersWithoutTrustedProxies) {
  const auto of = [](const std::string& listener, const std::string& more = "") {
    return warnings_of(with("[[listener]]\n" + listener + more));
  };
  const auto one_client =
      Contains(HasSubstr("listener unix:/tmp/x accepts unix sockets, whose clients have no address"));
  const auto unbelieved = Contains(HasSubstr("listener 127.0.0.1:81 expects the PROXY protocol"));
  const std::string by_file = "address = \"unix:/tmp/x\"\n";
  const std::string by_proxy = "address = \"127.0.0.1:81\"\nproxy_protocol = true\n";
  EXPECT_THAT(of(by_file), one_client);
  EXPECT_THAT(of(by_file, "[client]\ntrusted_proxies = [\"10.0.0.0/8\"]\n"), one_client);
  EXPECT_THAT(of(by_file, "[client]\ntrusted_proxies = [\"unix:\"]\n"), Not(one_client));
  EXPECT_THAT(of(by_proxy), unbelieved);
  EXPECT_THAT(of(by_proxy, "[client]\ntrusted_proxies = [\"10.0.0.0/8\"]\n"), Not(unbelieved));
  EXPECT_THAT(of("address = \"127.0.0.1:81\"\n"), Not(unbelieved));
}

TEST(Warnings, WarnIfMaxHeadOfARouteExceedsMaxHeadOfTheServer) {
  const auto of = [](const std::string& size) {
    return warnings_of(with("[[route]]\nname = \"a\"\nupstream = \"api\"\nmax_head = \"" + size + "\"\n"));
  };
  EXPECT_THAT(of("17KiB"), Contains(HasSubstr("route \"a\" has a larger max_head than [server]")));
  EXPECT_THAT(of("16KiB"), Not(Contains(HasSubstr("max_head"))));
}

TEST(Warnings, WarnOfAServerQueueIfNoServerHasABound) {
  const auto of = [](const std::string& servers, const std::string& more) {
    return warnings_of(with("[[upstream]]\nname = \"b\"\nservers = [" + servers + "]\n" + more + "\n" +
                            "[[route]]\nmatch = { path = \"/b\" }\nupstream = \"b\"\n"));
  };
  const auto warned = Contains(HasSubstr("upstream \"b\" has queue or max_wait, but no server"));
  EXPECT_THAT(of(R"("a:1")", "queue = 9"), warned);
  EXPECT_THAT(of(R"("a:1")", "max_wait = \"2s\""), warned);
  EXPECT_THAT(of(R"("a:1")", "queue = 256\nmax_wait = \"1s\""), Not(warned));
  EXPECT_THAT(of(R"({ address = "a:1", max_in_flight = 1 })", "queue = 9"), Not(warned));
  EXPECT_THAT(of(R"("a:1", { address = "a:2", limit = "1/s" })", "queue = 9"), Not(warned));
}

TEST(Warnings, WarnOfMessageLimitsWithoutWebSockets) {
  const auto of = [](const std::string& upgrade, const std::string& match) {
    return warnings_of(
        "[[listener]]\naddress = \"127.0.0.1:1\"\n[[upstream]]\nname = \"api\"\nservers = "
        "[\"a:1\"]\n[[route]]\nmatch = { path = \"/ws/*\" }\nupstream = \"api\"\n" +
        upgrade + "[[rule]]\nname = \"x\"\nlimit = \"1/s\"\nmessages = \"9/s\"\n" + match);
  };
  const auto warned = Contains(HasSubstr("rule \"x\" counts messages, but no route"));
  EXPECT_THAT(of("", ""), Not(warned));
  EXPECT_THAT(of("upgrade = [\"WebSocket\"]\n", ""), Not(warned)) << "protocol names are case-insensitive";
  EXPECT_THAT(of("upgrade = []\n", ""), warned);
  EXPECT_THAT(of("upgrade = [\"chat\"]\n", ""), warned);
  EXPECT_THAT(of("", "match = { path = \"/api/*\" }\n"), warned);
}

TEST(Warnings, WarnOfMessageLimitsForGrpcWithoutAListenerForHttp2) {
  const auto of = [](const std::string& listener, const std::string& direction) {
    return warnings_of("[[listener]]\naddress = \"127.0.0.1:80\"\n" + listener +
                       "[[upstream]]\nname = \"api\"\nservers = [\"a:1\"]\n[[route]]\nupstream = \"api\"\n"
                       "upgrade = []\n[[rule]]\nname = \"x\"\nlimit = \"1/s\"\nmessages = \"9/s\"\n" +
                       direction);
  };
  const auto warned = Contains(::testing::ContainsRegex("counts (gRPC )?messages"));
  EXPECT_THAT(of("protocols = [\"h2c\"]\n", ""), Not(warned));
  EXPECT_THAT(of("", ""), Contains(HasSubstr("rule \"x\" counts messages, but no route")));
  EXPECT_THAT(of("protocols = [\"h2c\"]\n", "direction = \"server\"\n"), Not(warned));
  EXPECT_THAT(
      of("", "direction = \"server\"\n"),
      Contains(HasSubstr("rule \"x\" counts gRPC messages of servers, but no listener speaks HTTP/2")));
}

TEST(Warnings, WarnOfADefaultCostThatTheLimitNeverAdmits) {
  const auto of = [](const std::string& more) { return warnings_of(with_rule(more)); };
  EXPECT_THAT(
      of("cost = { header = \"X-Cost\", default = 12 }\n"),
      Contains(HasSubstr("refuses every request that does not state its cost: such a request costs 12")));
  EXPECT_THAT(of("cost = { header = \"X-Cost\", default = 11 }\n"), Not(Contains(HasSubstr("admits"))))
      << "a default of one more than the limit requires a stated cost";
}

TEST(Warnings, WarnIfTheLocalShareOfALimitIsTooSmallForAnyRequest) {
  const auto of = [](const std::string& cost, const std::string& replicas) {
    return warnings_of(with_rule("store = \"redis\"\ncost = " + cost + "\n[state]\nreplicas = " + replicas +
                                 "\nredis = { url = \"redis://a\" }\n"));
  };
  EXPECT_THAT(of("6", "2"),
              Contains("rule \"x\" refuses everything while Redis does not answer: a request costs 6, but "
                       "this instance's share of the limit ([state] replicas) admits at most 5 at once"));
  EXPECT_THAT(of("5", "2"), Not(Contains(HasSubstr("refuses everything"))));
  EXPECT_THAT(of("6", "1"), Not(Contains(HasSubstr("refuses everything"))));
}

TEST(Warnings, WarnIfAnAnswerWithAServerErrorIsChargedTheReservedCost) {
  const auto of = [](const std::string& more) { return warnings_of(with_rule(more)); };
  const auto warned = Contains(HasSubstr("rule \"x\" charges its reserve of 5 for server errors, too"));
  for (const char* source_file :
       {"response_json = \"/usage/total_tokens\"", "response_header = \"X-Tokens\""}) {
    const auto cost = "cost = { " + std::string(source_file) + ", reserve = 5 }\n";
    EXPECT_THAT(of(cost), warned);
    EXPECT_THAT(of(cost + "mode = \"shadow\"\n"), warned);
    EXPECT_THAT(of(cost + "charge = { status = \"2xx\" }\n"), Not(warned));
  }
  EXPECT_THAT(of("cost = 5\n"), Not(warned));
  EXPECT_THAT(of("cost = { bytes = \"both\", reserve = 5 }\n"), Not(warned))
      << "errors are charged their actual bytes";
  EXPECT_THAT(of("cost = { header = \"X-Cost\" }\n"), Not(warned));
  EXPECT_THAT(of("charge = { status = \"401\" }\n"), Not(warned));
}

TEST(Warnings, WarnIfOneClientCanUseUpASharedLimitByItsContentLength) {
  const auto of = [](const std::string& more) { return warnings_of(with_rule(more)); };
  const auto warned = Contains(HasSubstr("rule \"x\" reserves the Content-Length that a client states"));
  for (const char* bodies : {"request", "both"})
    for (const char* key : {"[]", R"(["host"])", R"(["route", "method"])"}) {
      const auto cost = "cost = { bytes = \"" + std::string(bodies) + "\" }\nkey = " + key + "\n";
      EXPECT_THAT(of(cost), warned) << cost;
    }
  for (const char* key : {R"(["ip"])", R"(["api_key|ip"])", R"(["host", "user"])"})
    EXPECT_THAT(of("cost = { bytes = \"request\" }\nkey = " + std::string(key) + "\n"), Not(warned)) << key;
  EXPECT_THAT(of("cost = { bytes = \"request\", reserve = 1 }\nkey = []\n"), Not(warned));
  EXPECT_THAT(of("cost = { bytes = \"response\" }\nkey = []\n"), Not(warned));
}

TEST(Warnings, WarnIfConcurrentAnswersCanExceedAWindowLimitThatCountsBytes) {
  const auto of = [](const std::string& more) { return warnings_of(with_rule("key = [\"ip\"]\n" + more)); };
  const auto warned = Contains(HasSubstr("rule \"x\" holds one unit for each answer until it has passed"));
  const std::string cost = "cost = { bytes = \"response\" }\n";
  for (const char* algorithm : {"fixed_window", "sliding_window", "sliding_log"})
    EXPECT_THAT(of(cost + "algorithm = \"" + algorithm + "\"\n"), warned) << algorithm;
  const auto window = "algorithm = \"fixed_window\"\n" + cost;
  EXPECT_THAT(of(cost), Not(warned)) << "a bucket keeps the debt";
  EXPECT_THAT(of("algorithm = \"fixed_window\"\ncost = { bytes = \"response\", reserve = 5 }\n"),
              Not(warned));
  EXPECT_THAT(of("algorithm = \"fixed_window\"\ncost = { bytes = \"request\" }\n"), Not(warned));
  EXPECT_THAT(of(window + "[[rule]]\nname = \"y\"\nlimit = 5\nalgorithm = \"concurrency\"\nkey = [\"ip\"]\n"),
              Not(warned));
  EXPECT_THAT(
      of(window + "[[rule]]\nname = \"y\"\nlimit = 5\nalgorithm = \"concurrency\"\nmode = \"shadow\"\n"),
      warned);
}

TEST(Warnings, WarnOfUnusedTokenAndCountrySettings) {
  const Folder folder;
  policy::CountryFile countries;
  countries.add("203.0.113.0", 24, "CH");
  folder.write("c.mmdb", countries.bytes());
  const auto of = [&](const std::string& more) {
    return warnings_of(with_rule(more + "[client]\ngeo = \"c.mmdb\"\njwt = { algorithm = \"HS256\", secret = "
                                        "\"0123456789abcdef0123456789abcdef\" }\n"),
                       folder.file(kFile));
  };
  const auto unasked = HasSubstr("nothing uses a c");
  EXPECT_THAT(of(""), AllOf(Contains("[client] jwt is configured, but nothing uses a claim"),
                            Contains("[client] geo is configured, but nothing uses a place")));
  EXPECT_THAT(of("key = [\"claim:sub|country\"]\n"), Not(Contains(unasked)));
}

TEST(Warnings, WarnOfRulesThatCountEqualUserNamesOfSeveralTokenIssuersTogether) {
  const auto issuer = [](const std::string& name) {
    return "[[client.jwt]]\nissuer = \"" + name + "\"\nalgorithm = \"HS256\"\nsecret = \"" +
           std::string(32, 's') + "\"\n";
  };
  const std::string sources = "[client]\nuser = { claim = \"sub\" }\norg = { header = \"X-Org\" }\n";
  const auto of = [&](const std::string& key, const std::string& issuers) {
    return warnings_of(with_rule("key = " + key + "\n" + sources + issuers));
  };
  const auto both = issuer("https://a") + issuer("https://b");
  const std::string how =
      ", a claim of tokens from several issuers: clients of different issuers with the same value share one "
      "limit; add \"claim:iss\" to its key";
  EXPECT_THAT(of("[\"user|ip\"]", both), Contains("rule \"x\" is keyed by \"user\"" + how));
  EXPECT_THAT(of("[\"ip\", \"claim:tenant\"]", both),
              Contains("rule \"x\" is keyed by \"claim:tenant\"" + how));
  for (const auto* key : {"[\"claim:iss\", \"user\"]", "[\"claim:iss|ip\", \"user|ip\"]", "[\"claim:iss\"]",
                          "[\"org\"]", "[\"ip\"]"})
    EXPECT_THAT(of(key, both), Not(Contains(HasSubstr(how)))) << key;
  EXPECT_THAT(of("[\"user\"]", issuer("https://a")), Not(Contains(HasSubstr(how))));
}

TEST(Warnings, WarnOfTiersAndConditionsIfMoreThanOneTokenIssuerCanGrantThem) {
  const auto of = [&](const std::string& rule, const std::string& client, int issuers) {
    std::string tables;
    for (int i = 0; i < issuers; ++i)
      tables += "[[client.jwt]]\nissuer = \"" + std::to_string(i) + "\"\nalgorithm = \"HS256\"\nsecret = \"" +
                std::string(32, 's') + "\"\n";
    return warnings_of(with_rule(rule + "\n[client]\n" + client + "\n" + tables));
  };
  const auto tiers = HasSubstr("tier is a claim of tokens from several issuers");
  const auto conditions = HasSubstr("has conditions on claims of tokens from several issuers");
  const std::string tier = "tier = { claim = \"plan\" }";
  EXPECT_THAT(of("", tier, 2), Contains(tiers));
  EXPECT_THAT(of("tiers = { gold = { limit = \"9/s\" } }", tier, 1),
              Not(Contains(::testing::AnyOf(tiers, HasSubstr("names the tier")))));
  EXPECT_THAT(of("match = { claims = { scope = \"a\" } }", "", 2), Contains(conditions));
  EXPECT_THAT(of("match = { not = { claims = { scope = \"a\" } } }", "", 2), Contains(conditions));
  EXPECT_THAT(of("match = { claims = { scope = \"a\", iss = \"0\" } }", "", 2), Not(Contains(conditions)));
  EXPECT_THAT(of("match = { claims = { scope = \"a\" } }", "", 1), Not(Contains(conditions)));
}

TEST(Warnings, WarnOfGeoAttributesThatNoDatabaseContains) {
  const Folder folder;
  for (const auto* type : {"GeoLite2-Country", "DBIP-City-Lite", "GeoLite2-ASN", "Test-Country"}) {
    policy::CountryFile file(type);
    file.add("203.0.113.0", 24, "CH");
    folder.write(std::string(type) + ".mmdb", file.bytes());
  }
  const auto of = [&](const std::string& rule, const std::string& types) {
    return warnings_of(with_rule(rule + "\n[client]\ngeo = [" + types + "]\n"), folder.file(kFile));
  };
  const std::string country = R"("GeoLite2-Country.mmdb")", city = R"("DBIP-City-Lite.mmdb")";
  EXPECT_THAT(of("key = [\"asn\"]", country),
              Contains("rule \"x\" is keyed by \"asn\", which no request has: no database of [client] geo "
                       "(GeoLite2-Country) knows it"));
  EXPECT_THAT(
      of("key = [\"ip\"]\nmatch = { asn = \"AS1\", not = { region = \"CH-GE\" } }", country),
      IsSupersetOf({"rule \"x\" has the condition asn, which never holds: no database of [client] geo "
                    "(GeoLite2-Country) knows it; add a file to geo",
                    "rule \"x\" has the condition region, which never holds: no database of [client] "
                    "geo (GeoLite2-Country) knows it; add a file to geo"}));
  const auto warned = Contains(HasSubstr("knows it"));
  EXPECT_THAT(of("key = [\"city\"]", R"("GeoLite2-ASN.mmdb")"), warned);
  EXPECT_THAT(of("key = [\"country\"]", R"("GeoLite2-ASN.mmdb")"), warned);
  EXPECT_THAT(of("key = [\"asn\"]", city + ", \"GeoLite2-ASN.mmdb\""), Not(warned));
  EXPECT_THAT(of("key = [\"city\"]\nmatch = { country = \"CH\" }", city), Not(warned));
  EXPECT_THAT(of("key = [\"asn\"]\nmatch = { city = \"Geneva\" }", R"("Test-Country.mmdb")"), Not(warned))
      << "weir does not know what this database has";
}

TEST(Warnings, WarnOfRegularExpressionsThatNoPathMatches) {
  const auto warned = Contains(HasSubstr("are cut off before paths are compared"));
  const auto of = [](const std::string& path) {
    return warnings_of(with_rule("key = [\"ip\"]\nmatch = { path = '" + path + "' }\n"));
  };
  for (const char* path : {"~;", "~^/a;v=1", R"(~/a\;)", R"(~/a\?b=1)", "~/a#b", "~[a];", "~[]];", "~[^/];"})
    EXPECT_THAT(of(path), warned) << path;
  for (const char* path : {"~^/a", "~[^;]", "~/a[;?#]*", "~[];]", "~[^];]", "~/ab?", "/a"})
    EXPECT_THAT(of(path), Not(warned)) << path;
  const auto more = [](const std::string& text) { return warnings_of(with_rule("key = [\"ip\"]\n" + text)); };
  for (const char* path :
       {R"(~^/x(;.*)?$)", "~^/[[:alpha:];]+$", R"(~^/\Q;\E?$)", "~^/a|/b#c$", "~^/a;?b$", "~^/a;*$"})
    EXPECT_THAT(more("match = { path = '" + std::string(path) + "' }\n"), Not(warned)) << path;
  EXPECT_THAT(more("match = { not = { path = \"~;\" } }\n"), warned);
  EXPECT_THAT(more("overrides = [{ match = { path = \"~;\" }, limit = \"1/s\" }]\n"), warned);
  EXPECT_THAT(more("[[route]]\nname = \"r\"\nupstream = \"api\"\nmatch = { path = \"~;\" }\n"), warned);
}

TEST(Warnings, WarnOfAKeysFileWithoutKeys) {
  const Folder folder;
  folder.write("keys.toml", "# [[key]]\n");
  const std::string empty = "[client] keys names a file without any [[key]]: ";
  const auto of = [&](const std::string& more) {
    return warnings_of(with("[client]\nkeys = \"keys.toml\"\n" + more), folder.file(kFile));
  };
  EXPECT_THAT(of(""), Contains(empty + "no API key is known, and none gives a user, org, service or tier"));
  EXPECT_THAT(of("unknown_keys = \"reject\"\n"),
              Contains(empty + "every request with an API key is refused (401)"));
  folder.write("keys.toml", "[[key]]\nkey = \"a\"\n");
  EXPECT_THAT(of(""), Not(Contains(HasSubstr(empty))));
}

}  // namespace
}  // namespace weir::config::test
