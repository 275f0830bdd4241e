#include "weir/config/settings.hpp"

#include "unit/config/configuration.hpp"
#include "unit/net/tls.hpp"
#include "unit/policy/country_file.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Settings, MinimalConfigurationGetsAllDefaults) {
  const auto settings = parse(kLeast);
  ASSERT_EQ(settings.rules.size(), 1u);
  const auto& rule = settings.rules[0];
  EXPECT_EQ(limit::describe(rule.limiter), "token_bucket 10/s, burst 10");
  EXPECT_EQ(policy::describe(rule.key), policy::describe({*policy::parse_key_part("api_key|ip")}));
  EXPECT_EQ(rule.cost, 1u);
  EXPECT_EQ(rule.store, policy::Store::Memory);
  EXPECT_EQ(rule.mode, policy::Mode::Enforce);
  EXPECT_EQ(rule.on_missing, policy::OnMissing::Skip);
  EXPECT_EQ(rule.refusal_status, 429u);
  EXPECT_FALSE(rule.refusal_body);
  EXPECT_FALSE(rule.local_share);
  EXPECT_EQ(settings.routes.at(0).name, "*");
  EXPECT_FALSE(settings.admin.address);
  EXPECT_EQ(settings.listeners.at(0).address.port, 8080);
}

// Other tests use the default values of the C++ types, so these must equal the schema's defaults.
TEST(Settings, DefaultsInTheSchemaEqualTheDefaultsOfTheCppTypes) {
  const auto settings = parse(kLeast);
  const proxy::ServerSettings server;
  EXPECT_EQ(settings.server.workers, server.workers);
  EXPECT_EQ(settings.server.drain, server.drain);
  EXPECT_EQ(settings.server.drain_delay, server.drain_delay);
  EXPECT_EQ(settings.server.x_ratelimit, server.x_ratelimit);
  EXPECT_EQ(settings.server.ietf_ratelimit, server.ietf_ratelimit);
  EXPECT_EQ(settings.server.forwarded, server.forwarded);
  EXPECT_EQ(settings.server.underscores_in_headers, server.underscores_in_headers);
  EXPECT_EQ(settings.server.max_head, server.max_head);
  EXPECT_EQ(settings.server.max_body, server.max_body);
  EXPECT_EQ(settings.server.max_connections, server.max_connections);
  EXPECT_EQ(settings.server.head_timeout, server.head_timeout);
  EXPECT_EQ(settings.server.body_timeout, server.body_timeout);
  EXPECT_EQ(settings.server.write_timeout, server.write_timeout);
  EXPECT_EQ(settings.server.idle_timeout, server.idle_timeout);
  EXPECT_EQ(settings.server.max_connections_per_ip, server.max_connections_per_ip);
  EXPECT_EQ(settings.server.min_rate.octets_per_second, server.min_rate.octets_per_second);
  EXPECT_EQ(settings.server.min_rate.grace, server.min_rate.grace);
  EXPECT_EQ(settings.client.address_field, policy::ClientSettings{}.address_field);
  EXPECT_EQ(settings.log.access, LogSettings{}.access);
  EXPECT_EQ(settings.log.level, LogSettings{}.level);
  EXPECT_EQ(settings.state.max_keys, StateSettings{}.max_keys);
  EXPECT_EQ(settings.state.replicas, StateSettings{}.replicas);
  EXPECT_EQ(settings.client.ipv6_prefix, policy::ClientSettings{}.ipv6_prefix);
  EXPECT_EQ(settings.client.api_key.name, policy::ClientSettings{}.api_key.name);
  const upstream::UpstreamSettings upstream;
  EXPECT_EQ(settings.upstreams.at(0).balance, upstream.balance);
  EXPECT_EQ(settings.upstreams.at(0).max_idle, upstream.max_idle);
  EXPECT_EQ(settings.upstreams.at(0).queue, upstream.queue);
  EXPECT_EQ(settings.upstreams.at(0).max_wait, upstream.max_wait);
  EXPECT_EQ(settings.upstreams.at(0).resolve, upstream.resolve);
  EXPECT_EQ(settings.upstreams.at(0).resolve_least, upstream.resolve_least);
  EXPECT_EQ(settings.upstreams.at(0).timeouts.connect, upstream.timeouts.connect);
  EXPECT_EQ(settings.upstreams.at(0).timeouts.response, upstream.timeouts.response);
  EXPECT_EQ(settings.upstreams.at(0).timeouts.expect_continue, upstream.timeouts.expect_continue);
  EXPECT_EQ(settings.upstreams.at(0).timeouts.idle, upstream.timeouts.idle);
  const auto redis = *parse(with("[state]\nredis = { url = \"redis://a\" }\n")).state.redis;
  EXPECT_EQ(redis.timeout, redis::RedisSettings{}.timeout);
  EXPECT_EQ(redis.prefix, redis::RedisSettings{}.prefix);
}

TEST(Settings, ExpectContinueTimeoutDefaultsToAtMostHalfTheResponseTimeout) {
  const auto of = [](const std::string& timeouts) {
    const auto text = "[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\ntimeouts = { " + timeouts + " }\n";
    return parse(with(text)).upstreams.back().timeouts.expect_continue;
  };
  EXPECT_EQ(of("response = \"2s\""), 1s);
  EXPECT_EQ(of("response = \"1s\""), 500ms);
  EXPECT_EQ(of("total = \"800ms\""), 400ms);
  EXPECT_EQ(of("response = \"1s\", expect_continue = \"3s\""), 3s);
}

TEST(Settings, ExpandsEnvironmentVariables) {
  const Variable name("WEIR_TEST_NAME", "from outside");
  const Variable empty("WEIR_TEST_EMPTY", "");
  const auto body = [](const std::string& text) {
    return *parse(with_rule("body = \"" + text + "\"\n")).rules[1].refusal_body;
  };
  EXPECT_EQ(body("<${WEIR_TEST_NAME}>"), "<from outside>");
  EXPECT_EQ(body("${WEIR_TEST_NAME}${WEIR_TEST_NAME:-no}"), "from outsidefrom outside");
  EXPECT_EQ(body("${WEIR_TEST_UNSET:-a default}"), "a default");
  EXPECT_EQ(body("${WEIR_TEST_UNSET:-}."), ".");
  EXPECT_EQ(body("${WEIR_TEST_EMPTY}."), ".");
  EXPECT_EQ(body("${WEIR_TEST_EMPTY:-default}"), "default");
  EXPECT_EQ(body("$5 and } {"), "$5 and } {");
}

TEST(Settings, ReferenceInTheValueOfAnEnvironmentVariableIsNotExpanded) {
  const Variable name("WEIR_TEST_NAME", "${HOME}");
  EXPECT_EQ(*parse(with_rule("body = \"${WEIR_TEST_NAME}\"\n")).rules[1].refusal_body, "${HOME}");
}

std::string rule_for_path(const std::string& name, const std::string& path) {
  return "[[rule]]\nname = \"" + name + "\"\nmatch = { path = \"" + path + "\" }\nlimit = \"1/s\"\n";
}

TEST(Settings, RejectsMoreThanAThousandRules) {
  std::string text = kLeast;
  for (int i = 1; i < 1'000; ++i) text += rule_for_path("r" + std::to_string(i), "/" + std::to_string(i));
  EXPECT_THAT(mistakes_in(text), IsEmpty());
  EXPECT_THAT(mistakes_in(text + rule_for_path("last", "/last")),
              ElementsAre(HasSubstr("rule[last]: found rule number 1001; expected at most 1000 rules")));
}

TEST(Settings, RejectsMoreThan32RulesThatAllApplyToOneRequest) {
  std::string text = kLeast;
  for (int i = 1; i < 32; ++i) text += rule_for_path("r" + std::to_string(i), "/api/*");
  text += rule_for_path("beside", "/other/*");
  EXPECT_THAT(mistakes_in(text), IsEmpty());
  EXPECT_THAT(mistakes_in(text + rule_for_path("last", "/api/login")),
              ElementsAre(HasSubstr("rule[last]: found more than 32 limits for every request that rule "
                                    "\"last\" matches; expected at most 32.")));
}

TEST(Settings, RejectsMoreThan32RulesForARequestIfEachUsesTheAddressInPlaceOfAMissingKey) {
  std::string text = kLeast;
  for (int i = 1; i < 33; ++i)
    text += rule_for_path("r" + std::to_string(i), "/*") + "key = [\"user\"]\non_missing = \"ip\"\n";
  EXPECT_THAT(mistakes_in(text), ElementsAre(HasSubstr("rule[r32]: found more than 32 limits")));
}

// A request stores in 64 bits which servers it has tried, so a 65th server would not fit.
TEST(Settings, RejectsMoreServersThanTheMaximumOfAnUpstream) {
  const auto of = [](std::size_t count) {
    std::string servers;
    for (std::size_t i = 0; i < count; ++i) servers += "\"10.0.0.1:" + std::to_string(9000 + i) + "\", ";
    return mistakes_in(with("[[upstream]]\nname = \"b\"\nservers = [" + servers + "]\n"));
  };
  EXPECT_THAT(of(upstream::kMaxServers), IsEmpty());
  EXPECT_THAT(of(upstream::kMaxServers + 1),
              ElementsAre("weir.toml:13: upstream[b].servers: found 65; expected at most 64 servers in one "
                          "upstream"));
}

TEST(Settings, ReportsEveryMistakeInTheOrderOfTheFile) {
  const auto mistakes = mistakes_in(with_rule("cost = 0\nburts = 1\n") + "[server]\nworkers = -1\n");
  EXPECT_THAT(mistakes, ElementsAre(HasSubstr("weir.toml:14: "), HasSubstr("weir.toml:15: "),
                                    HasSubstr("weir.toml:17: ")));
}

TEST(Settings, ErrorAboutAnUnknownKeyAttributeSuggestsTheMostSimilarAttribute) {
  EXPECT_THAT(mistakes_in(with_rule("key = [\"api_kee\"]\n")),
              ElementsAre(AllOf(HasSubstr("weir.toml:14: rule[x].key: "), HasSubstr("api_kee"),
                                HasSubstr("\"api_key\""))));
}

TEST(Settings, UnnamedRoutesWithTheSamePathGetDifferentLabels) {
  const auto routes =
      parse(with("[[route]]\nmatch = { path = \"/a\", host = \"B.example.\" }\nupstream = \"api\"\n"
                 "[[route]]\nmatch = { path = \"/a\" }\nrespond = { status = 204 }\n"
                 "[[route]]\nmatch = { path = \"/a\", methods = \"GET\" }\nupstream = \"api\"\n"))
          .routes;
  EXPECT_EQ(routes[1].name, "b.example/a");
  EXPECT_EQ(routes[2].name, "/a");
  EXPECT_EQ(routes[2].respond->status, 204u);
  EXPECT_EQ(routes[3].name, "/a#2");
}

TEST(Settings, KeyOwnersAreReadFromTheKeysFileAndNoPlainKeyIsStored) {
  const Folder folder;
  folder.write("keys.toml",
               "[[key]]\nkey = \"secret-1\"\nuser = \"ann\"\ntier = \"free\"\n"
               // The SHA-256 digest of the API key "abc" (FIPS 180-2, appendix B.1).
               "[[key]]\nsha256 = \"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"\norg "
               "= \"acme\"\n");
  const auto settings =
      parse_settings(with("[client]\nkeys = \"keys.toml\"\nunknown_keys = \"reject\"\n"), folder.file(kFile));
  ASSERT_TRUE(settings.client.keys);
  EXPECT_EQ(settings.client.keys->find("secret-1")->user, "ann");
  EXPECT_EQ(settings.client.keys->find("abc")->org, "acme");
  EXPECT_EQ(settings.client.keys->find("abcd"), nullptr);
  EXPECT_EQ(settings.client.unknown_keys, policy::UnknownKeys::Reject);
}

TEST(Settings, ErrorAboutAKeysFileNeverShowsAnApiKey) {
  const Folder folder;
  const auto keys = folder.write("keys.toml",
                                 "[[key]]\nkey = \"secret-1\"\n[[key]]\nkey = \"secret-1\"\n"
                                 "[[key]]\nsha256 = \"secret-2\"\n[[key]]\nuser = \"bob\"\n"
                                 "[[key]]\nkey = \"secret-3\"\nsha256 = \"secret-4\"\n[[key]]\nkey = \"\"\n");
  const auto mistakes = mistakes_in(with("[client]\nkeys = \"keys.toml\"\n"), folder.file(kFile));
  EXPECT_THAT(mistakes,
              ElementsAre(keys + ":3: key[#2]: this key appears in the file twice; remove one of them",
                          keys + ":6: key[#3].sha256: not a SHA-256; expected 64 hexadecimal digits",
                          keys + ":7: key[#4]: found neither key nor sha256; expected one of them",
                          keys + ":9: key[#5]: found both key and sha256; expected one of them",
                          keys + ":13: key[#6].key: found \"\"; expected an API key"));
}

// If an environment variable is unset, the value can be empty. An empty value would disable the check of a
// claim.
TEST(Settings, RejectsAnEmptyIssuerAudienceOrPublicKey) {
  const std::string jwt =
      "[client]\njwt = { algorithm = \"HS256\", secret = \"" + std::string(32, 's') + "\", ";
  EXPECT_THAT(
      mistakes_in(with(jwt + "issuer = \"${UNSET_IN_TESTS:-}\" }\n")),
      ElementsAre(HasSubstr("client.jwt.issuer: found \"\"; expected the value that tokens contain")));
  EXPECT_THAT(
      mistakes_in(with(jwt + "audience = \"\" }\n")),
      ElementsAre(HasSubstr("client.jwt.audience: found \"\"; expected the value that tokens contain")));
  const Folder folder;
  folder.write("empty.pem", "");
  EXPECT_THAT(mistakes_in(with("[client]\njwt = { algorithm = \"RS256\", public_key = \"empty.pem\" }\n"),
                          folder.file(kFile)),
              ElementsAre(HasSubstr("empty.pem\" is empty; expected a public key in PEM")));
}

TEST(Settings, SeveralTokenIssuersAreRead) {
  const Folder folder;
  folder.write(
      "keys.json",
      R"({"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]})");
  const auto settings =
      parse_settings(with_rule("key = [\"claim:sub\"]\n[[client.jwt]]\nissuer = \"https://a\"\njwks = "
                               "\"keys.json\"\n[[client.jwt]]\nissuer = \"https://b\"\nalgorithm = "
                               "\"HS256\"\nsecret = \"" +
                               std::string(32, 's') + "\"\n"),
                     folder.file(kFile));
  ASSERT_TRUE(settings.client.tokens);
  const auto issuers = settings.client.tokens->settings();
  ASSERT_EQ(issuers.size(), 2U);
  EXPECT_EQ(issuers[0].issuer, "https://a");
  EXPECT_THAT(issuers[0].jwks, HasSubstr("Ed25519"));
  EXPECT_EQ(issuers[1].algorithm, "HS256");
  EXPECT_THAT(describe(settings), HasSubstr("tokens of any algorithm in jwks, of issuer \"https://a\""));
}

TEST(Settings, UrlOfTokenKeysIsReadButNotFetched) {
  const auto settings =
      parse(with_rule("key = [\"claim:sub\"]\n[client.jwt]\njwks = "
                      "\"http://127.0.0.1:1/keys\"\n[client.jwt.fetch]\nrefresh = "
                      "\"1h\"\nmax_size = \"1KiB\"\nallow_http = true\n"));
  ASSERT_TRUE(settings.client.tokens);
  EXPECT_EQ(settings.client.tokens->fetched().at("http://127.0.0.1:1/keys").first,
            (policy::KeyFetchSettings{.url = "http://127.0.0.1:1/keys",
                                      .refresh = std::chrono::hours(1),
                                      .cooldown = std::chrono::seconds(2),
                                      .wait = std::chrono::seconds(3),
                                      .timeout = std::chrono::seconds(5),
                                      .max_size = 1 << 10,
                                      .max_waiting = 1000,
                                      .allow_http = true}));
  EXPECT_THAT(
      describe(settings),
      HasSubstr("keys from http://127.0.0.1:1/keys, fetched every 1h, for an unknown kid at most every "
                "2s; requests wait up to 3s, at most 1000 of them\n    a fetch takes up to 5s and "
                "1KiB, without TLS\n"));
}

TEST(Settings, ErrorAboutARedisUrlDoesNotShowItsPassword) {
  const auto mistakes = mistakes_in(with("[state]\nredis = { url = \"redis://user:hunter2@:x/y\" }\n"));
  EXPECT_THAT(mistakes, ElementsAre(HasSubstr("weir.toml:12: state.redis.url: ")));
  EXPECT_THAT(mistakes, Not(Contains(HasSubstr("hunter2"))));
}

TEST(Settings, ReadsEveryLogLevel) {
  constexpr std::pair<const char*, log::LogLevel> kWords[] = {
      {"trace", log::LogLevel::Trace},  {"debug", log::LogLevel::Debug}, {"info", log::LogLevel::Info},
      {"warn", log::LogLevel::Warning}, {"error", log::LogLevel::Error}, {"off", log::LogLevel::Off}};
  for (const auto& [word, level] : kWords)
    EXPECT_EQ(parse(with("[log]\nlevel = \"" + std::string(word) + "\"\n")).log.level, level) << word;
}

TEST(Settings, ListenersWithTlsAlsoSpeakHttp2) {
  const net::Certificates made;
  const auto listener = [](const std::string& more) {
    return parse(with("[[listener]]\naddress = \"127.0.0.1:0\"\n" + more)).listeners[1];
  };
  const auto tls =
      "tls = { certificates = [{ cert = \"" + made.cert() + "\", key = \"" + made.key() + "\" }] }\n";
  EXPECT_EQ(listener("").protocols, net::Protocols{});
  EXPECT_EQ(listener("protocols = [\"http/1.1\", \"h2c\"]\n").protocols, (net::Protocols{.h2c = true}));
  EXPECT_EQ(listener("protocols = [\"h2c\"]\n").protocols, (net::Protocols{.http1 = false, .h2c = true}));
  const net::Protocols both{.h2 = true};
  EXPECT_EQ(listener(tls).protocols, both);
  EXPECT_EQ(listener(tls).tls->protocols, both) << "ALPN offers the same";
  EXPECT_EQ(listener(tls + "protocols = [\"http/1.1\"]\n").tls->protocols, net::Protocols{});
  EXPECT_EQ(listener(tls + "protocols = [\"h2\"]\n").tls->protocols,
            (net::Protocols{.http1 = false, .h2 = true}));
}

TEST(Settings, ListenerMaySetItsHttp2Bounds) {
  const auto http2 = [](const std::string& keys) {
    return parse(with("[[listener]]\naddress = \"127.0.0.1:0\"\n" + keys)).listeners[1].http2;
  };
  EXPECT_EQ(http2("http2 = {}\n"), net::Http2Options{}) << "the schema and the type have the same defaults";
  EXPECT_EQ(http2("http2 = { max_streams = 7, stream_window = \"16KiB\", connection_window = \"1GiB\", "
                  "resets = \"20/min\", ping = \"5s\" }\n"),
            (net::Http2Options{.max_streams = 7,
                               .stream_window = 16 << 10,
                               .connection_window = 1 << 30,
                               .resets = 20,
                               .resets_within = base::Duration{60'000'000},
                               .ping = base::Duration{5'000'000}}));
}

TEST(Settings, RelativePathsAreResolvedFromTheFolderOfTheConfiguration) {
  const Folder folder;
  const net::Certificates made;
  const auto certificate = folder.write("edge.crt", contents(made.cert()));
  folder.write("edge.key", contents(made.key()));
  folder.write(
      kFile,
      with("[[listener]]\naddress = \"127.0.0.1:0\"\n"
           "tls = { certificates = [{ cert = \"edge.crt\", key = \"edge.key\" }], min_version = \"1.3\" }\n"
           "[log]\naccess = \"access.log\"\n"));
  const auto settings = load_settings(folder.file(kFile));
  EXPECT_EQ(settings.listeners[1].tls->certificates.at(0).cert, certificate);
  EXPECT_EQ(settings.listeners[1].tls->min_version, net::TlsVersion::Tls13);
  EXPECT_EQ(settings.log.access, folder.file("access.log"));
}

TEST(Settings, ErrorNamesAFileThatCannotBeRead) {
  const Folder folder;
  const std::pair<std::string, std::string> unreadable[] = {
      {folder.file("absent.toml"), "No such file or directory"},
      {folder.file(""), "it is a directory, not a regular file"}};
  for (const auto& [file, reason] : unreadable) {
    try {
      (void)load_settings(file);
      ADD_FAILURE() << file;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.mistakes(),
                  ElementsAre(file + ": cannot be read: " + reason + "; expected a TOML file"));
    }
  }
}

TEST(Settings, AdminListenerOnAPublicAddressNeedsAToken) {
  for (const auto* address : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1", "unix:/run/weir.sock"})
    EXPECT_THAT(mistakes_in(with("[admin]\naddress = \"" + std::string(address) + "\"\n")), IsEmpty())
        << address;
  EXPECT_THAT(mistakes_in(with("[admin]\naddress = \"0.0.0.0:1\"\ntoken = \"0123456789abcdef\"\n")),
              IsEmpty());
}

TEST(Settings, ErrorAboutAShortTokenForAPublicAdminListenerDoesNotShowTheToken) {
  const auto of = [](const std::string& address) {
    return mistakes_in(with("[admin]\naddress = \"" + address + "\"\ntoken = \"0123456789abcde\"\n"));
  };
  for (const auto* address : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "admin.example:1", "203.0.113.7:1"})
    EXPECT_THAT(
        of(address),
        ElementsAre(
            "weir.toml:13: admin.token: found 15 characters, but " + std::string(address) +
            " can be reached from other machines, which could guess the token; expected 16 characters or "
            "more, such as \"openssl rand -hex 16\" prints"));
  for (const auto* address : {"127.0.0.1:1", "[::1]:1", "unix:/run/weir.sock"})
    EXPECT_THAT(of(address), IsEmpty());
}

// Two listeners can conflict although their addresses are not equal. `weir check` used to accept such
// listeners.
TEST(Settings, RejectsListenerAddressesThatCannotBothBeBound) {
  const auto beside = [](const std::string& one, const std::string& other) {
    return mistakes_in(with("[[listener]]\naddress = \"" + one +
                            "\"\n[admin]\ntoken = \"0123456789abcdef\"\naddress = \"" + other + "\"\n"));
  };
  EXPECT_THAT(beside("127.0.0.1:1", "127.0.0.1:8080"),
              ElementsAre("weir.toml:15: admin.address: found \"127.0.0.1:8080\", which collides with "
                          "\"127.0.0.1:8080\" on line 2; expected another address"));
  EXPECT_THAT(beside("0.0.0.0:8080", "127.0.0.1:1"),
              ElementsAre("weir.toml:12: listener[#2].address: found \"0.0.0.0:8080\", which collides with "
                          "\"127.0.0.1:8080\" on line 2; expected another address"));
  const std::pair<const char*, const char*> colliding[] = {{"0.0.0.0:1", "127.0.0.1:1"},
                                                           {"127.0.0.1:1", "0.0.0.0:1"},
                                                           {"[::]:1", "[::1]:1"},
                                                           {"[::1]:1", "[::]:1"},
                                                           {"[::1]:1", "[0:0:0:0:0:0:0:1]:1"},
                                                           {"localhost:1", "localhost:1"},
                                                           {"unix:/a", "unix:/a"},
                                                           {"0.0.0.0:1", "[::]:1"},
                                                           {"[::]:1", "127.0.0.1:1"}};
  for (const auto& [one, other] : colliding)
    EXPECT_THAT(beside(one, other), ElementsAre(HasSubstr("on line 12"))) << one << " " << other;
  const std::pair<const char*, const char*> apart[] = {
      {"127.0.0.1:0", "127.0.0.1:0"}, {"0.0.0.0:0", "127.0.0.1:0"}, {"0.0.0.0:1", "127.0.0.1:2"},
      {"127.0.0.1:1", "127.0.0.2:1"}, {"0.0.0.0:1", "[::1]:1"},     {"a:1", "b:1"},
      {"unix:/a", "unix:/b"},         {"unix:/a", "127.0.0.1:1"}};
  for (const auto& [one, other] : apart) EXPECT_THAT(beside(one, other), IsEmpty()) << one << " " << other;
}

TEST(Settings, ErrorNamesACertificateAndAKeyThatDoNotMatch) {
  const net::Certificates made;
  EXPECT_THAT(
      mistakes_in(with("[[listener]]\naddress = \"127.0.0.1:0\"\ntls = { certificates = [{ cert = \"" +
                       made.cert() + "\", key = \"" + made.other_key() + "\" }] }\n")),
      ElementsAre(AllOf(HasSubstr("weir.toml:13: listener[#2].tls.certificates[#1].key: the key"),
                        HasSubstr("does not belong to the certificate"))));
}

TEST(Settings, ListenerWithAClientCaRequestsClientCertificates) {
  const net::Certificates made;
  const auto tls = [&](const std::string& more) {
    return with_rule(
        "key = [\"cert:subject\"]\n[[listener]]\naddress = \"127.0.0.1:0\"\ntls = { certificates "
        "= [{ cert = \"" +
        made.cert() + "\", key = \"" + made.key() + "\" }], " + more + " }\n");
  };
  const auto required = parse_settings(tls("client_ca = \"" + made.cert() + "\""), kFile).listeners[1];
  EXPECT_EQ(required.tls->client_ca, made.cert());
  EXPECT_EQ(required.tls->client_auth, net::ClientAuth::Require);
  const auto optional =
      parse_settings(tls("client_auth = \"optional\", client_ca = \"" + made.cert() + "\""), kFile);
  EXPECT_EQ(optional.listeners[1].tls->client_auth, net::ClientAuth::Optional);
  EXPECT_THAT(describe(optional), HasSubstr(", client certificates optional by " + made.cert()));
  EXPECT_THAT(mistakes_in(tls("client_ca = \"" + made.key() + "\"")),
              ElementsAre(AllOf(HasSubstr("listener[#2].tls.client_ca: the file of client authorities"),
                                HasSubstr("expected the authority's certificate"))));
}

}  // namespace
}  // namespace weir::config::test
