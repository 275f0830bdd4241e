// Tests the exact messages about mistakes in upstreams and routes.
#include "unit/config/wrong_configuration.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

const WrongConfiguration kWrongUpstreams[] = {
    {"UpstreamWithoutName",
     with("[[upstream]]\nservers = [\"a:1\"]\n"),
     {"weir.toml:11: upstream[#2].name: missing; expected a string: name that routes use"}},
    {"UpstreamTwice",
     with("[[upstream]]\nname = \"api\"\nservers = [\"a:1\"]\n"),
     {"weir.toml:12: upstream[api].name: found \"api\" a second time; expected a unique name"}},
    {"UpstreamWithoutServers",
     with("[[upstream]]\nname = \"b\"\n"),
     {"weir.toml:11: upstream[b].servers: missing; expected addresses of the servers, or tables, or one "
      "service srv:NAME"}},
    {"UpstreamServersEmpty",
     with("[[upstream]]\nname = \"b\"\nservers = []\n"),
     {"weir.toml:13: upstream[b].servers: found none; expected at least one address such as "
      "\"127.0.0.1:9000\""}},
    {"UpstreamServersAString",
     with("[[upstream]]\nname = \"b\"\nservers = \"a:1\"\n"),
     {"weir.toml:13: upstream[b].servers: found a string; expected a list of addresses such as "
      "[\"127.0.0.1:9000\"]"}},
    {"UpstreamServerOfANumber",
     with("[[upstream]]\nname = \"b\"\nservers = [9000]\n"),
     {"weir.toml:13: upstream[b].servers: found a list with a whole number in it; expected addresses such as "
      "\"127.0.0.1:9000\""}},
    {"UpstreamServerTwice",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\", \"b:2\", { address = \"a:1\", weight = 2 }]\n"),
     {"weir.toml:13: upstream[b].servers: found \"a:1\" a second time; expected each server once: give it a "
      "weight for more requests"}},
    {"UpstreamServerWithoutPort",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a\"]\n"),
     {"weir.toml:13: upstream[b].servers: \"a\" is not an address: the port is missing, as in a:8080, or "
      "https://a"}},
    {"UpstreamServerPortZero",
     with("[[upstream]]\nname = \"b\"\nservers = [{ address = \"a:0\" }]\n"),
     {"weir.toml:13: upstream[b].servers[#1].address: found \"a:0\"; expected a port from 1 to 65535 to "
      "connect to"}},
    {"UpstreamServerWeight",
     with("[[upstream]]\nname = \"b\"\nservers = [{ address = \"a:1\", weight = 0 }]\n"),
     {"weir.toml:13: upstream[b].servers[#1].weight: found 0; expected a whole number from 1 to 100"}},
    {"UpstreamHostWithAPlaceholder",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nhost = \"{host}:80\"\n"),
     {"weir.toml:14: upstream[b].host: found \"{host}:80\"; expected a host such as \"api.internal\" or "
      "\"api.internal:8080\", or \"{host}\" for the client's"}},
    {"UpstreamHostOfALine",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nhost = \"a\\r\\nX-Role: root\"\n"),
     {"weir.toml:14: upstream[b].host: found \"a\\x0d\\x0aX-Role: root\"; expected a host such as "
      "\"api.internal\" or \"api.internal:8080\", or \"{host}\" for the client's"}},
    {"UpstreamHostEmpty",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nhost = \"\"\n"),
     {"weir.toml:14: upstream[b].host: found \"\"; expected a host such as \"api.internal\" or "
      "\"api.internal:8080\", or \"{host}\" for the client's"}},
    {"UpstreamHashKeyEmpty",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nbalance = \"hash\"\nhash_key = []\n"),
     {"weir.toml:15: upstream[b].hash_key: found none; expected at least one attribute such as "
      "\"api_key|ip\""}},
    {"UpstreamHashKeyInTheBody",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nbalance = \"hash\"\nhash_key = [\"json:/a\"]\n"),
     {"weir.toml:15: upstream[b].hash_key: found json: or form:, but weir chooses servers without the body; "
      "expected another attribute"}},
    {"UpstreamHashKeyUnknown",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nbalance = \"hash\"\nhash_key = [\"api_kee\"]\n"),
     {"weir.toml:15: upstream[b].hash_key: \"api_kee\" is not an attribute; the nearest is "
      "\"api_key\""}},
    {"UpstreamHashKeyWithAnotherBalance",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nhash_key = [\"ip\"]\n"),
     {"weir.toml:14: upstream[b].hash_key: found without balance = \"hash\"; add it, or remove this key"}},
    {"UpstreamEjection",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\neject = { least = \"2s\", most = \"1s\" }\n"),
     {"weir.toml:14: upstream[b].eject.most: found less than least; expected a duration of at least least"}},
    {"UpstreamBalance",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nbalance = \"fair\"\n"),
     {"weir.toml:14: upstream[b].balance: found \"fair\"; expected one of \"round_robin\", "
      "\"least_in_flight\", \"random_two\", \"hash\""}},
    {"UpstreamHealthWithoutPath",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nhealth = { interval = \"1s\" }\n"),
     {"weir.toml:14: upstream[b].health: found neither path nor grpc; add path = \"/healthz\", or grpc = "
      "\"\" "
      "for a gRPC server"}},
    {"UpstreamHealthByPathAndGrpc",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nprotocol = \"h2c\"\nhealth = { path = \"/\", "
          "grpc = \"\" }\n"),
     {"weir.toml:15: upstream[b].health.grpc: found beside path; remove one of the two"}},
    {"UpstreamHealthByGrpcOverHttp1",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nhealth = { grpc = \"\" }\n"),
     {"weir.toml:14: upstream[b].health.grpc: found with protocol = \"http/1.1\"; write protocol = \"h2\" or "
      "\"h2c\" in the upstream"}},
    {"UpstreamH2cWithTls",
     with("[[upstream]]\nname = \"b\"\nservers = [\"https://a:1\"]\nprotocol = \"h2c\"\n"),
     {"weir.toml:14: upstream[b].protocol: found \"h2c\" with a server that uses TLS; write \"h2\", which is "
      "HTTP/2 over TLS"}},
    {"UpstreamH2WithoutTls",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nprotocol = \"h2\"\n"),
     {"weir.toml:14: upstream[b].protocol: found \"h2\" with a server that uses no TLS; write \"h2c\", which "
      "is HTTP/2 without TLS, or an address such as \"https://10.0.0.1:8443\""}},
    {"UpstreamH2cWithProxyProtocol",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nprotocol = \"h2c\"\nproxy_protocol = true\n"),
     {"weir.toml:14: upstream[b].protocol: found \"h2c\" with proxy_protocol; a connection of HTTP/2 serves "
      "many clients, so write \"http/1.1\" or remove proxy_protocol"}},
    {"UpstreamHealthPath",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nhealth = { path = \"healthz\", status = \"fine\" "
          "}\n"),
     {"weir.toml:14: upstream[b].health.status: found \"fine\"; expected a status such as \"401\", a class "
      "such "
      "as \"5xx\", or a range such as \"500-504\", from 100 to 599",
      "weir.toml:14: upstream[b].health.path: found \"healthz\"; expected a path such as \"/healthz\""}},
    {"UpstreamRetryBudget",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nretry = { budget = \"1/s\" }\n"),
     {"weir.toml:14: upstream[b].retry.budget: found \"1/s\"; expected a share from \"0%\" to \"100%\""}},
    {"UpstreamServerLimit",
     with("[[upstream]]\nname = \"b\"\nservers = [{ address = \"a:1\", limit = \"fast\" }]\n"),
     {"weir.toml:13: upstream[b].servers[#1].limit: \"fast\" is not a rate (no '/'); write COUNT/PERIOD with "
      "a period in s, min, h or day, such as \"10/s\" or \"20/10s\""}},
    {"UpstreamRetryOn",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nretry = { on = [\"late\", \"never\"] }\n"),
     {"weir.toml:14: upstream[b].retry.on: found \"never\"; expected \"broken\", \"late\", or a status such "
      "as "
      "\"503\" or \"5xx\""}},
    {"RetryAfterOfARouteWithoutUpstream",
     with("[[route]]\nhonor_upstream_retry_after = true\nrespond = { status = 204 }\n"),
     {"weir.toml:12: route[#2].honor_upstream_retry_after: found beside respond; expected upstream, or "
      "remove this key"}},
    {"HealthyAtAnInterimStatus",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nhealth = { path = \"/\", status = \"100\" }\n"),
     {"weir.toml:14: upstream[b].health.status: found \"100\"; expected statuses from 200 on, because 1xx is "
      "not a final response"}},
    {"ConnectTotalBelowConnect",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\ntimeouts = { connect = \"2s\", connect_total = "
          "\"1s\" }\n"),
     {"weir.toml:14: upstream[b].timeouts.connect_total: found less than connect; expected a duration of at "
      "least connect"}},
    {"ResolveTooOften",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nresolve = \"99ms\"\n"),
     {"weir.toml:14: upstream[b].resolve: found less than 100ms; expected that or more, or \"0s\" to look "
      "names up only at start"}},
    {"ResolveLeastTooShort",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nresolve_least = \"99ms\"\n"),
     {"weir.toml:14: upstream[b].resolve_least: found less than 100ms; expected that or more"}},
    {"ResolveLeastAboveResolve",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\nresolve_least = \"31s\"\n"),
     {"weir.toml:14: upstream[b].resolve_least: found more than resolve; expected a duration of at most "
      "resolve"}},
    {"ServiceBesideAnotherServer",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\", \"srv:_http._tcp.a\"]\n"),
     {"weir.toml:13: upstream[b].servers: found \"srv:_http._tcp.a\" beside other servers; expected a "
      "service "
      "alone, because its SRV records tell all servers, weights and priorities"}},
    {"ServiceWithAPort",
     with("[[upstream]]\nname = \"b\"\nservers = [\"https+srv:_http._tcp.a:80\"]\n"),
     {"weir.toml:13: upstream[b].servers: \"https+srv:_http._tcp.a:80\" is not a service: write "
      "https+srv:NAME, such as \"https+srv:_http._tcp.api.internal\", without a port, which the SRV records "
      "tell"}},
    {"ServiceWithAWeight",
     with("[[upstream]]\nname = \"b\"\nservers = [{ address = \"srv:_http._tcp.a\", weight = 2 }]\n"),
     {"weir.toml:13: upstream[b].servers[#1].weight: found with a service, whose SRV records tell the "
      "weights; "
      "remove it"}},
    {"ServerByAUrlWithAPath",
     with("[[upstream]]\nname = \"b\"\nservers = [\"https://a/x\"]\n"),
     {"weir.toml:13: upstream[b].servers: \"https://a/x\" is not the address of a server: write https://host "
      "or "
      "https://host:port, without a path"}},
    {"TlsWithoutATlsServer",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\ntls = { verify = false }\n"),
     {"weir.toml:14: upstream[b].tls: found without a server that uses TLS; expected an address such as "
      "\"https://10.0.0.1:8443\""}},
    {"ServerNameWithoutTls",
     with("[[upstream]]\nname = \"b\"\nservers = [{ address = \"a:1\", server_name = \"b\" }]\n"),
     {"weir.toml:13: upstream[b].servers[#1].server_name: found with an address that does not begin with "
      "https://; remove it, or write https://"}},
    {"UpgradeToH2c",
     with("[[route]]\nupstream = \"api\"\nupgrade = [\"websocket\", \"h2c\"]\n"),
     {"weir.toml:13: route[#2].upgrade: found \"h2c\"; expected protocols such as \"websocket\", or [] for "
      "none; not HTTP, h2c or TLS, because their requests would bypass weir"}},
    {"UpstreamTimeout",
     with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\ntimeouts = { connect = \"0s\", respons = \"1s\" "
          "}\n"),
     {"weir.toml:14: upstream[b].timeouts.respons: unknown key; did you mean \"response\"?",
      "weir.toml:14: upstream[b].timeouts.connect: found \"0s\"; expected a duration above zero"}},
    {"RouteToAMisspeltUpstream",
     with("[[route]]\nupstream = \"apo\"\n"),
     {"weir.toml:12: route[#2].upstream: there is no upstream \"apo\"; did you mean \"api\"?"}},
    {"RouteToAnUnknownUpstream",
     with("[[route]]\nupstream = \"elsewhere\"\n"),
     {"weir.toml:12: route[#2].upstream: there is no upstream \"elsewhere\"; expected \"api\""}},
    {"RouteWithoutUpstreamOrRespond",
     with("[[route]]\nmatch = { path = \"/a\" }\n"),
     {"weir.toml:11: route[#2].upstream: missing; expected the name of an upstream, or respond = { status = "
      "…, body = \"…\" }"}},
    {"RouteWithUpstreamAndRespond",
     with("[[route]]\nupstream = \"api\"\nrespond = {}\n"),
     {"weir.toml:13: route[#2].respond: found beside upstream; expected one of them"}},
    {"RouteNameTwice",
     with("[[route]]\nname = \"a\"\nupstream = \"api\"\n[[route]]\nname = \"a\"\nupstream = \"api\"\n"),
     {"weir.toml:15: route[a].name: found \"a\" a second time; expected a unique name"}},
    {"RoutePriority",
     with("[[route]]\nupstream = \"api\"\npriority = 10\n"),
     {"weir.toml:13: route[#2].priority: found 10; expected a whole number from 0 to 9"}},
    {"RespondStatus",
     with("[[route]]\nrespond = { status = 99 }\n"),
     {"weir.toml:12: route[#2].respond.status: found 99; expected a whole number from 200 to 599"}},
    {"RespondAnotherWord",
     with("[[route]]\nrespond = \"use\"\n[[route]]\nrespond = 204\n"),
     {"weir.toml:12: route[#2].respond: found \"use\"; expected { status = 200, body = \"…\" }, or \"usage\" "
      "to "
      "show each client its own limits",
      "weir.toml:14: route[#3].respond: found a whole number; expected { status = 200, body = \"…\" }, or "
      "\"usage\" to show each client its own limits"}},
    {"RespondContentType",
     with("[[route]]\nrespond = { content_type = \"a\\r\\nb\" }\n"),
     {"weir.toml:12: route[#2].respond.content_type: found \"a\\x0d\\x0ab\"; expected one such as "
      "\"application/json\""}},
    {"RespondWithABodyForAStatusWithoutOne",
     with("[[route]]\nrespond = { status = 204, body = \"a\" }\n[[route]]\nrespond = { status = 304, body = "
          "\"a\" }\n"
          "[[route]]\nrespond = { status = 205, body = \"\" }\n"),
     {"weir.toml:12: route[#2].respond.body: found beside status = 204, whose responses have no body; "
      "expected no body, or another status",
      "weir.toml:14: route[#3].respond.body: found beside status = 304, whose responses have no body; "
      "expected no body, or another status"}},
    {"UpstreamServerThatIsNoIpv4Address",
     with("[[upstream]]\nname = \"b\"\nservers = [\"256.1.1.1:80\", \"https://1.2.3\"]\n"),
     {"weir.toml:13: upstream[b].servers: \"256.1.1.1:80\" is not an address: a host that ends in a number "
      "must be an IPv4 address, but \"256.1.1.1\" is not; write four numbers from 0 to 255, or a name",
      "weir.toml:13: upstream[b].servers: \"https://1.2.3\" is not the address of a server: write "
      "https://host or https://host:port, without a path; a host that ends in a number is an IPv4 address of "
      "four numbers from 0 to 255"}},
    {"RouteByBody",
     with("[[route]]\nupstream = \"api\"\nmatch = { body_contains = \"a\" }\n"),
     {"weir.toml:13: route[#2].match.body_contains: found a condition on the body, but weir chooses routes "
      "before "
      "it reads bodies; expected it in a [[rule]]"}},
    {"RouteByJson",
     with("[[route]]\nupstream = \"api\"\nmatch = { json = { \"/a\" = \"b\" } }\n"),
     {"weir.toml:13: route[#2].match.json: found a condition on the body, but weir chooses routes before it "
      "reads "
      "bodies; expected it in a [[rule]]"}},
    {"RouteByBodyInNot",
     with("[[route]]\nupstream = \"api\"\nmatch = { not = { body_contains = \"a\" } }\n"),
     {"weir.toml:13: route[#2].match.not: found a condition on the body, but weir chooses routes before it "
      "reads "
      "bodies; expected it in a [[rule]]"}},
};

class UpstreamMistakes : public ::testing::TestWithParam<WrongConfiguration> {};

TEST_P(UpstreamMistakes, ErrorNamesTheLineTheKeyAndTheExpectedValue) {
  EXPECT_THAT(mistakes_in(GetParam().text), ::testing::ElementsAreArray(GetParam().mistakes));
}

INSTANTIATE_TEST_SUITE_P(InvalidConfigurations, UpstreamMistakes, ::testing::ValuesIn(kWrongUpstreams),
                         [](const auto& wrong) { return wrong.param.name; });

}  // namespace
}  // namespace weir::config::test
