// The schema of [[listener]].
#include "config/schema/schema_keys.hpp"

namespace weir::config {

namespace {

// In the order of the enumerators of net::Serves.
constexpr Choice kServes[] = {{"proxy"}, {"decide"}, {"rls"}};
constexpr Choice kDescriptors[] = {{"together"}, {"each"}};
constexpr KeySpec kListenerKeys[] = {
    required("address", Kind::Address,
             "host:port, [v6]:port or unix:/path; weir listens at all addresses of a name; port 0 takes a "
             "free port"),
    like(pattern::kName, key("name", Kind::Text, "", "name for match.listener; unique")),
    table("tls", schema::kTls, "weir terminates TLS; absent: plain HTTP"),
    like(pattern::kProtocol,
         key("protocols", Kind::Texts, "",
             "HTTP versions that clients may speak: http/1.1; h2 (HTTP/2 over TLS, chosen by ALPN); h2c "
             "(HTTP/2 "
             "without TLS, by prior knowledge); default: h2 and http/1.1 with tls, else http/1.1; "
             "with serves = \"rls\": h2 or h2c alone")),
    table("http2", schema::kHttp2, "bounds of HTTP/2 connections"),
    key("proxy_protocol", Kind::Bool, "false",
        "every connection begins with the PROXY protocol, version 1 or 2; weir believes trusted proxies "
        "only"),
    choice("serves", kServes, "proxy",
           "proxy: weir forwards requests; decide: weir answers questions in JSON, whether a request may "
           "pass; rls: weir answers Envoy's rate limit calls (gRPC)"),
    key("token", Kind::Text, "",
        "decide, rls: token that askers bring as \"Authorization: Bearer …\"; required beyond loopback, "
        "unless tls.client_ca demands certificates"),
    key("permit_ttl", Kind::Duration, "60s",
        "decide: how long a permit waits for its settlement, at most 1h; then its charges stand"),
    whole(
        "max_permits", 1, 10'000'000, "10000",
        "decide: most permits of the listener that wait, in all workers; each needs some 40 KiB; a question "
        "beyond that gets 503"),
    choice("descriptors", kDescriptors, "together",
           "rls: weir charges all descriptors of a call or none, or each by itself, as Envoy's own service "
           "does"),
};

constexpr Choice kTlsVersions[] = {{"1.2"}, {"1.3"}};
constexpr Choice kClientAuths[] = {{"require"}, {"optional"}};
constexpr KeySpec kTlsKeys[] = {
    {.name = "certificates",
     .kind = Kind::Subtables,
     .about = "certificates; weir chooses by the name that the client asks for and by the keys that the "
              "client can verify; the first is the default",
     .required = true,
     .inner = &schema::kCertificate},
    choice("min_version", kTlsVersions, "1.2", "lowest version of TLS"),
    key("client_ca", Kind::Text, "",
        "PEM file: the authorities that sign clients' certificates; absent: weir asks for no certificate"),
    key("client_crl", Kind::Text, "",
        "PEM file: the revocation lists of the authorities in client_ca, one for each; weir rejects revoked "
        "certificates"),
    choice("client_auth", kClientAuths, "require",
           "with client_ca: whether a client has to show a certificate; with \"optional\" it shows none or a "
           "good one"),
    key("ticket_rotation", Kind::Duration, "4h",
        "how long a key encrypts session tickets; it decrypts them for as long again"),
};

constexpr KeySpec kCertificateKeys[] = {
    key("cert", Kind::Text, "", "PEM file: the certificate, then its chain; required without acme"),
    key("key", Kind::Text, "", "PEM file: its private key; required without acme"),
    key("acme", Kind::Texts, "",
        "in place of cert and key: host names for which weir orders a certificate; requires [acme]"),
    key("ocsp", Kind::Text, "", "DER file: the authority's OCSP response; weir staples it while it is valid"),
};

// In the order of the enumerators of acme::ChallengeKind.
constexpr Choice kChallenges[] = {{"http-01"}, {"tls-alpn-01"}};
constexpr KeySpec kAcmeKeys[] = {
    required("accept_terms", Kind::Bool, "true: you accept the terms of service of the authority"),
    key("directory", Kind::Text, "https://acme-v02.api.letsencrypt.org/directory",
        "URL of the authority's ACME directory"),
    key("email", Kind::Text, "", "address of a person whom the authority may write to"),
    key("folder", Kind::Text, "/var/lib/weir/acme",
        "where weir keeps the account's key and the certificates; weirs that share the folder order each "
        "certificate once"),
    choice("challenge", kChallenges, "http-01",
           "how weir proves that it controls a name: the authority asks port 80 (http-01) or port 443 "
           "(tls-alpn-01)"),
    key("ca", Kind::Text, "",
        "PEM file: the authorities that sign the directory's own certificate; absent: the system's"),
    table("external_account", schema::kExternalAccount,
          "an account that you made at the authority's web site, if it demands one"),
    key("retry", Kind::Duration, "2min",
        "pause after a failed order; doubles with every further failure, up to 6 hours"),
};

constexpr KeySpec kExternalAccountKeys[] = {
    required("kid", Kind::Text, "the account's name (EAB key id)"),
    required("hmac_key", Kind::Text,
             "the account's secret (EAB HMAC key) in base64url, as the authority shows it"),
};

constexpr KeySpec kHttp2Keys[] = {
    whole("max_streams", 1, 10'000, "100", "requests that one connection may have open at once"),
    key("stream_window", Kind::Size, "64KiB", "bytes of a request's body that weir holds for one stream"),
    key("connection_window", Kind::Size, "1MiB", "the same for all streams of a connection together"),
    key("resets", Kind::Rate, "100/10s",
        "how many requests a client may cancel, or break by a fault, in any such period; weir ends the "
        "connection of "
        "a client that exceeds it"),
    key("ping", Kind::Duration, "30s",
        "silence of a client, while requests are open, after which weir asks for a sign of life; after the "
        "same time "
        "again weir ends the connection"),
};

}  // namespace

namespace schema {
constinit const TableSpec kListener{kListenerKeys}, kTls{kTlsKeys}, kCertificate{kCertificateKeys},
    kHttp2{kHttp2Keys}, kAcme{kAcmeKeys}, kExternalAccount{kExternalAccountKeys};
}  // namespace schema

}  // namespace weir::config
