#include "config/schema/schema.hpp"

#include "config/schema/schema_keys.hpp"

#include <algorithm>

namespace weir::config {

namespace {

constexpr KeySpec kRootKeys[] = {
    table("server", schema::kServer, "limits and deadlines for clients"),
    table("log", schema::kLog, "access log and process log"),
    table("admin", schema::kAdmin, "health, metrics and the admin API"),
    table("tracing", schema::kTracing, "export of spans to an OpenTelemetry collector"),
    table("cors", schema::kCors, "which pages of other origins may read weir's answers in a browser"),
    table("acme", schema::kAcme, "certificates that weir orders and renews by itself"),
    tables("listener", schema::kListener, "addresses at which clients connect"),
    table("client", schema::kClient, "how weir identifies a client"),
    table("state", schema::kState, "where the state of limits is kept"),
    tables("upstream", schema::kUpstream, "groups of servers behind weir"),
    tables("route", schema::kRoute, "where a request is forwarded; the first route that matches is used"),
    tables("rule", schema::kRule, "how much a client may request"),
    tables("alert", schema::kAlert, "sends a webhook when refusals or failures exceed a rate"),
};

// In the order of the enumerators of proxy::HalfClose.
constexpr Choice kHalfCloses[] = {{"answer"}, {"end"}};
constexpr KeySpec kServerKeys[] = {
    whole("workers", 0, 256, "0", "number of threads; each has its own connections; 0: one per core"),
    key("drain", Kind::Duration, "30s", "how long weir finishes open requests before it stops"),
    key("drain_delay", Kind::Duration, "0s",
        "how long a stopping weir serves and answers 503 on /readyz before it drains, so that balancers "
        "stop sending requests to it"),
    key("upgrade_timeout", Kind::Duration, "1min",
        "how long an upgrade waits until the new process is ready"),
    key("upgrade_pause", Kind::Duration, "5s",
        "how long requests wait at most while the new process takes over"),
    like(pattern::kHeaderFamily,
         key("ratelimit_headers", Kind::Texts, "x ietf",
             "header fields that tell clients their limits: x (X-RateLimit-*), ietf (RateLimit)")),
    like(pattern::kBudget,
         key("retry_after_jitter", Kind::Text, "0%",
             "random share by which weir lengthens Retry-After, so that refused clients do not all return "
             "together")),
    key("forwarded", Kind::Bool, "false", "adds Forwarded (RFC 7239) beside X-Forwarded-* to requests"),
    key("underscores_in_headers", Kind::Bool, "false",
        "forwards request headers such as X_API_Key, which CGI programs read as X-API-Key"),
    key("max_head", Kind::Size, "16KiB", "largest head of a request or an answer"),
    key("max_body", Kind::Size, "", "largest body of a request; absent: no limit"),
    key("max_body_memory", Kind::Size, "64MiB",
        "memory for bodies that rules read, of all workers together; a request that finds no room gets 503; "
        "an answer that finds none costs its reserve"),
    whole(
        "max_parameters", 1, 100'000, "1000",
        "most parameters of a query, most cookies, and most fields of a form, if a rule, a route or [client] "
        "reads one; with more the answer is 400"),
    whole("max_repeats", 1, 100'000, "16",
          "most values of one header, parameter or cookie that a condition or a key reads; with more the "
          "answer is 400"),
    whole("max_connections", 1, 10'000'000, "16384", "most open client connections of all workers together"),
    whole("max_connections_per_ip", 0, 10'000'000, "0",
          "most open connections of one client address (IPv6: of one ipv6_prefix); weir closes further ones "
          "at once; trusted proxies have no limit; 0: no limit"),
    whole("max_in_flight", 0, 10'000'000, "0",
          "most requests at upstreams, of all workers together; the lowest priority is shed first; 0: no "
          "limit"),
    key("head_timeout", Kind::Duration, "10s",
        "time from a request's first byte to the end of its head; also the time for the TLS handshake"),
    key("body_timeout", Kind::Duration, "30s", "longest time between two reads of a request's body"),
    key("write_timeout", Kind::Duration, "30s",
        "longest time in which a client reads nothing; weir closes its connection after twice that time at "
        "the latest"),
    key("min_rate", Kind::Size, "500B",
        "lowest rate, in bytes a second, at which a client sends a body or reads an answer; \"0B\": no "
        "limit"),
    key("min_rate_grace", Kind::Duration, "20s", "period over which min_rate is averaged"),
    key("idle_timeout", Kind::Duration, "75s", "longest time between two requests of a connection"),
    choice("half_close", kHalfCloses, "answer",
           "what a client means that closes its sending side after a request: it waits for the answer, or it "
           "has left"),
    key("certificate_check", Kind::Duration, "10s",
        "how often weir looks for changed TLS files (of listeners, upstreams, webhooks, Redis) and reads "
        "them; 0s: never"),
    key("nameservers", Kind::Texts, "",
        "IP addresses, each with a port or port 53, of the name servers that weir asks for the names of "
        "servers; absent: those of /etc/resolv.conf"),
    key("watch", Kind::Bool, "false",
        "true: weir reloads by itself when the configuration file has changed, or the keys file, a file of "
        "token keys or a database of places"),
};

constexpr Choice kLevels[] = {  // in the order of the enumerators of LogLevel
    {"trace"}, {"debug"}, {"info"}, {"warn"}, {"error"}, {"off"}};
constexpr KeySpec kLogKeys[] = {
    key("access", Kind::Text, "-", "file of the access log; \"-\": standard output; \"off\": none"),
    key("fields", Kind::Texts, "usual",
        "fields of a line beside the time: \"usual\", \"replay\" (all that weir replay reads), or names of "
        "fields"),
    choice("level", kLevels, "info",
           "lowest level that the process log on standard error shows; it shows changes over [admin] at any "
           "level"),
};

constexpr KeySpec kAdminKeys[] = {
    required("address", Kind::Address, "address of the admin listener; beyond loopback it needs a token"),
    key("token", Kind::Text, "",
        "token that requests bring as \"Authorization: Bearer …\"; /healthz and /readyz need none"),
    whole("top", 0, 1024, "64",
          "clients that weir lists for each rule, of those that spend most and of those that are refused "
          "most; 0: none"),
};

constexpr Choice kPreflights[] = {{"forward"}, {"answer"}};
constexpr KeySpec kCorsKeys[] = {
    like(pattern::kOrigin, required("origins", Kind::Texts,
                                    "origins of the pages, as browsers write them; [\"*\"]: all pages")),
    key("credentials", Kind::Bool, "false", "pages may also read answers to requests with cookies"),
    key("max_age", Kind::Duration, "10min", "how long a browser may remember a preflight that weir answers"),
    choice("preflight", kPreflights, "forward",
           "preflights of these origins go to the server, or weir answers them; no rule charges them"),
};

constexpr Choice kAddressFields[] = {{"x-forwarded-for"}, {"forwarded"}};
constexpr Choice kUnknownKeys[] = {{"anonymous"}, {"reject"}, {"accept"}};
constexpr KeySpec kClientKeys[] = {
    key("trusted_proxies", Kind::Texts, "",
        "addresses and blocks of proxies whose X-Forwarded-For and PROXY weir believes; \"unix:\" for unix "
        "sockets"),
    key("trusted_fields", Kind::Texts, "",
        "further request fields that weir forwards from trusted proxies only, beside the usual ones; []: no "
        "such field"),
    choice("address_from", kAddressFields, "x-forwarded-for",
           "field in which trusted proxies name the client; weir ignores the other one"),
    whole("ipv6_prefix", 1, 128, "64",
          "weir counts all IPv6 addresses of a block of this length as one client"),
    table("api_key", schema::kApiKeySource,
          "where the API key is: { header }, { query } or { bearer = true }; default the header X-API-Key"),
    table("user", schema::kSource,
          "where the user is named: { header }, { query } or { cookie }, believed from trusted proxies only; "
          "or { claim }"),
    table("org", schema::kSource, "likewise for the organisation"),
    table("service", schema::kSource, "likewise for the service"),
    table("device", schema::kSource, "likewise for the device, but believed from every client"),
    table("tier", schema::kTierSource,
          "where the tier is named, if the keys file gives the client none: { claim }"),
    key("keys", Kind::Text, "", "file of the valid API keys and their owners"),
    choice(
        "unknown_keys", kUnknownKeys, "anonymous",
        "what weir does with an API key that the file lacks: it counts as no key, gets 401, or is accepted"),
    {.name = "jwt",
     .kind = Kind::OneOrMoreTables,
     .about = "how weir verifies bearer tokens; with several issuers a list, [[client.jwt]]",
     .inner = &schema::kJwt},
    key("geo", Kind::OneOrMore, "",
        "databases of countries, cities or autonomous systems by address, in the format of MaxMind"),
};

constexpr Choice kTokenAlgorithms[] = {{"HS256"}, {"HS384"}, {"HS512"}, {"RS256"}, {"RS384"},
                                       {"RS512"}, {"ES256"}, {"ES384"}, {"ES512"}, {"PS256"},
                                       {"PS384"}, {"PS512"}, {"EdDSA"}};
constexpr KeySpec kJwtKeys[] = {
    {.name = "algorithm",
     .kind = Kind::Choice,
     .about =
         "algorithm of the signature; weir rejects tokens that name another one; may be absent with jwks, "
         "whose keys say their algorithms",
     .choices = kTokenAlgorithms},
    key("public_key", Kind::Text, "", "PEM file: the public key, for RS…, PS…, ES… and EdDSA"),
    key("jwks", Kind::Text, "",
        "JSON file or URL: the issuer's public keys (a JWK set), in place of public_key; the token's kid "
        "chooses the key"),
    table("fetch", schema::kKeyFetch, "how weir fetches jwks, if it is a URL"),
    key("secret", Kind::Text, "", "the shared secret, for HS…"),
    key("issuer", Kind::Text, "",
        "required value of iss; absent: any value; needed if there are several issuers"),
    key("audience", Kind::Text, "", "value that aud has to be or to contain; absent: any value"),
    key("leeway", Kind::Duration, "30s",
        "how far the issuer's clock may differ from this machine's clock, for exp and nbf"),
    key("require_exp", Kind::Bool, "false", "rejects tokens without exp, which never expire"),
};

constexpr KeySpec kKeyFetchKeys[] = {
    key("refresh", Kind::Duration, "10min", "time from a fetch to the next one"),
    key("cooldown", Kind::Duration, "2s",
        "least time from a fetch to one that an unknown kid causes; also the time until a failed fetch is "
        "repeated"),
    key("wait", Kind::Duration, "3s", "longest time that a request with an unknown kid waits for a fetch"),
    whole("max_waiting", 1, 1'000'000, "1000",
          "most requests that wait for a fetch at the same time; further ones do not wait"),
    key("timeout", Kind::Duration, "5s", "longest time of a fetch"),
    key("max_size", Kind::Size, "256KiB", "largest answer to a fetch"),
    key("ca", Kind::Text, "", "PEM file of the authorities of the URL's server; absent: the system's"),
    key("allow_http", Kind::Bool, "false",
        "true: jwks may begin with http://; whoever can change the answers can then forge tokens"),
};

constexpr KeySpec kApiKeySourceKeys[] = {
    key("header", Kind::Text, "", "name of a header field"),
    key("query", Kind::Text, "", "name of a query parameter"),
    key("bearer", Kind::Bool, "false", "the key is in Authorization: Bearer …"),
};
constexpr KeySpec kTierSourceKeys[] = {
    required("claim", Kind::Text, "name of the claim of the bearer token, such as \"plan\""),
};
constexpr KeySpec kSourceKeys[] = {
    key("header", Kind::Text, "", "name of a header field"),
    key("query", Kind::Text, "", "name of a query parameter"),
    key("cookie", Kind::Text, "", "name of a cookie"),
    key("claim", Kind::Text, "", "name of a claim of the bearer token; believed from every client"),
};

constexpr KeySpec kStateKeys[] = {
    choice("store", kStores, "memory", "where rules keep their state unless they say otherwise"),
    key("key_secret", Kind::Text, "",
        "secret that hides clients' names in Redis; the same on every weir; absent: weirs share a random one "
        "in Redis"),
    whole(
        "replicas", 1, 10'000, "1",
        "number of weirs that share the Redis; without Redis each enforces the limit divided by this number"),
    table("memory", schema::kMemory, "state in the memory of this process"),
    table("redis", schema::kRedis, "state in Redis, shared by all weirs"),
};
constexpr KeySpec kMemoryKeys[] = {
    whole("max_keys", 1, std::int64_t{1} << 30, "1000000", "most keys (clients times rules) at once"),
    key("snapshot", Kind::Text, "", "file that keeps the live keys while weir is stopped; absent: none"),
};
constexpr Choice kTopologies[] = {{"standalone"}, {"sentinel"}, {"cluster"}};
constexpr KeySpec kRedisTlsKeys[] = {
    key("ca", Kind::Text, "", "PEM file: the authority of its certificate; absent: the system's authorities"),
    key("cert", Kind::Text, "", "PEM file: weir's own certificate, then its chain; absent: weir shows none"),
    key("key", Kind::Text, "", "PEM file: its private key"),
    key("server_name", Kind::Text, "",
        "name in its certificate, also sent by SNI; absent: the host of the url"),
    key("verify", Kind::Bool, "true", "false: weir accepts any certificate"),
};
constexpr KeySpec kRedisKeys[] = {
    like(pattern::kRedisUrl,
         required(
             "url", Kind::Text,
             "redis[s]://[user:password@]host[:port][/database], or unix://[user:password@]/path[?db=N]")),
    key("username", Kind::Text, "", "ACL user, in place of the one in the url; absent: the default user"),
    key("password", Kind::Text, "",
        "password, in place of the one in the url; it may hold any characters; absent: none"),
    table("tls", schema::kRedisTls, "TLS to Redis, for a url of rediss://"),
    key("timeout", Kind::Duration, "20ms", "longest time that a request waits for Redis"),
    key("start_wait", Kind::Duration, "1s",
        "how long a starting weir waits for Redis before it takes requests"),
    like(pattern::kName, key("prefix", Kind::Text, "weir", "prefix of every key in Redis")),
    key("lease_time", Kind::Duration, "10s",
        "concurrency: time after which the permits of a dead weir are free again; 1s to 1h"),
    choice("topology", kTopologies, "standalone",
           "one server; the master that Sentinels name; or a Redis Cluster, where url holds user and "
           "password only"),
    like(pattern::kHostAndPort,
         key("nodes", Kind::Texts, "",
             "addresses of some nodes of the cluster; weir learns the others from them")),
    like(pattern::kHostAndPort, key("sentinels", Kind::Texts, "", "addresses of the Sentinels")),
    key("master", Kind::Text, "", "name of the master at the Sentinels"),
    key("sentinel_user", Kind::Text, "", "ACL user of the Sentinels themselves"),
    key("sentinel_password", Kind::Text, "", "password of the Sentinels themselves; absent: none"),
    key("sentinel_tls", Kind::Bool, "false", "TLS to the Sentinels too, for a url of rediss://"),
    key("lease_return", Kind::Duration, "1s",
        "idle time of a key after which weir returns units that it took in advance; 100ms to 1min"),
    whole("lease_keys", 64, 10'000'000, "4096",
          "most keys for which weir takes units in advance; requests of further keys ask Redis one by one"),
};

constexpr Choice kAmbiguousPaths[] = {{"refuse"}, {"pass"}};  // in the order of policy::AmbiguousPaths
constexpr Choice kRespondWords[] = {{"usage"}};
constexpr KeySpec kRespondShapeKeys[] = {{.kind = Kind::Choice, .choices = kRespondWords},
                                         {.kind = Kind::Subtable, .inner = &schema::kRespond}};
constexpr TableSpec kRespondShapes{kRespondShapeKeys};
constexpr KeySpec kRouteKeys[] = {
    like(pattern::kName, key("name", Kind::Text, "", "label of its metrics; default: its path")),
    table("match", schema::kMatch, "which requests; absent: all"),
    key("upstream", Kind::Text, "", "name of an upstream"),
    key("honor_upstream_retry_after", Kind::Bool, "false",
        "after a 429 of the upstream with Retry-After, weir answers 429 itself until that time is over"),
    mixed("respond", kRespondShapes, "",
          "weir answers itself, in place of an upstream; \"usage\": with the client's own limits, uncharged"),
    table("headers", schema::kHeaders, "header fields that weir changes in requests and answers"),
    key("strip_prefix", Kind::Text, "",
        "\"/api\": removed from the beginning of the path that weir forwards"),
    key("add_prefix", Kind::Text, "", "\"/v2\": put before the path that weir forwards"),
    table("rewrite", schema::kRewrite, "another path that weir forwards, by a regular expression"),
    key("upgrade", Kind::Texts, "websocket", "protocols to which a connection may be upgraded; never h2c"),
    key("max_head", Kind::Size, "", "largest head of a request; absent: as in [server]"),
    key("max_body", Kind::Size, "", "largest body of a request; absent: as in [server]"),
    whole("priority", 0, 9, "5",
          "0 (first) to 9 (last): order in queues, and order in which requests are shed under load"),
    choice("ambiguous_paths", kAmbiguousPaths, "refuse",
           "what weir does if servers may read a path in several ways that rules or routes treat "
           "differently: it answers 400, or forwards the request and goes by the normal form of the path"),
};
constexpr KeySpec kRespondKeys[] = {
    whole("status", 200, 599, "200", "status of the answer"),
    key("body", Kind::Text, "", "body of the answer"),
    key("content_type", Kind::Text, "text/plain; charset=utf-8", "Content-Type of the answer"),
    key("location", Kind::Text, "",
        "Location of a redirect (301, 302, 303, 307, 308), with placeholders: \"https://{host}{uri}\""),
    named("headers", kFieldShapes, "further header fields: name = \"text\", with placeholders"),
};
constexpr KeySpec kHeadersKeys[] = {
    table("request", schema::kFieldEdits, "fields of the request that weir forwards"),
    table("response", schema::kFieldEdits, "fields of the answer, from the server or from weir itself"),
};
constexpr KeySpec kFieldEditsKeys[] = {
    named("set", kFieldShapes,
          "fields that replace those of the same name: name = \"text\", with placeholders"),
    named("add", kFieldShapes, "fields beside those of the same name, likewise"),
    key("remove", Kind::Texts, "",
        "names of fields that weir does not forward; \"X-Debug-*\": all that begin so"),
};
constexpr KeySpec kRewriteKeys[] = {
    required(
        "pattern", Kind::Text,
        "regular expression that weir searches in the path; if it is absent there, the path stays as it is"),
    required("to", Kind::Text,
             "the whole new path; {1} to {9} are groups of the expression, {0} the whole match"),
};

constexpr KeySpec kKeysFileKeys[] = {tables("key", schema::kKey, "an API key")};
constexpr KeySpec kKeyKeys[] = {
    key("key", Kind::Text, "", "the key as clients send it"),
    key("sha256", Kind::Text, "", "or its SHA-256 in hexadecimal"),
    key("user", Kind::Text, "", "user who owns the key"),
    key("org", Kind::Text, "", "organisation that owns the key"),
    key("tier", Kind::Text, "", "tier of the key's owner"),
    key("service", Kind::Text, "", "service that owns the key"),
};

}  // namespace

const KeySpec* TableSpec::find(std::string_view name) const noexcept {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const KeySpec& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

namespace schema {
constinit const TableSpec kRoot{kRootKeys}, kServer{kServerKeys}, kLog{kLogKeys}, kAdmin{kAdminKeys},
    kCors{kCorsKeys}, kClient{kClientKeys}, kApiKeySource{kApiKeySourceKeys}, kSource{kSourceKeys},
    kTierSource{kTierSourceKeys}, kJwt{kJwtKeys}, kKeyFetch{kKeyFetchKeys}, kState{kStateKeys},
    kMemory{kMemoryKeys}, kRedis{kRedisKeys}, kRedisTls{kRedisTlsKeys}, kRoute{kRouteKeys},
    kRespond{kRespondKeys}, kHeaders{kHeadersKeys}, kFieldEdits{kFieldEditsKeys}, kRewrite{kRewriteKeys},
    kKeysFile{kKeysFileKeys}, kKey{kKeyKeys};
}  // namespace schema

}  // namespace weir::config
