// The schema of [[upstream]].
#include "config/schema/schema_keys.hpp"

#include "weir/upstream/upstream_settings.hpp"

namespace weir::config {

namespace {

constexpr Choice kBalances[] = {{"round_robin"}, {"least_in_flight"}, {"random_two"}, {"hash"}};
constexpr Choice kProtocols[] = {{"http/1.1"}, {"h2"}, {"h2c"}, {"auto"}};
constexpr KeySpec kServerShapeKeys[] = {{.kind = Kind::Text, .pattern = pattern::kServerAddress},
                                        {.kind = Kind::Subtable, .inner = &schema::kServerOfUpstream}};
constexpr TableSpec kServerShapes{kServerShapeKeys};
constexpr KeySpec kServersShapeKeys[] = {{.kind = Kind::Each, .inner = &kServerShapes}};
constexpr TableSpec kServersShapes{kServersShapeKeys};
constexpr KeySpec kUpstreamKeys[] = {
    like(pattern::kName, required("name", Kind::Text, "name that routes use")),
    needed(
        mixed("servers", kServersShapes, "", "addresses of the servers, or tables, or one service srv:NAME")),
    choice("balance", kBalances, "least_in_flight", "how weir chooses a server"),
    like(pattern::kKeyPart,
         key("hash_key", Kind::Texts, "",
             "balance = \"hash\": requests of one such key go to one server; absent: api_key|ip")),
    key("host", Kind::Text, "{host}",
        "Host of the requests to servers, and of probes: a host, perhaps with a port; {host}: the client's"),
    choice(
        "protocol", kProtocols, "http/1.1",
        "protocol to the servers: h2 needs TLS, h2c is HTTP/2 without TLS, auto is what the server chooses "
        "(ALPN)"),
    whole("max_streams", 1, 10'000, "100",
          "most requests that share one HTTP/2 connection to a server; the server may allow fewer"),
    key("proxy_protocol", Kind::Bool, "false",
        "each connection to a server begins with the PROXY protocol, version 2, ahead of TLS, and serves one "
        "request"),
    table("timeouts", schema::kTimeouts, "deadlines for servers"),
    whole("queue", 0, 65'536, "256",
          "most requests, of all workers, that wait for a server with room (max_in_flight, limit); further "
          "ones get 503"),
    key("max_wait", Kind::Duration, "1s", "longest time that a request waits for a server with room"),
    whole("max_idle", 0, 65'536, "16384", "unused connections that each worker keeps to each server"),
    table("eject", schema::kEject, "when weir ejects a server that fails"),
    key("resolve", Kind::Duration, "30s",
        "longest time between two look-ups of a server's name, a tenth more or less; sooner if its TTL ends; "
        "0s: only at start"),
    key("resolve_least", Kind::Duration, "1s",
        "shortest time between two look-ups of a server's name, whatever its TTL"),
    key("slow_start", Kind::Duration, "5s", "time over which a server that is back gets its full share"),
    table("health", schema::kHealth, "health probes; absent: none"),
    table("retry", schema::kRetry, "which requests weir sends again"),
    table("tls", schema::kUpstreamTls, "TLS to servers whose addresses begin with https://"),
};
constexpr KeySpec kUpstreamTlsKeys[] = {
    key("ca", Kind::Text, "",
        "PEM file: the authorities of servers' certificates; absent: the system's authorities"),
    key("server_name", Kind::Text, "", "name in the servers' certificates; absent: the host of each address"),
    key("verify", Kind::Bool, "true", "false: weir accepts any certificate, so anybody may be the server"),
    key("cert", Kind::Text, "", "PEM file: the certificate that weir shows, then its chain; absent: none"),
    key("key", Kind::Text, "", "PEM file: its private key"),
};
constexpr KeySpec kServerOfUpstreamKeys[] = {
    like(pattern::kServerAddress, required("address", Kind::Text,
                                           "host:port, [v6]:port or unix:/path; https://host[:port] for TLS; "
                                           "srv:NAME or https+srv:NAME for the "
                                           "servers that SRV records name")),
    key("server_name", Kind::Text, "",
        "name in its certificate, for https://; absent: as in tls, or the host of the address"),
    whole("weight", 1, upstream::kMaxWeight, "1", "its share of requests, relative to the other servers"),
    whole("max_in_flight", 0, 10'000'000, "0",
          "most requests at the server, of all workers together; further ones go to other servers, wait, or "
          "get 503; 0: no limit"),
    key("limit", Kind::Rate, "",
        "highest rate of requests to the server, of all workers together; further ones go to other servers, "
        "wait, or get 503"),
};
constexpr KeySpec kEjectKeys[] = {
    whole("failures", 1, 1'000, "3",
          "failed requests in a row after which weir ejects the server; one failed connect is enough"),
    key("least", Kind::Duration, "1s", "time of the first ejection; each further one is twice as long"),
    key("most", Kind::Duration, "30s", "longest time of an ejection"),
};
constexpr KeySpec kHealthKeys[] = {
    like(pattern::kRooted,
         key("path", Kind::Text, "", "path of the probe, a GET request; either this or grpc")),
    key("grpc", Kind::Text, "",
        "service to ask about by the gRPC health checking protocol; \"\": the whole server; needs protocol "
        "h2, h2c or auto"),
    key("interval", Kind::Duration, "2s", "time between two probes, a tenth more or less"),
    key("timeout", Kind::Duration, "1s", "longest time until the head of the answer"),
    whole("unhealthy_after", 1, 1'000, "3", "failed probes in a row after which the server is down"),
    whole("healthy_after", 1, 1'000, "2", "good answers in a row after which the server is back"),
    like(pattern::kStatuses, key("status", Kind::OneOrMore, "200-399", "statuses of a good answer")),
};
constexpr KeySpec kRetryKeys[] = {
    whole("attempts", 1, upstream::kMaxServers, "2",
          "most servers that get one request; a failed connect does not count"),
    like(pattern::kBudget,
         key("budget", Kind::Text, "20%",
             "share of all requests that weir may send again, and ten at first; \"0%\": none")),
    key("backoff", Kind::Duration, "25ms",
        "longest wait before the first repetition; twice as long before each further one"),
    like(pattern::kRetryOn, key("on", Kind::Texts, "broken late",
                                "failures that are repeated: broken (no answer, or not HTTP), late (beyond "
                                "timeouts.response), or a status such as 503")),
};
constexpr KeySpec kTimeoutsKeys[] = {
    key("connect", Kind::Duration, "1s", "time to connect, TLS included"),
    key("connect_total", Kind::Duration, "",
        "time to connect for one request, at all servers together; absent: the longer of 5s and connect"),
    key("response", Kind::Duration, "30s",
        "time from the sent request to the head of the answer, and between two reads of the answer"),
    key("expect_continue", Kind::Duration, "",
        "time until weir answers 100 Continue for a server that does not; never if it is not below response "
        "and total; absent: 1s, or half of response or total if that is shorter"),
    key("idle", Kind::Duration, "60s", "how long weir keeps an unused connection"),
    key("abandoned", Kind::Duration, "30s",
        "how long weir reads on after the client left, if a rule's charge or permit depends on the answer; "
        "0s: not at all"),
    key("total", Kind::Duration, "",
        "time from the first attempt to the head of the last attempt's answer; absent: no deadline of its "
        "own"),
    key("tunnel", Kind::Duration, "5min", "longest silence of an upgraded connection such as a WebSocket"),
};

}  // namespace

namespace schema {
constinit const TableSpec kUpstream{kUpstreamKeys}, kServerOfUpstream{kServerOfUpstreamKeys},
    kEject{kEjectKeys}, kHealth{kHealthKeys}, kRetry{kRetryKeys}, kTimeouts{kTimeoutsKeys},
    kUpstreamTls{kUpstreamTlsKeys};
}  // namespace schema

}  // namespace weir::config
