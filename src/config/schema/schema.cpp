#include "config/schema/schema.hpp"

#include "config/schema/schema_keys.hpp"

#include <algorithm>

namespace weir::app {

namespace {

constexpr KeySpec kRootKeys[] = {
    table("server", schema::kServer, "bounds and deadlines of the client side"),
    table("log", schema::kLog, "what is written where"),
    table("admin", schema::kAdmin, "health, metrics and the API"),
    tables("listener", schema::kListener, "where clients connect"),
    table("client", schema::kClient, "who is asking"),
    table("state", schema::kState, "where limits are kept"),
    tables("upstream", schema::kUpstream, "groups of servers"),
    tables("route", schema::kRoute, "where admitted requests go: the first that matches"),
    tables("rule", schema::kRule, "who may how much"),
    tables("alert", schema::kAlert, "who is told when refusals or failures are too many"),
};

constexpr Choice kHalfCloses[] = {{"answer"}, {"end"}};  // in the order of proxy::HalfClose
constexpr KeySpec kServerKeys[] = {
    whole("workers", 0, 256, "0", "threads, each with its own connections; 0: one per core"),
    key("drain", Kind::Duration, "30s", "how long a stopping weir finishes what it began"),
    key("upgrade_timeout", Kind::Duration, "1min", "until a new process is ready to take over"),
    key("upgrade_pause", Kind::Duration, "5s", "most that requests wait while it takes over"),
    like(pattern::kHeaderFamily, key("ratelimit_headers", Kind::Texts, "x ietf",
                                     "which fields tell the limits: x (X-RateLimit-*), ietf (RateLimit)")),
    key("forwarded", Kind::Bool, "false", "adds Forwarded (RFC 7239) beside X-Forwarded-*"),
    key("underscores_in_headers", Kind::Bool, "false",
        "forwards request headers such as X_API_Key, which CGI takes for X-API-Key"),
    key("max_head", Kind::Size, "16KiB", "of a request's or an answer's head"),
    key("max_body", Kind::Size, "", "of a request's body; absent: any"),
    key("max_body_memory", Kind::Size, "64MiB",
        "memory of all workers together for bodies that rules read; beyond it 503, and of an answer's body "
        "the "
        "reserve stands"),
    whole("max_parameters", 1, 100'000, "1000",
          "parameters of a query, and cookies, where a rule, a route or [client] asks for one; more: 400"),
    whole("max_repeats", 1, 100'000, "16",
          "values of one header, parameter or cookie that a condition or a key asks for; more: 400"),
    whole("max_connections", 1, 10'000'000, "16384", "open client connections of all workers together"),
    whole(
        "max_connections_per_ip", 0, 10'000'000, "0",
        "open connections of one client address (IPv6: of one ipv6_prefix); more are closed at once; trusted "
        "proxies may have any; 0: any"),
    whole("max_in_flight", 0, 10'000'000, "0",
          "requests at upstreams of all workers together; the lowest priority is shed first; 0: any"),
    key("head_timeout", Kind::Duration, "10s",
        "from a request's first byte to the end of its head; TLS handshake"),
    key("body_timeout", Kind::Duration, "30s", "between two reads of a request's body"),
    key("write_timeout", Kind::Duration, "30s",
        "a client that takes nothing for so long is ended, after twice that at the latest"),
    key("min_rate", Kind::Size, "500B",
        "octets a second of a body that a client sends, or an answer that it takes, while it is waited for; "
        "\"0B\": any"),
    key("min_rate_grace", Kind::Duration, "20s", "over which min_rate is an average"),
    key("idle_timeout", Kind::Duration, "75s", "between two requests of a connection"),
    choice("half_close", kHalfCloses, "answer",
           "a client that has sent its request and ends its sending: it gets its answer, or is taken to have "
           "left"),
    key("certificate_check", Kind::Duration, "10s",
        "between two looks at the files of TLS (of listeners, upstreams, webhooks, Redis), read anew when "
        "changed; "
        "0s: never"),
};

constexpr Choice kLevels[] = {  // in the order of LogLevel
    {"trace"}, {"debug"}, {"info"}, {"warn"}, {"error"}, {"off"}};
constexpr KeySpec kLogKeys[] = {
    key("access", Kind::Text, "-", "access log: a file, \"-\" for standard output, or \"off\""),
    key("fields", Kind::Texts, "usual",
        "what its lines hold beside the time: \"usual\", what weir replay reads (\"replay\"), or single "
        "fields"),
    choice("level", kLevels, "info",
           "of the process log on standard error; who changed something over [admin] stands there at any"),
};

constexpr KeySpec kAdminKeys[] = {
    required("address", Kind::Address, "keep it on loopback, or set a token"),
    key("token", Kind::Text, "", "asked as \"Authorization: Bearer …\" of all but /healthz and /readyz"),
    whole("top", 0, 1024, "64",
          "counters of the clients that spend most of each rule, and as many of those refused; 0: none"),
};

constexpr KeySpec kListenerKeys[] = {
    required(
        "address", Kind::Address,
        "host:port, [v6]:port or unix:/path; a name is opened at all its addresses; port 0 takes a free one"),
    table("tls", schema::kTls, "terminates TLS; absent: plain HTTP"),
    key("proxy_protocol", Kind::Bool, "false",
        "every connection begins with the PROXY protocol, version 1 or 2, believed of trusted proxies"),
};

constexpr Choice kTlsVersions[] = {{"1.2"}, {"1.3"}};
constexpr Choice kClientAuths[] = {{"require"}, {"optional"}};
constexpr KeySpec kTlsKeys[] = {
    {.name = "certificates",
     .kind = Kind::Subtables,
     .about = "chosen by the name the client asks for, and by the keys that it can verify; the first is the "
              "default",
     .required = true,
     .inner = &schema::kCertificate},
    choice("min_version", kTlsVersions, "1.2", "of TLS"),
    key("client_ca", Kind::Text, "",
        "PEM file: the authorities of clients' certificates; absent: clients are not asked"),
    choice("client_auth", kClientAuths, "require",
           "of clients, where client_ca is given: a certificate, or with \"optional\" none or a good one"),
    key("ticket_rotation", Kind::Duration, "4h",
        "a key of session tickets is used so long, and opens tickets for as long again"),
};

constexpr KeySpec kCertificateKeys[] = {
    required("cert", Kind::Text, "PEM file: the certificate, then its chain"),
    required("key", Kind::Text, "PEM file: its private key"),
    key("ocsp", Kind::Text, "", "DER file: the authority's OCSP response, stapled while it is up to date"),
};

constexpr Choice kAddressFields[] = {{"x-forwarded-for"}, {"forwarded"}};
constexpr Choice kUnknownKeys[] = {{"anonymous"}, {"reject"}, {"accept"}};
constexpr KeySpec kClientKeys[] = {
    key("trusted_proxies", Kind::Texts, "",
        "addresses and blocks whose X-Forwarded-For and PROXY are believed; \"unix:\" for unix sockets"),
    key("trusted_fields", Kind::Texts, "",
        "more request fields that only trusted proxies may send to servers, beside the usual ones; []: none"),
    choice("address_from", kAddressFields, "x-forwarded-for",
           "the field in which trusted proxies say who is asking; the other is not looked at"),
    whole("ipv6_prefix", 1, 128, "64", "IPv6 clients of one such block are one client"),
    table("api_key", schema::kApiKeySource,
          "{ header }, { query } or { bearer = true }; default the header X-API-Key"),
    table("user", schema::kSource,
          "{ header }, { query } or { cookie }, believed from trusted proxies alone; or { claim }"),
    table("org", schema::kSource, "likewise"),
    table("service", schema::kSource, "likewise"),
    table("device", schema::kSource, "likewise, but believed from anyone"),
    key("keys", Kind::Text, "", "file of the API keys that exist, and whose they are"),
    choice("unknown_keys", kUnknownKeys, "anonymous",
           "a key that the file lacks: as if absent, 401, or good"),
    table("jwt", schema::kJwt, "how bearer tokens are verified, whose claims count"),
    key("geo", Kind::Text, "", "file of countries by address, in MaxMind's format"),
};

constexpr Choice kTokenAlgorithms[] = {{"HS256"}, {"HS384"}, {"HS512"}, {"RS256"}, {"RS384"},
                                       {"RS512"}, {"ES256"}, {"ES384"}, {"ES512"}};
constexpr KeySpec kJwtKeys[] = {
    {.name = "algorithm",
     .kind = Kind::Choice,
     .about = "of the signature; a token that names another is none",
     .required = true,
     .choices = kTokenAlgorithms},
    key("public_key", Kind::Text, "", "PEM file, of RS… and ES…"),
    key("secret", Kind::Text, "", "of HS…"),
    key("issuer", Kind::Text, "", "what iss has to be; absent: anything"),
    key("audience", Kind::Text, "", "what aud has to be or to hold; absent: anything"),
    key("leeway", Kind::Duration, "30s",
        "by which the issuer's clock may differ from this machine's, for exp and nbf"),
    key("require_exp", Kind::Bool, "false", "refuse tokens without exp, which never expire"),
};

constexpr KeySpec kApiKeySourceKeys[] = {
    key("header", Kind::Text, "", "name of a header field"),
    key("query", Kind::Text, "", "name of a query parameter"),
    key("bearer", Kind::Bool, "false", "Authorization: Bearer …"),
};
constexpr KeySpec kSourceKeys[] = {
    key("header", Kind::Text, "", "name of a header field"),
    key("query", Kind::Text, "", "name of a query parameter"),
    key("cookie", Kind::Text, "", "name of a cookie"),
    key("claim", Kind::Text, "", "name of a claim of the bearer token; believed from anyone"),
};

constexpr KeySpec kStateKeys[] = {
    choice("store", kStores, "memory", "where rules keep state unless they say otherwise"),
    key("key_secret", Kind::Text, "",
        "names clients in Redis, the same on every weir that shares it; absent: a random one kept in Redis"),
    whole("replicas", 1, 10'000, "1",
          "weirs that share the Redis: what each enforces alone is the limit divided by it"),
    table("memory", schema::kMemory, "state in this process"),
    table("redis", schema::kRedis, "state shared through Redis"),
};
constexpr KeySpec kMemoryKeys[] = {
    whole("max_keys", 1, std::int64_t{1} << 30, "1000000", "clients times rules that are remembered at once"),
    key("snapshot", Kind::Text, "", "file that keeps the live keys while weir does not run; absent: none"),
};
constexpr Choice kTopologies[] = {{"standalone"}, {"sentinel"}, {"cluster"}};
constexpr KeySpec kRedisTlsKeys[] = {
    key("ca", Kind::Text, "", "PEM file: who signs its certificate; absent: whom the system trusts"),
    key("cert", Kind::Text, "", "PEM file: weir's own certificate, then its chain; absent: none is shown"),
    key("key", Kind::Text, "", "PEM file: its private key"),
    key("server_name", Kind::Text, "",
        "what its certificate is for, and is asked for (SNI); absent: the host that is connected to"),
    key("verify", Kind::Bool, "true", "false believes anybody"),
};
constexpr KeySpec kRedisKeys[] = {
    like(pattern::kRedisUrl,
         required(
             "url", Kind::Text,
             "redis[s]://[user:password@]host[:port][/database], or unix://[user:password@]/path[?db=N]")),
    key("username", Kind::Text, "", "ACL user, in place of the url's; absent: the default user"),
    key("password", Kind::Text, "", "any characters, in place of the url's; absent: Redis asks for none"),
    table("tls", schema::kRedisTls, "how TLS is spoken, with a url of rediss://"),
    key("timeout", Kind::Duration, "20ms", "the longest that a decision waits for it"),
    key("start_wait", Kind::Duration, "1s",
        "how long a starting weir waits for Redis before it takes requests"),
    like(pattern::kName, key("prefix", Kind::Text, "weir", "of every key there")),
    key("lease_time", Kind::Duration, "10s",
        "concurrency: after which the places of a weir that died come free; 1s to 1h"),
    choice("topology", kTopologies, "standalone",
           "one server; the master that Sentinels know; or a Redis Cluster: url then says user and password "
           "alone"),
    like(pattern::kHostAndPort,
         key("nodes", Kind::Texts, "", "addresses of some of a cluster's nodes: they know the others")),
    like(pattern::kHostAndPort, key("sentinels", Kind::Texts, "", "addresses of the Sentinels")),
    key("master", Kind::Text, "", "what they call the master"),
    key("sentinel_user", Kind::Text, "", "ACL user of the Sentinels themselves"),
    key("sentinel_password", Kind::Text, "", "of the Sentinels themselves; absent: they ask for none"),
    key("sentinel_tls", Kind::Bool, "false", "TLS to the Sentinels as well, with a url of rediss://"),
    key("lease_return", Kind::Duration, "1s",
        "units that a weir took in advance go back when their key was not asked for so long; 100ms to 1min"),
    whole("lease_keys", 64, 10'000'000, "4096",
          "keys of rules with a lease that a weir looks after at once; others go to Redis one by one"),
};

constexpr Choice kAmbiguousPaths[] = {{"refuse"}, {"pass"}};  // in the order of policy::AmbiguousPaths
constexpr KeySpec kRouteKeys[] = {
    like(pattern::kName, key("name", Kind::Text, "", "label of its metrics; default its path")),
    table("match", schema::kMatch, "which requests; absent: every one"),
    key("upstream", Kind::Text, "", "name of an upstream"),
    key("honor_upstream_retry_after", Kind::Bool, "false",
        "after a 429 of the upstream's with Retry-After, weir itself answers so until then"),
    table("respond", schema::kRespond, "an answer of weir's own, in place of an upstream"),
    key("upgrade", Kind::Texts, "websocket", "protocols that a connection may change to; never h2c"),
    key("max_head", Kind::Size, "", "of a request's head; absent: as [server] has it"),
    key("max_body", Kind::Size, "", "of a request's body; absent: as [server] has it"),
    whole("priority", 0, 9, "5", "0 first to 9 last: in queues, and under load"),
    choice("ambiguous_paths", kAmbiguousPaths, "refuse",
           "a request whose path servers may read in several ways that rules or routes treat differently: "
           "400, or "
           "it passes as written and the path's normal form counts"),
};
constexpr KeySpec kRespondKeys[] = {
    whole("status", 200, 599, "200", "of the answer"),
    key("body", Kind::Text, "", "of the answer"),
    key("content_type", Kind::Text, "text/plain; charset=utf-8", "of the answer"),
};

constexpr KeySpec kKeysFileKeys[] = {tables("key", schema::kKey, "an API key")};
constexpr KeySpec kKeyKeys[] = {
    key("key", Kind::Text, "", "the key as clients send it"),
    key("sha256", Kind::Text, "", "or its SHA-256 in hexadecimal"),
    key("user", Kind::Text, "", "whose it is"),
    key("org", Kind::Text, "", "whose it is"),
    key("tier", Kind::Text, "", "which tier of the rules applies"),
    key("service", Kind::Text, "", "whose it is"),
};

}  // namespace

const KeySpec* TableSpec::find(std::string_view name) const noexcept {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const KeySpec& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

namespace schema {
constinit const TableSpec kRoot{kRootKeys}, kServer{kServerKeys}, kLog{kLogKeys}, kAdmin{kAdminKeys},
    kListener{kListenerKeys}, kTls{kTlsKeys}, kCertificate{kCertificateKeys}, kClient{kClientKeys},
    kApiKeySource{kApiKeySourceKeys}, kSource{kSourceKeys}, kJwt{kJwtKeys}, kState{kStateKeys},
    kMemory{kMemoryKeys}, kRedis{kRedisKeys}, kRedisTls{kRedisTlsKeys}, kRoute{kRouteKeys},
    kRespond{kRespondKeys}, kKeysFile{kKeysFileKeys}, kKey{kKeyKeys};
}  // namespace schema

}  // namespace weir::app
