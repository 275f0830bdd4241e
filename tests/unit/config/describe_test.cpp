// Tests the output of `weir check`.
#include "unit/config/configuration.hpp"
#include "unit/net/tls.hpp"
#include "unit/policy/country_file.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Returns the lines about a route, and about the rules that apply to it. `route`: the route's match. `rule`:
// the match of the only rule.
std::string rules_below(const std::string& route, const std::string& rule) {
  const auto text = describe(parse_settings(
      "[[listener]]\naddress = \"127.0.0.1:1\"\n[[route]]\nname = \"r\"\nmatch = " + route +
          "\nrespond = {}\n[[rule]]\nname = \"x\"\nlimit = \"1/s\"\nkey = [\"ip\"]\nmatch = " + rule + "\n",
      kFile));
  return text.substr(text.find("route "));
}

TEST(Describe, DescriptionOfARouteOmitsRulesThatCannotApplyToIt) {
  const auto none = HasSubstr("no rule applies");
  EXPECT_THAT(rules_below(R"({ path = "/a" })", R"({ path = "/b" })"), none);
  EXPECT_THAT(rules_below(R"({ path = "/a" })", R"({ path = "/b/*" })"), none);
  EXPECT_THAT(rules_below(R"({ path = "/b/*" })", R"({ path = "/a" })"), none);
  EXPECT_THAT(rules_below(R"({ path = "/a/*" })", R"({ path = "/b/*" })"), none);
  EXPECT_THAT(rules_below(R"({ methods = "GET" })", R"({ methods = ["POST", "PUT"] })"), none);
  EXPECT_THAT(rules_below(R"({ host = "a" })", R"({ host = "b" })"), none);
  EXPECT_THAT(rules_below(R"({ host = ["a", "b"] })", R"({ host = ["c", "*.a"] })"), none);
  EXPECT_THAT(rules_below(R"({ scheme = "http" })", R"({ scheme = "https" })"), none);
}

TEST(Describe, DescriptionOfARouteListsRulesThatMayApplyWithTheirConditions) {
  const auto listed = HasSubstr("rule \"x\": token_bucket 1/s, burst 1");
  EXPECT_THAT(rules_below(R"({ path = "/a" })", R"({ path = "/a" })"), listed);
  EXPECT_THAT(rules_below(R"({ path = "/a/*" })", R"({ path = "/a/b" })"), listed);
  EXPECT_THAT(rules_below(R"({ host = ["a", "*.b"] })", R"({ host = ["c", "x.b"] })"), listed);
  EXPECT_THAT(rules_below(R"({ path = "/a" })", R"({ route = "r" })"), listed);
  EXPECT_THAT(rules_below(R"({ path = "/a/*" })", R"({ path = "/a/b/*" })"), listed);
  EXPECT_THAT(rules_below(R"({ path = "/a" })", R"({ path = "~^/b" })"), Not(listed));
  EXPECT_THAT(rules_below(R"({ path = "/a/*" })", R"({ path = "~^/b" })"), listed);
  EXPECT_THAT(rules_below(R"({ methods = "GET" })", R"({ path = "/b" })"),
              AllOf(listed, HasSubstr("where path /b")));
  EXPECT_THAT(rules_below("{}", "{}"), AllOf(listed, Not(HasSubstr("where"))));
}

TEST(Describe, ShowsTheHeadersAndJitterOfRefusals) {
  EXPECT_THAT(describe(parse_settings(with_rule("headers = { X-A = \"a\", X-B = \"b\" }\n"), kFile)),
              HasSubstr(", refusals with X-A: a and X-B: b\n"));
  EXPECT_THAT(describe(parse_settings(with_rule("retry_after_jitter = \"10%\"\n"), kFile)),
              HasSubstr(", Retry-After up to 10% longer\n"));
  EXPECT_THAT(describe(parse_settings(with("[server]\nretry_after_jitter = \"5%\"\n"), kFile)),
              HasSubstr("\nRetry-After up to 5% longer, by chance\n"));
}

TEST(Describe, ShowsWhichOriginsMayReadAnswers) {
  const auto cors = [](const std::string& keys) {
    return describe(parse_settings(with("[cors]\n" + keys), kFile));
  };
  EXPECT_THAT(
      cors("origins = [\"https://a.example\", \"http://b.example:81\"]\ncredentials = true\n"),
      HasSubstr("\ncors: pages of https://a.example http://b.example:81, with credentials, servers answer "
                "preflights\n"));
  EXPECT_THAT(
      cors("origins = [\"*\"]\npreflight = \"answer\"\n"),
      HasSubstr(
          "\ncors: pages of every origin, weir answers preflights, which browsers remember for 10min\n"));
}

TEST(Describe, ShowsWhichSpansAreExported) {
  const auto tracing = [](const std::string& keys) {
    return describe(parse_settings(with("[tracing]\nendpoint = \"http://a/v1/traces?t=x\"\n" + keys), kFile));
  };
  EXPECT_THAT(tracing(""), HasSubstr("\nspans to http://a: 1% of requests, or as a trusted "
                                     "traceparent says, and every refusal\n"));
  EXPECT_THAT(tracing("sample = \"0.25%\"\nfollow_parent = false\nrefusals = false\n"),
              HasSubstr("\nspans to http://a: 0.25% of requests\n"));
}

TEST(Describe, ShowsCertificatesThatWeirOrders) {
  const auto text = describe(parse_settings(
      with("[acme]\naccept_terms = true\nfolder = \"/var/acme\"\nemail = \"a@b.example\"\n[[listener]]\n"
           "address = \"127.0.0.1:1\"\ntls = { certificates = [{ acme = [\"a.example\", \"b.example\"] }] "
           "}\n"),
      kFile));
  EXPECT_THAT(
      text, HasSubstr("\nacme: certificates from https://acme-v02.api.letsencrypt.org/directory by http-01, "
                      "kept in /var/acme, contact a@b.example, retries from 2min\n"));
  EXPECT_THAT(text,
              HasSubstr("listener 127.0.0.1:1 TLS from 1.2, a certificate by ACME for a.example b.example,"));
}

TEST(Describe, ShowsRoutesThatReportAClientsUsage) {
  const auto text = describe(parse_settings(with("[[route]]\nname = \"u\"\nrespond = \"usage\"\n"), kFile));
  EXPECT_THAT(text, HasSubstr("-> the client's own limits, uncharged\n    no rule applies\n"));
}

TEST(Describe, ShowsHttpVersionsOfListeners) {
  const net::Certificates made;
  const auto listener = [](const std::string& keys) {
    return describe(parse_settings(with("[[listener]]\naddress = \"127.0.0.1:81\"\n" + keys), kFile));
  };
  const auto tls =
      "tls = { certificates = [{ cert = \"" + made.cert() + "\", key = \"" + made.key() + "\" }] }\n";
  EXPECT_THAT(listener(""), Not(HasSubstr("HTTP/2")));
  EXPECT_THAT(listener("protocols = [\"http/1.1\", \"h2c\"]\n"),
              HasSubstr(", HTTP/2 by prior knowledge and HTTP/1.1\n"));
  EXPECT_THAT(listener("protocols = [\"h2c\"]\n"), HasSubstr(", HTTP/2 by prior knowledge only\n"));
  EXPECT_THAT(listener(tls), HasSubstr(", HTTP/2 and HTTP/1.1\n"));
  EXPECT_THAT(listener(tls + "protocols = [\"h2\"]\n"), HasSubstr(", HTTP/2 only\n"));
}

TEST(Describe, ShowsTheKeyOfARule) {
  const Folder folder;
  policy::CountryFile countries;
  countries.add("203.0.113.0", 24, "CH");
  folder.write("c.mmdb", countries.bytes());
  const auto text =
      describe(parse_settings(with_rule("key = [\"claim:sub|ip\"]\nmatch = { country = [\"CH\", \"LI\"], "
                                        "hours = \"22:00-06:00\", days = \"fri\", "
                                        "timezone = \"Europe/Zurich\", query = { q = \"a b\" } }\noverrides "
                                        "= [{ match = { path = \"/a\" }, limit = "
                                        "\"1/s\" }]\n"
                                        "[client]\ngeo = \"c.mmdb\"\njwt = { algorithm = \"HS256\", secret = "
                                        "\"0123456789abcdef0123456789abcdef\" }\n"),
                              folder.file(kFile)));
  EXPECT_THAT(text, HasSubstr("tokens HS256, of any issuer, for any audience, leeway 30s\n"));
  EXPECT_THAT(text, HasSubstr("places by Test-Country\n"));
  EXPECT_THAT(text, HasSubstr("per [claim:sub|ip]"));
  EXPECT_THAT(text,
              HasSubstr("where query q = a b, country CH LI, hours 22:00-06:00 on fri in Europe/Zurich\n"));
  EXPECT_THAT(text, HasSubstr("override path /a: token_bucket 1/s, burst 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("0123456789abcdef")));
}

TEST(Describe, ShowsHowClientsAreIdentified) {
  const Folder folder;
  folder.write("keys.toml", "[[key]]\nkey = \"a\"\n[[key]]\nkey = \"b\"\n");
  const auto of = [&](const std::string& client) {
    return describe(
        parse_settings(with_rule("key = [\"claim:sub|ip\"]\n[client]\n" + client), folder.file(kFile)));
  };
  const std::string jwt = R"(algorithm = "HS256", secret = "0123456789abcdef0123456789abcdef")";
  EXPECT_THAT(of("keys = \"keys.toml\"\nunknown_keys = \"reject\"\njwt = { " + jwt + " }\n"),
              HasSubstr("keys file with 2 keys, unknown keys are rejected\n"));
  EXPECT_THAT(
      of("jwt = { " + jwt +
         R"(, issuer = "https://a", audience = "b", leeway = "1m", require_exp = true })"
         "\n"),
      HasSubstr("tokens HS256, of issuer \"https://a\", for audience \"b\", leeway 1min, exp required\n"));
  const auto text =
      of("api_key = { bearer = true }\ndevice = { cookie = \"d\" }\nuser = { claim = \"sub\" }\n"
         "ipv6_prefix = 56\njwt = { " +
         jwt + " }\n");
  EXPECT_THAT(text, HasSubstr("api_key from bearer\nuser from claim sub\ndevice from cookie d\n"
                              "IPv6 clients by /56\n"));
}

TEST(Describe, ShowsTheCostOfARequest) {
  const auto of = [](const std::string& cost) {
    return describe(parse_settings(with_rule("cost = " + cost + "\n"), kFile));
  };
  EXPECT_THAT(of("5"), HasSubstr(", cost 5\n"));
  EXPECT_THAT(of("{ query = \"n\" }"), HasSubstr(", cost from query n, else 1\n"));
  EXPECT_THAT(of("{ header = \"X-Cost\", scale = 100, default = 3 }"),
              HasSubstr(", cost from header X-Cost x 100, else 3\n"));
}

TEST(Describe, ShowsHowManyBytesOfARequestBodyAreRead) {
  const auto text = describe(parse_settings(
      with_rule(
          "cost = { json = \"/amount\", scale = 100 }\n"
          "match = { path = \"/m\", body_contains = [\"Free\", \"wire transfer\"], max_body = 1000 }\n"),
      kFile));
  EXPECT_THAT(text, HasSubstr(", cost from json /amount x 100, else 1, reads bodies up to 64KiB\n"));
  EXPECT_THAT(text, HasSubstr("where path /m, body with \"free\" \"wire transfer\"\n"));
  EXPECT_THAT(
      describe(parse_settings(with_rule("match = { body_contains = \"a\", max_body = 1000 }\n"), kFile)),
      HasSubstr(", reads bodies up to 1000 bytes\n"));
  EXPECT_THAT(describe(parse_settings(kLeast, kFile)), Not(HasSubstr("bodies")));
}

TEST(Describe, ShowsSoftAndElasticLimits) {
  const auto of = [](const std::string& more) { return describe(parse_settings(with_rule(more), kFile)); };
  EXPECT_THAT(of("soft = \"20%\"\n"),
              HasSubstr("rule \"x\": token_bucket 10/s, burst 10, soft up to 12, per"));
  EXPECT_THAT(of("elastic = { limit = \"20/s\", while_load_below = 0.7 }\n"),
              HasSubstr("burst 10, elastic token_bucket 20/s, burst 20 while load is below 0.7, per"));
}

TEST(Describe, ShowsTheUpstreamThatALimitAdaptsTo) {
  const auto of = [](const std::string& more) { return describe(parse_settings(with_rule(more), kFile)); };
  EXPECT_THAT(of("adapt = { upstream = \"api\", latency_above = \"500ms\", errors_above = \"5%\" }\n"),
              HasSubstr(", down to 20% while upstream \"api\" takes over 500ms or fails over 5%\n"));
  EXPECT_THAT(of("adapt = { upstream = \"api\", errors_above = \"10%\", floor = \"50%\" }\n"),
              HasSubstr(", down to 50% while upstream \"api\" fails over 10%\n"));
}

TEST(Describe, ShowsPenalties) {
  const auto of = [](const std::string& more) { return describe(parse_settings(with_rule(more), kFile)); };
  EXPECT_THAT(of("penalty = { for = \"10min\" }\n"),
              HasSubstr(", penalty of 10min after 1 refusal, x 2 up to 1day, forgotten after 1day\n"));
  EXPECT_THAT(of("penalty = { after = 3, for = \"1h\", grows = 1, most = \"2h\", forget = \"7day\" }\n"),
              HasSubstr(", penalty of 1h after 3 refusals, x 1 up to 2h, forgotten after 7day\n"));
}

TEST(Describe, ShowsHowResponsesSettleACharge) {
  const auto of = [](const std::string& more) { return describe(parse_settings(with_rule(more), kFile)); };
  EXPECT_THAT(of("charge = { status = [\"401\", \"5xx\", \"300-303\"] }\n"),
              HasSubstr(", in memory, charged on 401, 5xx, 300-303\n"));
  EXPECT_THAT(of("charge = { grpc_status = \"OK\" }\n"), HasSubstr(", in memory, charged on OK\n"));
  EXPECT_THAT(of("charge = { status = \"401\", grpc_status = [\"UNAUTHENTICATED\", \"2\"] }\n"),
              HasSubstr(", in memory, charged on 401, UNKNOWN, UNAUTHENTICATED\n"));
  EXPECT_THAT(of("cost = { bytes = \"response\" }\n"),
              HasSubstr(", in memory, cost from bytes of the answer / 1024, reserve 1\n"));
  EXPECT_THAT(of("cost = { bytes = \"both\", per = 10 }\n"),
              HasSubstr(", cost from bytes of the request and the answer / 10, reserve Content-Length / 10, "
                        "else 1\n"));
  EXPECT_THAT(of("cost = { response_header = \"X-Tokens\", reserve = 7 }\n"),
              HasSubstr(", in memory, cost from header X-Tokens of the answer, reserve 7\n"));
  EXPECT_THAT(of("charge = { status = \"2xx\" }\n"
                 "cost = { response_json = \"/usage/total\", reserve = 5, scale = 100 }\n"),
              HasSubstr(", charged on 2xx, cost from json /usage/total of the answer x 100, reserve 5\n"));
  EXPECT_THAT(of("cost = { response_json = { \"/in|/a/in\" = 0.5, \"/out\" = 1 }, reserve = { json = \"/n\", "
                 "default = 2, most = 9 }, stream = { per_event = 3, cut = true } }\n"),
              HasSubstr(", cost from json 0.5 x /in|/a/in + /out of the answer, 3 an event, cut, reserve "
                        "json /n up to 9, else 2, "));
}

TEST(Describe, ShowsTheBandwidthOfARule) {
  const auto of = [](const std::string& more) {
    return describe(parse_settings(with("[[rule]]\nname = \"x\"\nbandwidth = \"1MiB/s\"\n" + more), kFile));
  };
  EXPECT_THAT(of("key = [\"ip\"]\n"),
              HasSubstr("\n    rule \"x\": bodies paced to 1MiB/s, per [ip], in memory\n"));
  EXPECT_THAT(
      of("key = []\nmatch = { path = \"/a\" }\n"),
      HasSubstr("\n    rule \"x\": bodies paced to 1MiB/s, shared by all, in memory\n      where path /a\n"));
}

TEST(Describe, ShowsUpstreamTimeoutsRetriesAndEjection) {
  EXPECT_THAT(
      describe(parse_settings(kLeast, kFile)),
      HasSubstr(
          "\n    connect 1s, all connects 5s; response 30s, idle 1min, tunnel 5min, 100-continue after 1s\n"
          "    ejected after 3 failures for 1s to 30s, slow start 5s\n"
          "    retries on 2 servers at most, 20% of requests, first after 25ms at most, if broken late\n"));
  const auto text =
      describe(parse_settings(with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\", \"https://b\"]\n"
                                   "timeouts = { connect = \"7s\", response = \"9s\", expect_continue = "
                                   "\"9s\", total = \"20s\" }\nretry = { attempts = 1 }\n"
                                   "health = { path = \"/\", status = [\"200-299\", \"404\"] }\n"),
                              kFile));
  EXPECT_THAT(text, HasSubstr("upstream \"b\": a:1 https://b:443, least_in_flight, certificates verified by "
                              "the system's authorities"));
  EXPECT_THAT(text,
              HasSubstr("connect 7s, all connects 7s; response 9s, idle 1min, tunnel 5min, total 20s\n"));
  EXPECT_THAT(
      text,
      HasSubstr("    no retries\n"
                "    checked every 2s, timeout 1s: down after 3 failures, up after 2 of 200-299, 404\n"));
}

TEST(Describe, ShowsHowOftenNamesOfServersAreLookedUp) {
  const auto of = [](const char* more) {
    return describe(parse_settings(with(std::string("[[upstream]]\nname = \"b\"\n") + more), kFile));
  };
  EXPECT_THAT(describe(parse_settings(kLeast, kFile)), Not(HasSubstr("looked up")))
      << "an address is not resolved";
  EXPECT_THAT(of("servers = [\"a:1\"]\n"),
              HasSubstr("\n    names looked up when their TTL ends, after 1s to 30s\n"));
  EXPECT_THAT(of("servers = [\"a:1\"]\nresolve = \"200ms\"\n"),
              HasSubstr("\n    names looked up when their TTL ends, after 200ms to 200ms\n"));
  EXPECT_THAT(of("servers = [\"[::1]:1\", \"a:1\"]\nresolve = \"0s\"\n"),
              HasSubstr("\n    names looked up only at start\n"));
  EXPECT_THAT(of("servers = [\"[::1]:1\", \"unix:/a\"]\n"), Not(HasSubstr("looked up")));
}

TEST(Describe, ShowsWebSocketMessageLimitsAndAllowedUpgrades) {
  const auto of = [](const std::string& more) { return describe(parse_settings(with_rule(more), kFile)); };
  EXPECT_THAT(of("messages = \"20/s\"\n"), HasSubstr(", in memory, messages 20/s, burst 20, else delayed\n"));
  EXPECT_THAT(of("messages = \"2/s\"\nmessages_burst = 9\nmessages_over = \"close\"\n"),
              HasSubstr(", messages 2/s, burst 9, else closed\n"));
  EXPECT_THAT(of("messages = \"2/s\"\ndirection = \"server\"\n"),
              HasSubstr(", messages 2/s, burst 2, else delayed, of servers\n"));
  EXPECT_THAT(of("messages = \"2/s\"\ndirection = \"both\"\n"),
              HasSubstr(", messages 2/s, burst 2, else delayed, of both sides\n"));
  EXPECT_THAT(of("[[route]]\nname = \"a\"\nupstream = \"api\"\nupgrade = []\n"),
              HasSubstr("route \"a\": everything -> upstream \"api\", without upgrades\n"));
  EXPECT_THAT(of("[[route]]\nname = \"a\"\nupstream = \"api\"\nupgrade = [\"websocket\", \"chat\"]\n"),
              HasSubstr("upstream \"api\", may upgrade to chat\n"));
}

TEST(Describe, ShowsTrustedProxiesSizeBoundsAndTimeouts) {
  EXPECT_THAT(describe(parse_settings(kLeast, kFile)),
              HasSubstr("listener 127.0.0.1:8080 plain\n"
                        "bounds: heads up to 16KiB, 16384 connections\n"
                        "    head 10s, body 30s, write 30s, idle 75s; at least 500 bytes a second over 20s\n"
                        "upstream"));
  const auto text = describe(
      parse_settings("[server]\nmax_head = \"8KiB\"\nmax_body = \"3MiB\"\nmax_connections_per_ip = 20\n"
                     "max_in_flight = 300\nmin_rate = 0\n[client]\ntrusted_proxies = [\"10.0.0.0/8\", "
                     "\"unix:\"]\naddress_from = \"forwarded\"\n[[listener]]\naddress = "
                     "\"127.0.0.1:81\"\nproxy_protocol = true\n" +
                         kLeast,
                     kFile));
  EXPECT_THAT(text, HasSubstr("listener 127.0.0.1:81 plain, PROXY protocol\n"));
  EXPECT_THAT(text, HasSubstr("bounds: heads up to 8KiB, bodies up to 3MiB, 16384 connections, 20 for each "
                              "address, 300 requests in flight\n"));
  EXPECT_THAT(text, HasSubstr("idle 75s\ntrusted proxies 10.0.0.0/8 unix:, client address from Forwarded\n"));
}

TEST(Describe, ShowsUpstreamsThatAreDnsServices) {
  const auto of = [](const std::string& server) {
    return describe(parse_settings(with("[[upstream]]\nname = \"b\"\nservers = [" + server + "]\n"), kFile));
  };
  EXPECT_THAT(
      of("\"srv:_http._tcp.a.test\""),
      HasSubstr("upstream \"b\": srv:_http._tcp.a.test\n    names looked up when their TTL ends, after"));
  EXPECT_THAT(of("\"srv:80\""), HasSubstr("upstream \"b\": srv:80\n")) << "port 80 of the host \"srv\"";
  EXPECT_THAT(of("\"https+srv:_http._tcp.a.test.\""),
              HasSubstr("upstream \"b\": https+srv:_http._tcp.a.test. (as a.test), certificates verified"));
  EXPECT_THAT(
      of("{ address = \"https+srv:_https._tcp.a.test\", server_name = \"c.test\", max_in_flight = 3 }"),
      HasSubstr("https+srv:_https._tcp.a.test (as c.test) (at most 3 in flight), certificates verified"));
}

TEST(Describe, ShowsTheNameServers) {
  EXPECT_THAT(
      describe(parse_settings(with("[server]\nnameservers = [\"10.0.0.53\", \"[::1]:5353\"]\n"), kFile)),
      HasSubstr("\nnames of servers: asked of 10.0.0.53:53 [::1]:5353\n"));
}

TEST(Describe, ShowsTheDrainDelay) {
  EXPECT_THAT(
      describe(parse_settings(with("[server]\ndrain_delay = \"5s\"\ndrain = \"20s\"\n"), kFile)),
      HasSubstr(" over 20s\nstop: not ready but serving for 5s, then a drain of up to 20s\nupstream"));
}

TEST(Describe, ShowsTheSizeBoundsOfRoutes) {
  EXPECT_THAT(
      describe(parse_settings(with("[[route]]\nname = \"a\"\nupstream = \"api\"\nmax_head = "
                                   "\"4KiB\"\nmax_body = 1000\nhonor_upstream_retry_after = true\n"),
                              kFile)),
      HasSubstr("upstream \"api\", heads up to 4KiB, bodies up to 1000 bytes, honors Retry-After of 429\n"));
}

TEST(Describe, ShowsAlertsWithoutSecrets) {
  const auto text = describe(parse_settings(
      with("[[alert]]\nrule = \"all\"\nrefused_above = \"100/min\"\nfor = \"30s\"\n"
           "webhook = \"https://hooks.example.com/SECRET\"\nauthorization = \"Bearer HUSH\"\n"
           "[[alert]]\nupstream = \"api\"\nname = \"down\"\nfailures_above = \"5/s\"\nrepeat = \"0s\"\n"
           "webhook = \"http://127.0.0.1:9093/\"\n"),
      kFile));
  EXPECT_THAT(text,
              HasSubstr("alert \"all\": refusals of rule \"all\" above 100/min for 30s -> "
                        "https://hooks.example.com:443, repeated every 4h, at most 6/min, 5 attempts of "
                        "5s\n"));
  EXPECT_THAT(text, HasSubstr("alert \"down\": failures of upstream \"api\" above 5/s -> "
                              "http://127.0.0.1:9093, at most 6/min"));
  EXPECT_THAT(text, Not(HasSubstr("SECRET")));
  EXPECT_THAT(text, Not(HasSubstr("HUSH")));
}

TEST(Describe, ShowsAlertsOnEachClient) {
  const auto text = describe(parse_settings(
      with("[[alert]]\nrule = \"x\"\nkey_refused_above = \"100/min\"\nwebhook = \"http://127.0.0.1:9093/\"\n"
           "max_clients = 20\n[[rule]]\nname = \"x\"\nkey = [\"ip\"]\nlimit = \"5/min\"\n"),
      kFile));
  EXPECT_THAT(text,
              HasSubstr("alert \"x\": refusals of each client of rule \"x\" above 100/min, for up to 20 "
                        "clients at once -> http://127.0.0.1:9093"));
}

TEST(Describe, ShowsPrioritiesThatDifferFromTheDefault) {
  const auto text =
      describe(parse_settings(with_rule("algorithm = \"leaky_bucket\"\nqueue_per_client = 3\n"
                                        "tiers = { pro = { limit = \"20/s\", priority = 1 } }\n"
                                        "[[route]]\nname = \"batch\"\nupstream = \"api\"\npriority = 9\n"),
                              kFile));
  EXPECT_THAT(text, HasSubstr("tier \"pro\": priority 1\n"));
  EXPECT_THAT(text, HasSubstr("route \"*\": everything -> upstream \"api\"\n"));
  EXPECT_THAT(text, HasSubstr("route \"batch\": everything -> upstream \"api\", priority 9\n"));
  EXPECT_THAT(text, HasSubstr(", at most 3 for each client\n"));
}

TEST(Describe, ShowsTheLeaseTimeOfPermitsInRedis) {
  const std::string state =
      "store = \"redis\"\n[state]\nredis = { url = \"redis://a\", lease_time = \"3s\" }\n";
  const auto of = [&](const std::string& rule) {
    return describe(parse_settings(std::string(kLeast) + "[[rule]]\nname = \"y\"\n" + rule + state, kFile));
  };
  EXPECT_THAT(of("limit = 5\nalgorithm = \"concurrency\"\n"),
              HasSubstr("redis a:6379, permits leased for 3s\n"));
  EXPECT_THAT(of("limit = \"5/s\"\n"), HasSubstr("redis a:6379\n"));
}

TEST(Describe, ShowsHowManyUnitsALeasePrefetches) {
  const std::string state = "store = \"redis\"\n[state]\nredis = { url = \"redis://a\" }\n";
  const auto of = [&](const std::string& rule) {
    return describe(parse_settings(std::string(kLeast) + "[[rule]]\nname = \"y\"\n" + rule + state, kFile));
  };
  EXPECT_THAT(of("limit = \"200/s\"\nlease = \"10%\"\n"), HasSubstr(", leases up to 20"));
  EXPECT_THAT(of("limit = \"200/s\"\nlease = \"10%\"\nsoft = \"50%\"\n"), HasSubstr(", leases up to 30"));
  EXPECT_THAT(of("limit = \"200/s\"\nlease = 7\n"), HasSubstr(", leases up to 7"));
  EXPECT_THAT(of("limit = \"200/s\"\n"), Not(HasSubstr("leases")));
}

}  // namespace
}  // namespace weir::config::test
