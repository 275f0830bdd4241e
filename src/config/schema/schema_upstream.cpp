// The schema of [[upstream]].
#include "config/schema/schema_keys.hpp"

#include "weir/upstream/upstream_settings.hpp"

namespace weir::app {

namespace {

constexpr Choice kBalances[] = {{"round_robin"}, {"least_in_flight"}, {"random_two"}, {"hash"}};
constexpr KeySpec kServerShapeKeys[] = {{.kind = Kind::Text, .pattern = pattern::kServerAddress},
                                        {.kind = Kind::Subtable, .inner = &schema::kServerOfUpstream}};
constexpr TableSpec kServerShapes{kServerShapeKeys};
constexpr KeySpec kServersShapeKeys[] = {{.kind = Kind::Each, .inner = &kServerShapes}};
constexpr TableSpec kServersShapes{kServersShapeKeys};
constexpr KeySpec kUpstreamKeys[] = {
    like(pattern::kName, required("name", Kind::Text, "what routes call it")),
    needed(mixed("servers", kServersShapes, "", "addresses, or tables with one")),
    choice("balance", kBalances, "least_in_flight", "which server is next"),
    like(pattern::kKeyPart, key("hash_key", Kind::Texts, "",
                                "of balance = \"hash\": what stays on its server; absent: api_key|ip")),
    key("proxy_protocol", Kind::Bool, "false",
        "each connection begins with the PROXY protocol, version 2, ahead of TLS, and serves one request"),
    table("timeouts", schema::kTimeouts, "deadlines of the upstream side"),
    whole("queue", 0, 65'536, "256",
          "requests of all workers that wait for a server with room (max_in_flight, limit); more get 503"),
    key("max_wait", Kind::Duration, "1s", "how long one waits for it at most"),
    whole("max_idle", 0, 65'536, "256", "unused connections kept per server and worker"),
    table("eject", schema::kEject, "when a server that fails is left out"),
    key("resolve", Kind::Duration, "30s",
        "between two look-ups of servers' names, a tenth more or less; 0s: at start alone"),
    key("slow_start", Kind::Duration, "5s", "how long a server that is back takes to have its full share"),
    table("health", schema::kHealth, "servers are asked how they are; absent: requests alone tell"),
    table("retry", schema::kRetry, "which requests are sent again"),
    table("tls", schema::kUpstreamTls, "how servers are believed whose addresses begin with https://"),
};
constexpr KeySpec kUpstreamTlsKeys[] = {
    key("ca", Kind::Text, "", "PEM file: the authorities of servers' certificates; absent: the system's"),
    key("server_name", Kind::Text, "", "whose certificates servers have; absent: what each address says"),
    key("verify", Kind::Bool, "true", "false: any certificate is believed, so anybody may be the server"),
    key("cert", Kind::Text, "", "PEM file: the certificate that weir shows, then its chain; absent: none"),
    key("key", Kind::Text, "", "PEM file: its private key"),
};
constexpr KeySpec kServerOfUpstreamKeys[] = {
    like(pattern::kServerAddress,
         required("address", Kind::Text, "host:port, [v6]:port or unix:/path; https://host[:port] for TLS")),
    key("server_name", Kind::Text, "",
        "whose certificate it has, of https://; absent: what tls or the address says"),
    whole("weight", 1, upstream::kMaxWeight, "1", "its share beside the others'"),
    whole("max_in_flight", 0, 10'000'000, "0",
          "requests it has at most, of all workers together; more go to others, wait, or get 503; 0: any"),
    key("limit", Kind::Rate, "",
        "requests it gets at most, of all workers together; more go to others, wait, or get 503"),
};
constexpr KeySpec kEjectKeys[] = {
    whole("failures", 1, 1'000, "3",
          "requests in a row that it does not answer; one failed connect is enough"),
    key("least", Kind::Duration, "1s", "how long it is out the first time; twice as long each next time"),
    key("most", Kind::Duration, "30s", "how long it is out at most"),
};
constexpr KeySpec kHealthKeys[] = {
    like(pattern::kRooted, required("path", Kind::Text, "what is asked for, by GET")),
    key("interval", Kind::Duration, "2s", "between two questions, a tenth more or less"),
    key("timeout", Kind::Duration, "1s", "until the answer's head"),
    whole("unhealthy_after", 1, 1'000, "3", "faults in a row until it is down"),
    whole("healthy_after", 1, 1'000, "2", "good answers in a row until it is back"),
    like(pattern::kStatuses, key("status", Kind::OneOrMore, "200-399", "of a good answer, any of")),
};
constexpr KeySpec kRetryKeys[] = {
    whole("attempts", 1, upstream::kMaxServers, "2",
          "servers that get a request at most; a connect that fails is none"),
    like(pattern::kBudget, key("budget", Kind::Text, "20%",
                               "of all requests may be sent again, and ten at first; \"0%\": none")),
    key("backoff", Kind::Duration, "25ms",
        "the longest wait before the first time; twice as long each next time"),
    like(pattern::kRetryOn,
         key("on", Kind::Texts, "broken late",
             "broken (no answer, or no HTTP), late (beyond timeouts.response), or a status such as 503")),
};
constexpr KeySpec kTimeoutsKeys[] = {
    key("connect", Kind::Duration, "1s", "until a connection stands, TLS included"),
    key("connect_total", Kind::Duration, "",
        "the same of one request, at all servers together; absent: 5s, or connect where that is longer"),
    key("response", Kind::Duration, "30s",
        "from the request sent to the answer's head, and between two reads of it"),
    key("expect_continue", Kind::Duration, "",
        "until weir itself says 100 to a client that waits for the server's; as long as response or total, "
        "or longer: never; absent: 1s, or half of either where that is shorter"),
    key("idle", Kind::Duration, "60s", "how long an unused connection is kept"),
    key("abandoned", Kind::Duration, "30s",
        "how long an answer is read on whose client has left, where a rule's charge or place depends on it; "
        "0s: not "
        "at all"),
    key("total", Kind::Duration, "",
        "from the first attempt to the head of the last one's answer; absent: the others bound it"),
    key("tunnel", Kind::Duration, "5min",
        "of a connection that changed to another protocol: without a byte either way"),
};

}  // namespace

namespace schema {
constinit const TableSpec kUpstream{kUpstreamKeys}, kServerOfUpstream{kServerOfUpstreamKeys},
    kEject{kEjectKeys}, kHealth{kHealthKeys}, kRetry{kRetryKeys}, kTimeouts{kTimeoutsKeys},
    kUpstreamTls{kUpstreamTlsKeys};
}  // namespace schema

}  // namespace weir::app
