// Tests the exact messages about mistakes in settings of the server, of clients and of the state.
#include "unit/config/wrong_configuration.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

const WrongConfiguration kWrongSections[] = {
    {"SyntaxOfAString",
     "[server]\nworkers = \"two\n",
     {"weir.toml:2: found a quote that is not closed on its line; write workers = \"two\""}},
    {"SyntaxOfAKey", "[server]\nworkers\n", {"weir.toml:2: found no = after workers; write workers = value"}},
    {"KeyTwice",
     "[server]\nworkers = 1\nworkers = 2\n",
     {"weir.toml:3: found the key workers a second time; keep one of the two"}},
    {"EmptyFile",
     "",
     {"weir.toml:1: listener: missing; expected at least one [[listener]] with an address",
      "weir.toml:1: route: missing; expected at least one [[route]]"}},
    {"NoRoute",
     "[[listener]]\naddress = \"127.0.0.1:0\"\n",
     {"weir.toml:1: route: missing; expected at least one [[route]]"}},
    {"NoListener",
     "[[upstream]]\nname = \"api\"\nservers = [\"a:1\"]\n[[route]]\nupstream = \"api\"\n",
     {"weir.toml:1: listener: missing; expected at least one [[listener]] with an address"}},
    {"TableInPlaceOfList",
     "listener = { address = \"127.0.0.1:0\" }\nroute = []\n",
     {"weir.toml:1: listener: found a table; expected a list of tables: write [[listener]] instead of "
      "[listener]",
      "weir.toml:2: route: missing; expected at least one [[route]]"}},
    {"TableInThePlural",
     "[[listeners]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = {}\n",
     {"weir.toml:1: listeners: unknown key; write [[listener]] instead of [[listeners]]",
      "weir.toml:1: listener: missing; expected at least one [[listener]] with an address"}},
    {"ServerIsAList",
     "server = []\n[[listener]]\naddress = \"a:1\"\n[[route]]\nrespond = {}\n",
     {"weir.toml:1: server: found a list; expected a table"}},
    {"UnknownKeyWithoutASimilarOne",
     with("[admin]\naddress = \"127.0.0.1:1\"\nzzzzzzzz = 1\n"),
     {"weir.toml:13: admin.zzzzzzzz: unknown key; expected one of \"address\", \"token\", \"top\""}},
    {"WorkersNegative",
     with("[server]\nworkers = -1\n"),
     {"weir.toml:12: server.workers: found -1; expected a whole number from 0 to 256"}},
    {"WorkersAString",
     with("[server]\nworkers = \"two\"\n"),
     {"weir.toml:12: server.workers: found a string; expected a whole number from 0 to 256"}},
    {"WorkersAFraction",
     with("[server]\nworkers = 1.5\n"),
     {"weir.toml:12: server.workers: found a fraction; expected a whole number from 0 to 256"}},
    {"DrainWithoutUnit",
     with("[server]\ndrain = \"30\"\n"),
     {"weir.toml:12: server.drain: \"30\" is not a duration; write drain = \"30s\""}},
    {"DrainANumber",
     with("[server]\ndrain = 30\n"),
     {"weir.toml:12: server.drain: found a whole number; expected a duration such as \"10s\": write drain "
      "= \"30s\""}},
    {"DrainDelayANumber",
     with("[server]\ndrain_delay = 5\n"),
     {"weir.toml:12: server.drain_delay: found a whole number; expected a duration such as \"10s\": write "
      "drain_delay = \"5s\""}},
    {"DeadlineWithoutUnit",
     with("[server]\nidle_timeout = \"5\"\n"),
     {"weir.toml:12: server.idle_timeout: \"5\" is not a duration; write idle_timeout = \"5s\""}},
    {"DeadlineOfZero",
     with("[server]\nidle_timeout = \"0s\"\n"),
     {"weir.toml:12: server.idle_timeout: found \"0s\"; expected a duration above zero"}},
    {"NameServersWithoutAnAddress",
     with("[server]\nnameservers = [\"10.0.0.53\", \"dns.test:53\", \"127.0.0.1:0\"]\n"),
     {"weir.toml:12: server.nameservers: found \"dns.test:53\"; expected the IP address of a name server "
      "such "
      "as \"10.0.0.53\", or with a port \"127.0.0.1:5353\" or \"[::1]:5353\"",
      "weir.toml:12: server.nameservers: found \"127.0.0.1:0\"; expected the IP address of a name server "
      "such "
      "as \"10.0.0.53\", or with a port \"127.0.0.1:5353\" or \"[::1]:5353\""}},
    {"NameServersEmpty",
     with("[server]\nnameservers = []\n"),
     {"weir.toml:12: server.nameservers: found none; expected at least one address, or remove this key to "
      "ask "
      "those of /etc/resolv.conf"}},
    {"TooManyNameServers",
     with("[server]\nnameservers = [\"::1\", \"::2\", \"::3\", \"::4\", \"::5\", \"::6\", \"::7\", \"::8\", "
          "\"::9\"]\n"),
     {"weir.toml:12: server.nameservers: found 9; expected at most 8 name servers"}},
    {"HeaderFamilyUnknown",
     with("[server]\nratelimit_headers = [\"ieft\"]\n"),
     {"weir.toml:12: server.ratelimit_headers: found \"ieft\"; did you mean \"ietf\"?"}},
    {"HeaderFamiliesAString",
     with("[server]\nratelimit_headers = \"x\"\n"),
     {"weir.toml:12: server.ratelimit_headers: found a string; expected a list of strings: write "
      "ratelimit_headers = [\"x\"]"}},
    {"HeaderFamiliesWithANumber",
     with("[server]\nratelimit_headers = [\"x\", 1]\n"),
     {"weir.toml:12: server.ratelimit_headers: found a list with a whole number in it; expected a list of "
      "strings"}},
    {"ForwardedAString",
     with("[server]\nforwarded = \"yes\"\n"),
     {"weir.toml:12: server.forwarded: found a string; expected true or false: write forwarded = true"}},
    {"UnderscoresAString",
     with("[server]\nunderscores_in_headers = \"on\"\n"),
     {"weir.toml:12: server.underscores_in_headers: found a string; expected true or false: write "
      "underscores_in_headers = true"}},
    {"HeadTooSmall",
     with("[server]\nmax_head = \"100B\"\n"),
     {"weir.toml:12: server.max_head: found 100 bytes; expected a size from 1KiB to 1MiB"}},
    {"HeadTooLarge",
     with("[server]\nmax_head = \"1GiB\"\n"),
     {"weir.toml:12: server.max_head: found 1073741824 bytes; expected a size from 1KiB to 1MiB"}},
    {"BodyOfZero",
     with("[server]\nmax_body = 0\n"),
     {"weir.toml:12: server.max_body: found 0; expected a size above zero, or remove this key for no limit"}},
    {"BodyNegative",
     with("[server]\nmax_body = -5\n"),
     {"weir.toml:12: server.max_body: found -5; expected a size such as \"64KiB\""}},
    {"BodyWithoutUnit",
     with("[server]\nmax_body = \"10 MB\"\n"),
     {"weir.toml:12: server.max_body: \"10 MB\" is not a size; write max_body = \"10MB\""}},
    {"LogLevelUnknown",
     with("[log]\nlevel = \"inf\"\n"),
     {"weir.toml:12: log.level: found \"inf\"; did you mean \"info\"?"}},
    {"LogFileEmpty",
     with("[log]\naccess = \"\"\n"),
     {"weir.toml:12: log.access: found \"\"; expected a file, \"-\" or \"off\""}},
    {"AdminWithoutAddress",
     with("[admin]\ntoken = \"t\"\n"),
     {"weir.toml:11: admin.address: missing; expected an address such as \"127.0.0.1:8080\": address of the "
      "admin listener; beyond loopback it needs a token"}},
    {"AdminOnAPublicAddressWithoutToken",
     with("[admin]\naddress = \"0.0.0.0:9900\"\n"),
     {"weir.toml:11: admin.token: missing; expected a token, because 0.0.0.0:9900 can be reached from other "
      "machines: set token = \"${WEIR_ADMIN_TOKEN}\", or listen on address = \"127.0.0.1:9900\" or "
      "\"unix:/path\""}},
    {"AdminTokenWithBlanks",
     with("[admin]\naddress = \"127.0.0.1:9900\"\ntoken = \"a b\"\n"),
     {"weir.toml:13: admin.token: found blanks, line breaks or non-ASCII characters; expected visible ASCII, "
      "which fits in an Authorization header"}},
    {"LogOfNoFields",
     with("[log]\nfields = []\n"),
     {"weir.toml:12: log.fields: found none; expected names of fields, or access = \"off\" for no log"}},
    {"SnapshotNamesTheConfiguration",
     with("[state.memory]\nsnapshot = \"./weir.toml\"\n"),
     {"weir.toml:12: state.memory.snapshot: found \"weir.toml\", which is the configuration or a file that "
      "it names; expected a separate file, because weir overwrites it"}},
    {"SnapshotNamesTheLog",
     with("[log]\naccess = \"a\"\n[state.memory]\nsnapshot = \"a\"\n"),
     {"weir.toml:14: state.memory.snapshot: found \"a\", which is the configuration or a file that it names; "
      "expected a separate file, because weir overwrites it"}},
    {"AdminOnAPublicIpv6AddressWithoutToken",
     with("[admin]\naddress = \"[::]:9900\"\n"),
     {"weir.toml:11: admin.token: missing; expected a token, because [::]:9900 can be reached from other "
      "machines: set token = \"${WEIR_ADMIN_TOKEN}\", or listen on address = \"127.0.0.1:9900\" or "
      "\"unix:/path\""}},
    {"AdminOnAPublicAddressWithEmptyToken",
     with("[admin]\naddress = \"10.0.0.1:9900\"\ntoken = \"\"\n"),
     {"weir.toml:13: admin.token: missing; expected a token, because 10.0.0.1:9900 can be reached from other "
      "machines: set token = \"${WEIR_ADMIN_TOKEN}\", or listen on address = \"127.0.0.1:9900\" or "
      "\"unix:/path\""}},
    {"ListenerWithoutPort",
     with("[[listener]]\naddress = \"localhost\"\n"),
     {"weir.toml:12: listener[#2].address: \"localhost\" is not an address: the port is missing, as in "
      "localhost:8080"}},
    {"ListenerPortTooLarge",
     with("[[listener]]\naddress = \"localhost:65536\"\n"),
     {"weir.toml:12: listener[#2].address: \"localhost:65536\" is not an address: the port 65536 is above "
      "65535"}},
    {"ListenerTwice",
     with("[[listener]]\naddress = \"127.0.0.1:8080\"\n"),
     {"weir.toml:12: listener[#2].address: found \"127.0.0.1:8080\", which collides with \"127.0.0.1:8080\" "
      "on line 2; expected another address"}},
    {"RateWithoutTime",
     with("[server]\nmin_rate_grace = \"0s\"\n"),
     {"weir.toml:12: server.min_rate_grace: found \"0s\"; expected a duration above zero"}},
    {"Http2WithoutTls",
     with("[[listener]]\naddress = \"a:1\"\nprotocols = [\"http/1.1\", \"h2\"]\n"),
     {"weir.toml:13: listener[#2].protocols: found \"h2\" without tls; write \"h2c\", which is HTTP/2 "
      "without TLS, or add tls"}},
    {"Http2WithoutTlsOverTls",
     with("[[listener]]\naddress = \"a:1\"\nprotocols = [\"h2c\"]\ntls = { certificates = [] }\n"),
     {"weir.toml:13: listener[#2].protocols: found \"h2c\" with tls; write \"h2\", which is HTTP/2 over "
      "TLS",
      "weir.toml:14: listener[#2].tls.certificates: found none; expected at least one { cert = \"…\", key = "
      "\"…\" }"}},
    {"ProtocolUnknown",
     with("[[listener]]\naddress = \"a:1\"\nprotocols = [\"http/1.1\", \"h3\"]\n"),
     {"weir.toml:13: listener[#2].protocols: found \"h3\"; expected one of \"http/1.1\", \"h2c\""}},
    {"ProtocolsEmpty",
     with("[[listener]]\naddress = \"a:1\"\nprotocols = []\n"),
     {"weir.toml:13: listener[#2].protocols: found none; expected \"http/1.1\", \"h2\" or both"}},
    {"Http2WindowTooSmall",
     with("[[listener]]\naddress = \"a:1\"\nhttp2 = { stream_window = \"16383B\" }\n"),
     {"weir.toml:13: listener[#2].http2.stream_window: found 16383 bytes; expected a size from 16KiB to "
      "1GiB"}},
    {"Http2WindowTooLarge",
     with("[[listener]]\naddress = \"a:1\"\nhttp2 = { connection_window = \"1025MiB\" }\n"),
     {"weir.toml:13: listener[#2].http2.connection_window: found 1074790400 bytes; expected a size from "
      "16KiB "
      "to 1GiB"}},
    {"Http2WithoutStreams",
     with("[[listener]]\naddress = \"a:1\"\nhttp2 = { max_streams = 0, ping = \"0s\" }\n"),
     {"weir.toml:13: listener[#2].http2.max_streams: found 0; expected a whole number from 1 to 10000",
      "weir.toml:13: listener[#2].http2.ping: found \"0s\"; expected a duration above zero"}},
    {"TlsWithoutCertificates",
     with("[[listener]]\naddress = \"a:1\"\ntls = {}\n"),
     {"weir.toml:13: listener[#2].tls.certificates: missing; expected a list of tables: certificates; weir "
      "chooses by the name that the client asks for and by the keys that the client can verify; the first is "
      "the default"}},
    {"TlsWithNoCertificate",
     with("[[listener]]\naddress = \"a:1\"\ntls = { certificates = [] }\n"),
     {"weir.toml:13: listener[#2].tls.certificates: found none; expected at least one { cert = \"…\", key = "
      "\"…\" }"}},
    {"TlsCertificateMissing",
     with("[[listener]]\naddress = \"a:1\"\ntls = { certificates = [{ cert = \"/nowhere/edge.crt\", key = "
          "\"/nowhere/edge.key\" }] }\n"),
     {"weir.toml:13: listener[#2].tls.certificates[#1].cert: \"/nowhere/edge.crt\" cannot be read: No such "
      "file or directory; expected a PEM file",
      "weir.toml:13: listener[#2].tls.certificates[#1].key: \"/nowhere/edge.key\" cannot be read: No such "
      "file or directory; expected a PEM file"}},
    {"TlsCertificateWithoutKey",
     with("[[listener]]\naddress = \"a:1\"\ntls = { certificates = [{ cert = \"/nowhere/edge.crt\" }] }\n"),
     {"weir.toml:13: listener[#2].tls.certificates[#1].key: missing; expected a PEM file with its "
      "private key",
      "weir.toml:13: listener[#2].tls.certificates[#1].cert: \"/nowhere/edge.crt\" cannot be read: No such "
      "file or directory; expected a PEM file"}},
    {"TlsVersionTooOld",
     with("[[listener]]\naddress = \"a:1\"\n[listener.tls]\ncertificates = [{ cert = \"/nowhere\", key = "
          "\"/nowhere\" }]\nmin_version = \"1.0\"\n"),
     {"weir.toml:14: listener[#2].tls.certificates[#1].cert: \"/nowhere\" cannot be read: No such file or "
      "directory; "
      "expected a PEM file",
      "weir.toml:14: listener[#2].tls.certificates[#1].key: \"/nowhere\" cannot be read: No such file or "
      "directory; "
      "expected a PEM file",
      "weir.toml:15: listener[#2].tls.min_version: found \"1.0\"; did you mean \"1.2\"?"}},
    {"ClientAuthorityMissing",
     with("[[listener]]\naddress = \"a:1\"\n[listener.tls]\nclient_ca = \"/nowhere/ca.crt\"\n"
          "certificates = []\n"),
     {"weir.toml:14: listener[#2].tls.client_ca: \"/nowhere/ca.crt\" cannot be read: No such file or "
      "directory; expected a "
      "PEM file",
      "weir.toml:15: listener[#2].tls.certificates: found none; expected at least one { cert = \"…\", key = "
      "\"…\" }"}},
    {"ClientAuthWithoutAuthority",
     with("[[listener]]\naddress = \"a:1\"\n[listener.tls]\nclient_auth = \"optional\"\n"
          "certificates = []\n"),
     {"weir.toml:13: listener[#2].tls.client_ca: missing; expected a file of authorities, because "
      "client_auth is given",
      "weir.toml:15: listener[#2].tls.certificates: found none; expected at least one { cert = \"…\", key = "
      "\"…\" }"}},
    {"RevocationListsWithoutAuthority",
     with("[[listener]]\naddress = \"a:1\"\n[listener.tls]\nclient_crl = \"ca.crl\"\ncertificates = []\n"),
     {"weir.toml:13: listener[#2].tls.client_ca: missing; expected a file of authorities, because client_crl "
      "is given",
      "weir.toml:15: listener[#2].tls.certificates: found none; expected at least one { cert = \"…\", key = "
      "\"…\" }"}},
    {"ClientAuthUnknown",
     with("[[listener]]\naddress = \"a:1\"\n[listener.tls]\nclient_auth = \"required\"\n"
          "certificates = []\n"),
     {"weir.toml:14: listener[#2].tls.client_auth: found \"required\"; did you mean \"require\"?",
      "weir.toml:15: listener[#2].tls.certificates: found none; expected at least one { cert = \"…\", key = "
      "\"…\" }"}},
    {"TrustedHostBits",
     with("[client]\ntrusted_proxies = [\"10.0.0.1/8\"]\n"),
     {"weir.toml:12: client.trusted_proxies: found \"10.0.0.1/8\"; expected an address, a block such as "
      "\"10.0.0.0/8\" without bits past its prefix, or \"unix:\""}},
    {"TrustedName",
     with("[client]\ntrusted_proxies = [\"10.0.0.0/8\", \"proxy.local\"]\n"),
     {"weir.toml:12: client.trusted_proxies: found \"proxy.local\"; expected an address, a block such as "
      "\"10.0.0.0/8\" without bits past its prefix, or \"unix:\""}},
    {"TrustedFieldOfAnyName",
     with("[client]\ntrusted_fields = [\"*\"]\n"),
     {"weir.toml:12: client.trusted_fields: found \"*\"; expected a header name such as \"X-Auth-User\", or "
      "\"X-Auth-*\" for all names with this prefix"}},
    {"TrustedFieldThatIsNoName",
     with("[client]\ntrusted_fields = [\"X-*-User\"]\n"),
     {"weir.toml:12: client.trusted_fields: found \"X-*-User\"; expected a header name such as "
      "\"X-Auth-User\", or \"X-Auth-*\" for all names with this prefix"}},
    {"PrefixTooLong",
     with("[client]\nipv6_prefix = 129\n"),
     {"weir.toml:12: client.ipv6_prefix: found 129; expected a whole number from 1 to 128"}},
    {"ApiKeyFromTwoPlaces",
     with("[client]\napi_key = { header = \"A\", bearer = true }\n"),
     {"weir.toml:12: client.api_key: found 2 sources; expected one: { header = \"…\" }, { query = \"…\" } or "
      "{ bearer = true }"}},
    {"ApiKeyFromNowhere",
     with("[client]\napi_key = {}\n"),
     {"weir.toml:12: client.api_key: found 0 sources; expected one: { header = \"…\" }, { query = \"…\" } or "
      "{ bearer = true }"}},
    {"ApiKeyFromACookie",
     with("[client]\napi_key = { cookie = \"k\" }\n"),
     {"weir.toml:12: client.api_key.cookie: unknown key; expected one of \"header\", \"query\", \"bearer\""}},
    {"ApiKeyAString",
     with("[client]\napi_key = \"X-API-Key\"\n"),
     {"weir.toml:12: client.api_key: found a string; expected a table: write api_key = { header = "
      "\"X-API-Key\" }"}},
    {"UserHeaderNoToken",
     with("[client]\nuser = { header = \"X User\" }\n"),
     {"weir.toml:12: client.user.header: found \"X User\"; expected a name such as \"X-User-ID\""}},
    {"UserClaim",
     with("[client]\nuser = { claim = \"sub\" }\n"),
     {"weir.toml:12: client.user.claim: found without [client] jwt, which says how weir verifies tokens; "
      "expected [client] jwt = { … }"}},
    {"TierOfAClaimWithoutJwt",
     with("[client]\ntier = { claim = \"plan\" }\n"),
     {"weir.toml:12: client.tier.claim: found without [client] jwt, which says how weir verifies tokens; "
      "expected [client] jwt = { … }"}},
    {"TierOfAHeader",
     with("[client]\njwt = { algorithm = \"HS256\", secret = \"0123456789abcdef0123456789abcdef\" }\ntier = "
          "{ claim "
          "= \"\" }\n"),
     {"weir.toml:13: client.tier.claim: found \"\"; expected a name such as \"plan\""}},
    {"RouteOfATierOfATokenAndOfClaims",
     "[[listener]]\naddress = \"127.0.0.1:0\"\n[client]\ntier = { claim = \"plan\" }\njwt = { algorithm = "
     "\"HS256\", secret = \"0123456789abcdef0123456789abcdef\" }\n[[route]]\nrespond = {}\nmatch = { tier = "
     "\"a\", "
     "claims = { a = true } }\n",
     {"weir.toml:8: route[#1].match.tier: found in a [[route]], which weir chooses before it verifies "
      "tokens; "
      "expected it in a [[rule]], because [client] tier is a claim",
      "weir.toml:8: route[#1].match.claims: found in a [[route]], which weir chooses before it verifies "
      "tokens; expected it in a [[rule]]"}},
    {"Jwt",
     with("[client]\njwt = { algorithm = \"ES256\" }\n"),
     {"weir.toml:12: client.jwt.public_key: missing; expected the PEM file of the public key that ES256 "
      "verifies with, or jwks with a file or the URL of keys"}},
    {"JwtWithoutAlgorithm",
     with("[client]\njwt = { secret = \"s\" }\n"),
     {"weir.toml:12: client.jwt.algorithm: missing; expected the algorithm of the signature, such as "
      "\"ES256\", or jwks with a file or the URL of keys"}},
    {"JwtOfAlgorithmNone",
     with("[client]\njwt = { algorithm = \"none\" }\n"),
     {"weir.toml:12: client.jwt.algorithm: found \"none\"; expected one of \"HS256\", \"HS384\", \"HS512\", "
      "\"RS256\", \"RS384\", \"RS512\", \"ES256\", \"ES384\", \"ES512\", \"PS256\", \"PS384\", \"PS512\", "
      "\"EdDSA\""}},
    {"JwtWithTwoKeys",
     with("[client]\njwt = { jwks = \"/nowhere/keys.json\", public_key = \"a.pem\" }\n"),
     {"weir.toml:12: client.jwt.public_key: not used beside jwks; expected jwks instead",
      "weir.toml:12: client.jwt.jwks: \"/nowhere/keys.json\" cannot be read: No such file or directory; "
      "expected the issuer's keys, as a JWK set in JSON"}},
    {"JwksUrlWithoutTls",
     with("[client]\njwt = { jwks = \"http://login.example.com/keys\" }\n"),
     {"weir.toml:12: client.jwt.jwks: found \"http://login.example.com/keys\"; expected https://, because "
      "others can change an answer without TLS; fetch = { allow_http = true } permits it"}},
    {"JwksUrlOfAnotherScheme",
     with("[client]\njwt = { jwks = \"ftp://login.example.com/keys\" }\n"),
     {"weir.toml:12: client.jwt.jwks: found \"ftp://login.example.com/keys\"; expected a URL that begins "
      "with "
      "https://"}},
    {"FetchOfAFile",
     with("[client]\njwt = { algorithm = \"HS256\", secret = \"0123456789abcdef0123456789abcdef\", fetch = { "
          "wait "
          "= \"1s\" } }\n"),
     {"weir.toml:12: client.jwt.fetch: not used without a URL; expected jwks = \"https://…\" beside it"}},
    {"FetchWithoutTimes",
     with("[client.jwt]\njwks = \"https://a/keys\"\n[client.jwt.fetch]\nrefresh = \"0s\"\ncooldown = "
          "\"0s\"\ntimeout = \"0s\"\nwait = \"0s\"\nca = \"/nowhere/ca.pem\"\nmax_size = 0\n"),
     {"weir.toml:14: client.jwt.fetch.refresh: found \"0s\"; expected a duration above zero",
      "weir.toml:15: client.jwt.fetch.cooldown: found \"0s\"; expected a duration above zero",
      "weir.toml:16: client.jwt.fetch.timeout: found \"0s\"; expected a duration above zero",
      "weir.toml:17: client.jwt.fetch.wait: found \"0s\"; expected a duration above zero",
      "weir.toml:18: client.jwt.fetch.ca: \"/nowhere/ca.pem\" cannot be read: No such file or directory; "
      "expected a PEM file",
      "weir.toml:19: client.jwt.fetch.max_size: found 0; expected a size above zero"}},
    {"FetchesOfOneUrlThatDiffer",
     with("[[client.jwt]]\nissuer = \"a\"\njwks = \"https://a/keys\"\n[[client.jwt]]\nissuer = "
          "\"b\"\njwks = \"https://a/keys\"\nfetch = { refresh = \"1h\" }\n"),
     {"weir.toml:17: client.jwt[#2].fetch: differs from that of another issuer with the same jwks; expected "
      "the same"}},
    {"JwtOfSeveralIssuersWithoutNames",
     with("[[client.jwt]]\nalgorithm = \"HS256\"\nsecret = \"0123456789abcdef0123456789abcdef\"\n"
          "[[client.jwt]]\nissuer = \"a\"\nalgorithm = \"HS256\"\nsecret = "
          "\"0123456789abcdef0123456789abcdef\"\n[[client.jwt]]\nissuer = \"a\"\nalgorithm = "
          "\"HS256\"\nsecret = \"0123456789abcdef0123456789abcdef\"\n"),
     {"weir.toml:11: client.jwt[#1].issuer: missing; expected the iss of these tokens, because there are "
      "several issuers",
      "weir.toml:19: client.jwt[#3].issuer: found \"a\" twice; expected another issuer in each"}},
    {"JwtListEmpty",
     with("[client]\njwt = []\n"),
     {"weir.toml:12: client.jwt: found none; expected at least one { issuer = \"…\", jwks = \"…\" }"}},
    {"JwtSecretOfAPublicAlgorithm",
     with("[client]\njwt = { algorithm = \"RS256\", secret = \"s\" }\n"),
     {"weir.toml:12: client.jwt.secret: not used by RS256; expected public_key instead",
      "weir.toml:12: client.jwt.public_key: missing; expected the PEM file of the public key that RS256 "
      "verifies with, or jwks with a file or the URL of keys"}},
    {"JwtKeyFileAbsent",
     with("[client]\njwt = { algorithm = \"RS256\", public_key = \"/nowhere/jwt.pem\" }\n"),
     {"weir.toml:12: client.jwt.public_key: \"/nowhere/jwt.pem\" cannot be read: No such file or directory; "
      "expected a public key in "
      "PEM"}},
    {"JwtSecretTooShort",
     with("[client]\njwt = { algorithm = \"HS256\", secret = \"hunter2\" }\n"),
     {"weir.toml:12: client.jwt.secret: is shorter than the hash of HS256, which needs 32 bytes (RFC 7518 "
      "§3.2)"}},
    {"JwtSecretEmpty",
     with("[client]\njwt = { algorithm = \"HS256\", secret = \"\" }\n"),
     {"weir.toml:12: client.jwt.secret: found \"\"; expected a secret"}},
    {"UnknownKeysUnknown",
     with("[client]\nunknown_keys = \"rejct\"\n"),
     {"weir.toml:12: client.unknown_keys: found \"rejct\"; did you mean \"reject\"?"}},
    {"KeysFileMissing",
     with("[client]\nkeys = \"/nowhere/keys.toml\"\n"),
     {"weir.toml:12: client.keys: \"/nowhere/keys.toml\" cannot be read: No such file or directory; expected "
      "a TOML file of [[key]] "
      "tables"}},
    {"StoreUnknown",
     with("[state]\nstore = \"rediss\"\n"),
     {"weir.toml:12: state.store: found \"rediss\"; did you mean \"redis\"?"}},
    {"StoreRedisWithoutRedis",
     with("[state]\nstore = \"redis\"\n"),
     {"weir.toml:12: state.store: found \"redis\" without a Redis; expected redis = { url = \"redis://…\" } "
      "beside it"}},
    {"RedisLeaseTooShort",
     with("[state]\nredis = { url = \"redis://a\", lease_time = \"999ms\" }\n"),
     {"weir.toml:12: state.redis.lease_time: found 999ms; expected 1s to 1h"}},
    {"RedisLeaseTooLong",
     with("[state]\nredis = { url = \"redis://a\", lease_time = \"61min\" }\n"),
     {"weir.toml:12: state.redis.lease_time: found 61min; expected 1s to 1h"}},
    {"RedisLeaseReturn",
     with("[state]\nredis = { url = \"redis://a\", lease_return = \"99ms\" }\n"),
     {"weir.toml:12: state.redis.lease_return: found 99ms; expected 100ms to 1min"}},
    {"LogThatIsOffInCapitals",
     with("[log]\naccess = \"OFF\"\n"),
     {"weir.toml:12: log.access: found \"OFF\", which would create a file of that name; expected \"off\" for "
      "no "
      "log, or \"./OFF\" for the file"}},
    {"LogToAStream",
     with("[log]\naccess = \"StdErr\"\n"),
     {"weir.toml:12: log.access: found \"StdErr\", which would create a file of that name; expected \"-\" "
      "for "
      "standard output, or \"./StdErr\" for the file"}},
    {"PasswordBesideThatOfTheUrl",
     with("[state]\nredis = { url = \"redis://u:hunter2@a\", password = \"hunter3\" }\n"),
     {"weir.toml:12: state.redis.password: found beside a user and password in url; expected one of the "
      "two"}},
    {"UserWithoutAPassword",
     with("[state]\nredis = { url = \"redis://a\", username = \"weir\" }\n"),
     {"weir.toml:12: state.redis.password: missing; expected the password of username"}},
    {"PasswordInANode",
     with("[state]\nredis = { url = \"redis://a\", topology = \"cluster\", nodes = "
          "[\"redis://u:hunter2@a:1\"] }\n"),
     {"weir.toml:12: state.redis.nodes: found an address with more than host and port; expected "
      "\"host:port\", "
      "and the password in url or password"}},
    {"RedisWithoutUrl",
     with("[state]\nredis = { timeout = \"5ms\" }\n"),
     {"weir.toml:12: state.redis.url: missing; expected a string: "
      "redis[s]://[user:password@]host[:port][/database], or unix://[user:password@]/path[?db=N]"}},
    {"RedisByTls",
     with("[state]\nredis = { url = \"rediss://cache\", tls = { ca = \"/nowhere/ca.crt\" } }\n"),
     {"weir.toml:12: state.redis.tls.ca: \"/nowhere/ca.crt\" cannot be read: No such file or directory; "
      "expected a PEM file"}},
    {"RedisTlsOfACertificateWithoutItsKey",
     with("[state]\nredis = { url = \"rediss://cache\", tls = { cert = \"/nowhere/weir.crt\" } }\n"),
     {"weir.toml:12: state.redis.tls.cert: \"/nowhere/weir.crt\" cannot be read: No such file or directory; "
      "expected a PEM file",
      "weir.toml:12: state.redis.tls.key: missing; expected a PEM file, because cert and key are needed "
      "together"}},
    {"RedisTlsWithoutATlsUrl",
     with("[state]\nredis = { url = \"redis://cache\", tls = { verify = false } }\n"),
     {"weir.toml:12: state.redis.tls: found without TLS; expected a rediss:// url, or remove this key"}},
    {"RedisTimeoutZero",
     with("[state]\nredis = { url = \"redis://a\", timeout = \"0ms\" }\n"),
     {"weir.toml:12: state.redis.timeout: found \"0ms\"; expected a duration above zero"}},
    {"RedisPrefix",
     with("[state]\nredis = { url = \"redis://a\", prefix = \"{x}\" }\n"),
     {"weir.toml:12: state.redis.prefix: found \"{x}\"; expected 1 to 128 printable ASCII characters but \" "
      "\\ { and }"}},
    {"SentinelWithoutSentinels",
     with("[state]\nredis = { url = \"redis://a\", topology = \"sentinel\" }\n"),
     {"weir.toml:12: state.redis.sentinels: missing; expected a list of addresses such as \"10.0.0.1:26379\"",
      "weir.toml:12: state.redis.master: missing; expected the name of the master at the Sentinels"}},
    {"SentinelWithWrongAddresses",
     with("[state]\nredis = { url = \"unix:///a\", topology = \"sentinel\", master = \"m\", sentinels = "
          "[\"unix:/b\"], sentinel_user = \"u\" }\n"),
     {"weir.toml:12: state.redis.url: found a unix socket; expected redis://, because Sentinels report hosts "
      "and ports",
      "weir.toml:12: state.redis.sentinels: found \"unix:/b\"; expected \"host:port\"",
      "weir.toml:12: state.redis.sentinel_password: missing; expected the password of sentinel_user"}},
    {"SentinelWithNoAddress",
     with("[state]\nredis = { url = \"redis://a\", topology = \"sentinel\", master = \"m\", sentinels = [] "
          "}\n"),
     {"weir.toml:12: state.redis.sentinels: found none; expected at least one"}},
    {"SentinelsWithoutTheirTopology",
     with("[state]\nredis = { url = \"redis://a\", sentinels = [\"a:1\"], master = \"m\" }\n"),
     {"weir.toml:12: state.redis.sentinels: found without topology = \"sentinel\"; add it, or remove this "
      "key",
      "weir.toml:12: state.redis.master: found without topology = \"sentinel\"; add it, or remove this key"}},
    {"RedisCluster",
     with("[state]\nredis = { url = \"redis://a\", topology = \"cluster\" }\n"),
     {"weir.toml:12: state.redis.nodes: missing; expected a list of addresses such as \"10.0.0.1:6379\""}},
    {"RedisClusterHasOneDatabase",
     with("[state]\nredis = { url = \"redis://a/2\", topology = \"cluster\", nodes = [\"a\"] }\n"),
     {"weir.toml:12: state.redis.url: found database 2; expected none, because a cluster has only database 0",
      "weir.toml:12: state.redis.nodes: \"a\" is not an address: the port is missing, as in a:8080"}},
    {"NodesWithoutACluster",
     with("[state]\nredis = { url = \"redis://a\", nodes = [\"a:1\"] }\n"),
     {"weir.toml:12: state.redis.nodes: found without topology = \"cluster\"; add it, or remove this key"}},
    {"JitterWithoutPercent",
     with("[server]\nretry_after_jitter = \"10\"\n"),
     {"weir.toml:12: server.retry_after_jitter: found \"10\"; expected a share from \"0%\" to \"100%\": "
      "write retry_after_jitter = \"10%\""}},
    {"JitterAbove100",
     with("[server]\nretry_after_jitter = \"101%\"\n"),
     {"weir.toml:12: server.retry_after_jitter: found \"101%\"; expected a share from \"0%\" to \"100%\""}},
    {"AcmeWithoutTheTable",
     with("[[listener]]\naddress = \"a:1\"\ntls = { certificates = [{ acme = [\"a.example\"] }] }\n"),
     {"weir.toml:13: listener[#2].tls.certificates[#1].acme: found without the table [acme]; expected [acme] "
      "with accept_terms = true"}},
    {"AcmeWithoutTheTerms",
     with("[acme]\n"),
     {"weir.toml:11: acme.accept_terms: missing; expected true or false: true: you accept the terms of "
      "service "
      "of the authority"}},
    {"AcmeTermsNotAccepted",
     with("[acme]\naccept_terms = false\n"),
     {"weir.toml:12: acme.accept_terms: found false; expected true, which says that you accept the "
      "authority's "
      "terms of service, or remove the table [acme]"}},
    {"AcmeValuesOutOfRange",
     with("[acme]\naccept_terms = true\ndirectory = \"http://a.example/dir\"\nemail = \"admin\"\n"
          "ca = \"/nowhere/ca.crt\"\nchallenge = \"dns-01\"\nretry = \"0s\"\n"),
     {"weir.toml:13: acme.directory: found \"http://a.example/dir\"; expected https://, because others can "
      "change an answer without TLS",
      "weir.toml:14: acme.email: found \"admin\"; expected one address such as \"admin@example.com\"",
      "weir.toml:15: acme.ca: \"/nowhere/ca.crt\" cannot be read: No such file or directory; expected a PEM "
      "file",
      "weir.toml:16: acme.challenge: found \"dns-01\"; expected one of \"http-01\", \"tls-alpn-01\"",
      "weir.toml:17: acme.retry: found \"0s\"; expected a duration above zero"}},
    {"AcmeExternalAccountWithoutASecret",
     with("[acme]\naccept_terms = true\nexternal_account = { kid = \"\", hmac_key = \"a+b/\" }\n"),
     {"weir.toml:13: acme.external_account.kid: found an empty text; expected the account's name",
      "weir.toml:13: acme.external_account.hmac_key: found a text that is not base64url; expected the secret "
      "as "
      "the authority shows it"}},
    {"AcmeNames",
     with("[acme]\naccept_terms = true\n[[listener]]\naddress = \"a:1\"\n[listener.tls]\ncertificates = [\n"
          "{ acme = [] },\n{ acme = [\"a.example\",\n\"*.example\", \"a.example\"] },\n"
          "{ acme = [\"a.example\"] },\n{ acme = [\"b.example\"], cert = \"x\" }]\n"),
     {"weir.toml:17: listener[#2].tls.certificates[#1].acme: found 0 names; expected 1 to 100 host names",
      "weir.toml:19: listener[#2].tls.certificates[#2].acme: \"*.example\" is a wildcard, which weir cannot "
      "order, because that needs a change in the DNS; expected each host name in full, or cert and key of "
      "another tool's certificate",
      "weir.toml:19: listener[#2].tls.certificates[#2].acme: found \"a.example\" a second time",
      "weir.toml:20: listener[#2].tls.certificates[#3].acme: found \"a.example\" first also in another list "
      "with other names; expected the same list, or another first name, because the first name is the name "
      "of "
      "the certificate's file",
      "weir.toml:21: listener[#2].tls.certificates[#4].cert: found beside acme; expected either acme, with "
      "which weir orders the certificate, or cert and key"}},
    {"CorsWithoutOrigins",
     with("[cors]\ncredentials = true\n"),
     {"weir.toml:11: cors.origins: missing; expected a list of strings: origins of the pages, as browsers "
      "write them; [\"*\"]: all pages"}},
    {"CorsNoOrigin",
     with("[cors]\norigins = []\n"),
     {"weir.toml:12: cors.origins: found none; expected [\"https://app.example.com\"], or remove the table "
      "[cors]"}},
    {"CorsOriginWithAPath",
     with("[cors]\norigins = [\"https://ok.example\",\n\"https://App.example.com/\"]\n"),
     {"weir.toml:13: cors.origins: found \"https://App.example.com/\", which no browser sends as an origin; "
      "write \"https://app.example.com\""}},
    {"CorsOriginWithoutAScheme",
     with("[cors]\norigins = [\"app.example.com\"]\n"),
     {"weir.toml:12: cors.origins: found \"app.example.com\"; expected an origin such as "
      "\"https://app.example.com\", or \"*\" for all"}},
    {"CorsAllBesideOne",
     with("[cors]\norigins = [\"*\", \"https://a.example\"]\n"),
     {"weir.toml:12: cors.origins: found \"*\" beside origins; expected [\"*\"] for all, or a list without "
      "it"}},
    {"CorsCredentialsForAll",
     with("[cors]\norigins = [\"*\"]\ncredentials = true\n"),
     {"weir.toml:13: cors.credentials: found beside origins = [\"*\"], which would let every site read "
      "answers "
      "to your users' cookies; expected a list of origins"}},
    {"TracingWithoutAnEndpoint",
     with("[tracing]\nsample = \"5%\"\n"),
     {"weir.toml:11: tracing.endpoint: missing; expected a string: http:// or https:// address to which weir "
      "posts spans (OTLP over HTTP), usually \"http://127.0.0.1:4318/v1/traces\""}},
    {"TracingEndpointWithoutAScheme",
     with("[tracing]\nendpoint = \"localhost:4317\"\n"),
     {"weir.toml:12: tracing.endpoint: found an address that is no endpoint; expected a URL that begins with "
      "http:// or https://; write one such as \"http://127.0.0.1:4318/v1/traces\""}},
    {"TracingEndpointWithoutAPath",
     with("[tracing]\nendpoint = \"http://localhost:4318\"\n"),
     {"weir.toml:12: tracing.endpoint: found an address that is no endpoint; expected a URL with a path; "
      "write "
      "one such as \"http://127.0.0.1:4318/v1/traces\""}},
    {"TracingHeadersThatWeirWrites",
     with("[tracing]\nendpoint = \"http://a/v1/traces\"\nheaders = { content-length = \"5\" }\n"),
     {"weir.toml:13: tracing.headers.content-length: found \"content-length\", which weir writes itself; "
      "remove "
      "it"}},
    {"TracingShareWithoutPercent",
     with("[tracing]\nendpoint = \"http://a/v1/traces\"\nsample = \"0.01\"\n"),
     {"weir.toml:13: tracing.sample: found \"0.01\"; expected a share from \"0%\" to \"100%\", such as "
      "\"0.5%\""}},
    {"TracingShareAbove100",
     with("[tracing]\nendpoint = \"http://a/v1/traces\"\nsample = \"100.1%\"\n"),
     {"weir.toml:13: tracing.sample: found \"100.1%\"; expected a share from \"0%\" to \"100%\", such as "
      "\"0.5%\""}},
    {"TracingShareWithFourDecimals",
     with("[tracing]\nendpoint = \"http://a/v1/traces\"\nsample = \"0.0001%\"\n"),
     {"weir.toml:13: tracing.sample: found \"0.0001%\"; expected a share from \"0%\" to \"100%\", such as "
      "\"0.5%\""}},
    {"TracingIntervalOfZero",
     with("[tracing]\nendpoint = \"http://a/v1/traces\"\ninterval = \"0s\"\n"),
     {"weir.toml:13: tracing.interval: found \"0us\"; expected from \"10ms\" to \"1min\""}},
    {"TracingAuthorityWithoutTls",
     with("[tracing]\nendpoint = \"http://a/v1/traces\"\nca = \"ca.crt\"\n"),
     {"weir.toml:13: tracing.ca: found with an endpoint that is not https://; remove ca, or write https://"}},
    {"TracingHeaders",
     with("[tracing]\nendpoint = \"http://a/v1/traces\"\nheaders = { \"a b\" = \"c\", d = \"\\n\" }\n"),
     {"weir.toml:13: tracing.headers.a b: found an invalid name; expected a name such as \"Authorization\"",
      "weir.toml:13: tracing.headers.d: found characters that a header cannot contain; expected visible "
      "ASCII"}},
    {"TracingBesideARouteThatWritesTraceparent",
     with("[tracing]\nendpoint = \"http://a/v1/traces\"\n[[route]]\nname = \"r\"\nupstream = \"api\"\n"
          "headers = { request = { set = { Traceparent = \"x\" } } }\n"),
     {"weir.toml:16: route[r].headers.request.set.Traceparent: found \"Traceparent\", which weir writes "
      "itself "
      "because of [tracing]; remove it"}},
    {"MaxKeysZero",
     with("[state]\nmemory = { max_keys = 0 }\n"),
     {"weir.toml:12: state.memory.max_keys: found 0; expected a whole number from 1 to 1073741824"}},
    {"Snapshot",
     with("[state]\nmemory = { snapshot = \"none/weir.state\" }\n"),
     {"weir.toml:12: state.memory.snapshot: found a file in \"none\", which is not a folder; expected a file "
      "that "
      "weir may write"}},
};

class SectionMistakes : public ::testing::TestWithParam<WrongConfiguration> {};

TEST_P(SectionMistakes, ErrorNamesTheLineTheKeyAndTheExpectedValue) {
  EXPECT_THAT(mistakes_in(GetParam().text), ::testing::ElementsAreArray(GetParam().mistakes));
}

INSTANTIATE_TEST_SUITE_P(InvalidConfigurations, SectionMistakes, ::testing::ValuesIn(kWrongSections),
                         [](const auto& wrong) { return wrong.param.name; });

}  // namespace
}  // namespace weir::config::test
