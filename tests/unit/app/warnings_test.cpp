// What `weir check` warns of: what may be configured, and is probably not meant.
#include "unit/app/configuration.hpp"
#include "unit/policy/country_file.hpp"

#include <gmock/gmock.h>

namespace weir::app::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> warnings_of(const std::string& text) {
  return parse_settings(text, kFile).warnings;
}

TEST(Warnings, OfKeysThatClientsCanInvent) {
  const auto of = [](const std::string& key) { return warnings_of(with_rule("key = " + key + "\n")); };
  const auto warned = Contains(HasSubstr("rule \"x\" tells clients apart by API keys"));
  EXPECT_THAT(warnings_of(kLeast), Contains(HasSubstr("who invents keys gets a fresh limit with each")));
  for (const char* key :
       {R"(["api_key"])", R"(["ip", "api_key"])", R"(["route", "api_key|ip"])", R"(["user|api_key|ip"])"})
    EXPECT_THAT(of(key), warned) << key;
  for (const char* key : {"[]", R"(["ip"])", R"(["ip|api_key"])", R"(["path|api_key", "route"])"})
    EXPECT_THAT(of(key), Not(warned)) << key;
}

TEST(Warnings, OfRoutesBehindOneThatTakesAll) {
  EXPECT_THAT(
      warnings_of(with("[[route]]\nname = \"late\"\nmatch = { path = \"/a\" }\nupstream = \"api\"\n")),
      Contains("route \"late\" is never reached: \"*\" before it takes every request"));
}

TEST(Warnings, OfARuleThatMeetsNoRoute) {
  const auto warned = Contains("rule \"x\" applies to no route: its host, methods or path are of none");
  const std::string routes =
      "[[listener]]\naddress = \"127.0.0.1:0\"\n[[route]]\nmatch = { path = \"/api/*\" }\n"
      "respond = { status = 200 }\n[[rule]]\nname = \"x\"\nlimit = \"1/s\"\n";
  EXPECT_THAT(warnings_of(routes + "match = { path = \"/apl/*\" }\n"), warned);
  EXPECT_THAT(warnings_of(routes + "match = { path = \"/api/a\" }\n"), Not(warned));
}

TEST(Warnings, OfTrustInEverybody) {
  const auto warned = Contains(HasSubstr("trusted_proxies takes every address"));
  EXPECT_THAT(warnings_of(with("[client]\ntrusted_proxies = [\"0.0.0.0/0\"]\n")), warned);
  EXPECT_THAT(warnings_of(with("[client]\ntrusted_proxies = [\"::/0\"]\n")), warned);
  EXPECT_THAT(warnings_of(with("[client]\ntrusted_proxies = [\"0.0.0.0/1\", \"10.0.0.0/8\"]\n")),
              Not(warned));
}

TEST(Warnings, OfTiersThatNobodyHas) {
  EXPECT_THAT(warnings_of(with_rule("tiers = { gold = { limit = \"1/s\" } }\n")),
              Contains(HasSubstr("rule \"x\" names the tier \"gold\"")));
  const Folder folder;
  folder.write("keys.toml", "[[key]]\nkey = \"k\"\ntier = \"free\"\n");
  const auto warnings =
      parse_settings(with_rule("tiers = { free = { limit = \"1/s\" }, gold = { limit = \"1/s\" } }\n"
                               "[client]\nkeys = \"keys.toml\"\n"),
                     folder.file(kFile))
          .warnings;
  EXPECT_THAT(warnings, ::testing::ElementsAre(
                            "rule \"x\" names the tier \"gold\", which no key of the keys file has"));
}

TEST(Warnings, OfASharedStoreWithoutASecret) {
  const std::string redis = "store = \"redis\"\n[state]\nredis = { url = \"redis://a\" }\n";
  EXPECT_THAT(warnings_of(with_rule(redis)), Contains(HasSubstr("key_secret is missing")));
  EXPECT_THAT(warnings_of(with_rule(redis + "key_secret = \"s\"\n")), Not(Contains(HasSubstr("key_secret"))));
}

TEST(Warnings, ASharedQueueThatOneClientMayFill) {
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
  EXPECT_THAT(of("key = []\n"), Not(warned)) << "places are given to others";
  EXPECT_THAT(warnings_of(with_rule("key = []\n" + asks_redis)), Not(warned)) << "no queue";
}

TEST(Warnings, OfWhatNeverApplies) {
  const auto every_body = HasSubstr("rule \"x\" reads every request's body into memory");
  EXPECT_THAT(warnings_of(with_rule("cost = { json = \"/a\" }\n")), Contains(every_body));
  EXPECT_THAT(warnings_of(with_rule("match = { not = { body_contains = \"a\" } }\n")), Contains(every_body));
  EXPECT_THAT(warnings_of(with_rule("match = { path = \"/a\", body_contains = \"a\" }\n")),
              Not(Contains(every_body)));
  EXPECT_THAT(warnings_of(with_rule("cost = 11\n")), Contains(HasSubstr("rule \"x\" admits nothing")));
  EXPECT_THAT(warnings_of(with_rule("key = [\"user\"]\n")), Contains(HasSubstr("which no request has")));
  EXPECT_THAT(warnings_of(with("[client]\nuser = { header = \"X-User\" }\n")),
              Contains(HasSubstr("believed from trusted proxies alone")));
  EXPECT_THAT(warnings_of(with("[[upstream]]\nname = \"spare\"\nservers = [\"a:1\"]\n")),
              Contains("upstream \"spare\" is used by no route"));
}

TEST(Warnings, OfPeersWhoseWordNobodyBelieves) {
  const auto of = [](const std::string& listener, const std::string& more = "") {
    return warnings_of(with("[[listener]]\n" + listener + more));
  };
  const auto one_client = Contains(HasSubstr("listener unix:/tmp/x has peers without addresses"));
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

TEST(Warnings, OfBoundsThatBoundNothing) {
  const auto of = [](const std::string& size) {
    return warnings_of(with("[[route]]\nname = \"a\"\nupstream = \"api\"\nmax_head = \"" + size + "\"\n"));
  };
  EXPECT_THAT(of("17KiB"), Contains(HasSubstr("route \"a\" has a max_head above that of [server]")));
  EXPECT_THAT(of("16KiB"), Not(Contains(HasSubstr("max_head"))));
}

TEST(Warnings, OfMessagesWhereNoConnectionHasAny) {
  const auto of = [](const std::string& upgrade, const std::string& match) {
    return warnings_of(
        "[[listener]]\naddress = \"127.0.0.1:1\"\n[[upstream]]\nname = \"api\"\nservers = "
        "[\"a:1\"]\n[[route]]\nmatch = { path = \"/ws/*\" }\nupstream = \"api\"\n" +
        upgrade + "[[rule]]\nname = \"x\"\nlimit = \"1/s\"\nmessages = \"9/s\"\n" + match);
  };
  const auto warned = Contains(HasSubstr("rule \"x\" counts messages, and no route"));
  EXPECT_THAT(of("", ""), Not(warned));
  EXPECT_THAT(of("upgrade = [\"WebSocket\"]\n", ""), Not(warned)) << "protocols have no case";
  EXPECT_THAT(of("upgrade = []\n", ""), warned);
  EXPECT_THAT(of("upgrade = [\"chat\"]\n", ""), warned);
  EXPECT_THAT(of("", "match = { path = \"/api/*\" }\n"), warned);
}

TEST(Warnings, OfCostsThatNobodyCanPay) {
  const auto of = [](const std::string& more) { return warnings_of(with_rule(more)); };
  EXPECT_THAT(of("cost = 11\n"), Contains("rule \"x\" admits nothing: a request costs 11, and at most 10 can "
                                          "be spent at once"));
  EXPECT_THAT(of("cost = 11\nburst = 11\n"), Not(Contains(HasSubstr("admits"))));
  EXPECT_THAT(of("cost = 11\nsoft = \"10%\"\n"), Not(Contains(HasSubstr("admits"))));
  EXPECT_THAT(of("cost = 11\nelastic = { limit = \"20/s\", while_load_below = 0.7 }\n"),
              Not(Contains(HasSubstr("admits"))));
  EXPECT_THAT(of("cost = { header = \"X-Cost\", default = 11 }\n"),
              Contains(HasSubstr("admits no request that does not say its cost: it costs 11")));
  EXPECT_THAT(of("cost = 11\ntiers = { free = { limit = \"20/s\" } }\n"),
              Contains(HasSubstr("admits nothing beside its tiers and overrides: a request costs 11")));
}

TEST(Warnings, OfCostsThatATierOrAnOverrideCannotPay) {
  const auto of = [](const std::string& more) { return warnings_of(with_rule("cost = 5\n" + more)); };
  EXPECT_THAT(
      of("overrides = [{ match = { path = \"/a\" }, limit = \"4/s\" }]\n"),
      Contains("rule \"x\" admits nothing by its override for path /a: a request costs 5, and at most 4 "
               "can be spent at once"));
  EXPECT_THAT(of("tiers = { free = { limit = \"9/s\", burst = 4 } }\n"),
              Contains(HasSubstr("rule \"x\" admits nothing of the tier \"free\": a request costs 5")));
  EXPECT_THAT(of("overrides = [{ match = { path = \"/a\" }, limit = \"4/s\", burst = 5 }]\n"
                 "tiers = { free = { limit = \"5/s\" } }\n"),
              Not(Contains(HasSubstr("admits nothing"))));
}

// What departs at once waits in no place of the queue, and the warning is what the limiter does.
TEST(Warnings, OfCostsThatAnIdleQueueRefuses) {
  for (unsigned queue = 0; queue < 4; ++queue)
    for (unsigned cost = 1; cost < 6; ++cost) {
      const auto settings =
          parse_settings(with_rule("algorithm = \"leaky_bucket\"\nqueue = " + std::to_string(queue) +
                                   "\ncost = " + std::to_string(cost) + "\n"),
                         kFile);
      const auto& rule = settings.rules[1];
      const bool admitted =
          limit::step(rule.limiter, {}, base::TimePoint(std::chrono::hours(1)), rule.cost).outcome.allowed;
      const auto warning = Contains(HasSubstr("rule \"x\" admits nothing"));
      if (admitted)
        EXPECT_THAT(settings.warnings, Not(warning)) << queue << " " << cost;
      else
        EXPECT_THAT(settings.warnings, warning) << queue << " " << cost;
    }
}

TEST(Warnings, OfWhatNobodyAsksFor) {
  const Folder folder;
  policy::CountryFile countries;
  countries.add("203.0.113.0", 24, "CH");
  folder.write("c.mmdb", countries.bytes());
  const auto of = [&](const std::string& more) {
    return parse_settings(
               with_rule(more + "[client]\ngeo = \"c.mmdb\"\njwt = { algorithm = \"HS256\", secret = "
                                "\"0123456789abcdef0123456789abcdef\" }\n"),
               folder.file(kFile))
        .warnings;
  };
  const auto unasked = HasSubstr("nothing asks for a c");
  EXPECT_THAT(of(""), AllOf(Contains("[client] jwt is configured, and nothing asks for a claim"),
                            Contains("[client] geo is configured, and nothing asks for a country")));
  EXPECT_THAT(of("key = [\"claim:sub|country\"]\n"), Not(Contains(unasked)));
}

}  // namespace
}  // namespace weir::app::test
