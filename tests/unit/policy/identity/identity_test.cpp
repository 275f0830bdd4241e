#include "weir/policy/identity.hpp"

#include "unit/policy/sample.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

ClientSettings behind_proxies() {
  ClientSettings settings;
  settings.trusted_proxies = {cidr("10.0.0.0/8"), cidr("2001:db8:ffff::/48")};
  settings.user = {Source::Kind::Header, "X-User-ID"};
  settings.org = {Source::Kind::Query, "org"};
  settings.service = {Source::Kind::Cookie, "service"};
  settings.device = {Source::Kind::Header, "X-Device-ID"};
  return settings;
}

std::string client_of(std::string_view peer, std::initializer_list<std::string_view> lines) {
  http::RequestHead head = head_with({});
  for (const auto line : lines)
    head.fields.push_back(
        // the Connection field names X-Forwarded-For
        {"X-Forwarded-For", line, http::FieldId::XForwardedFor, true});
  const auto settings = behind_proxies();
  const auto client = identify(settings, ip(peer), head);
  EXPECT_EQ(client.address, forwarded_client(settings, ip(peer), head.fields));
  return client.address.to_string();
}

TEST(ForwardedClient, AddressThatAClientForgesInAForwardedFieldIsIgnored) {
  struct Case {
    const char* peer;
    std::initializer_list<std::string_view> lines;
    const char* client;
  };
  const Case cases[] = {
      {"203.0.113.7", {"198.51.100.1"}, "203.0.113.7"},  // the peer is not a trusted proxy
      {"10.0.0.1", {}, "10.0.0.1"},
      {"10.0.0.1", {"203.0.113.7"}, "203.0.113.7"},
      // The client may have invented the address on the left.
      {"10.0.0.1", {"198.51.100.1, 203.0.113.7"}, "203.0.113.7"},
      {"10.0.0.1", {"198.51.100.1, 203.0.113.7, 10.9.9.9"}, "203.0.113.7"},  // two trusted proxies
      {"10.0.0.1", {"198.51.100.1", "203.0.113.7"}, "203.0.113.7"},          // several lines form one list
      {"10.0.0.1", {"203.0.113.7", "10.9.9.9"}, "203.0.113.7"},
      // All addresses are trusted, so the leftmost address is the client's.
      {"10.0.0.1", {"10.1.1.1, 10.2.2.2"}, "10.1.1.1"},
      {"10.0.0.1", {"198.51.100.1, rubbish, 10.9.9.9"}, "10.9.9.9"},  // an invalid element ends the search
      {"10.0.0.1", {"198.51.100.1, unknown"}, "10.0.0.1"},
      {"10.0.0.1", {"198.51.100.1", "rubbish"}, "10.0.0.1"},        // an invalid line ends the search
      {"10.0.0.1", {"203.0.113.7,\t10.9.9.9 , ,"}, "203.0.113.7"},  // skips empty elements and white space
      {"10.0.0.1", {"203.0.113.7:4711"}, "203.0.113.7"},
      {"10.0.0.1", {"203.0.113.7:port"}, "10.0.0.1"},
      {"10.0.0.1", {"[2001:db8::1]:443"}, "2001:db8::1"},
      {"10.0.0.1", {"[2001:db8::1]x"}, "10.0.0.1"},
      {"10.0.0.1", {"[203.0.113.7]"}, "10.0.0.1"},
      {"10.0.0.1", {"2001:db8::1"}, "2001:db8::1"},
      {"10.0.0.1", {"fe80::1%eth0"}, "fe80::1"},  // weir drops the zone of the address
      {"10.0.0.1", {"[fe80::1%br-lan.7]:4711"}, "fe80::1"},
      {"10.0.0.1", {"[fe80::1%25eth0]"}, "fe80::1"},
      {"10.0.0.1", {"198.51.100.1, fe80::1%3"}, "fe80::1"},
      {"10.0.0.1", {"fe80::1%"}, "10.0.0.1"},
      {"10.0.0.1", {"fe80::1%eth0%1"}, "10.0.0.1"},
      {"10.0.0.1", {"fe80::1%eth 0"}, "10.0.0.1"},
      {"10.0.0.1", {"203.0.113.7%eth0"}, "10.0.0.1"},
      {"10.0.0.1", {"198.51.100.1, ::ffff:10.0.0.9"}, "198.51.100.1"},  // 10.0.0.9 is trusted
      {"::ffff:10.0.0.1", {"203.0.113.7"}, "203.0.113.7"},
      {"2001:db8:ffff::1", {"203.0.113.7"}, "203.0.113.7"},
      {"2001:db8:fffe::1", {"203.0.113.7"}, "2001:db8:fffe::1"},
  };
  for (const auto& c : cases)
    EXPECT_EQ(client_of(c.peer, c.lines), c.client)
        << c.peer << " [" << testing::PrintToString(std::vector(c.lines));
}

std::string told_by(std::initializer_list<std::string_view> lines) {
  http::RequestHead head = head_with({});
  head.fields.push_back({"X-Forwarded-For", "198.51.100.66", http::FieldId::XForwardedFor, false});
  for (const auto line : lines) head.fields.push_back({"Forwarded", line, http::FieldId::Forwarded, false});
  auto settings = behind_proxies();
  settings.address_field = AddressField::Forwarded;
  return forwarded_client(settings, ip("10.0.0.1"), head.fields).to_string();
}

TEST(ForwardedClient, AddressWithLeadingZerosIsInvalidAndAnIpv4CompatibleAddressIsConverted) {
  ClientSettings settings;
  settings.trusted_proxies = {cidr("10.0.0.0/8")};
  const auto of = [&](std::string_view list) {
    auto head = head_with({});
    head.fields.push_back({"X-Forwarded-For", list, http::FieldId::XForwardedFor, false});
    return forwarded_client(settings, ip("10.0.0.1"), head.fields);
  };
  for (const auto* octal : {"203.0.113.007", "203.000.113.7", "0203.0.113.7", "203.0.113.007:80"})
    EXPECT_EQ(of(octal), ip("10.0.0.1")) << octal;
  for (const auto* v4 : {"::203.0.113.7", "[::203.0.113.7]:80", "::cb00:7107", "::ffff:203.0.113.7"})
    EXPECT_EQ(of(v4), ip("203.0.113.7")) << v4;
  EXPECT_EQ(of("::1"), ip("::1"));
}

TEST(ForwardedClient, ForwardedFieldIsReadIfConfigured) {
  struct Case {
    std::initializer_list<std::string_view> lines;
    const char* client;
  };
  const Case cases[] = {
      {{}, "10.0.0.1"},  // weir does not read X-Forwarded-For
      {{"for=203.0.113.7"}, "203.0.113.7"},
      {{"For=203.0.113.7;proto=https;by=10.0.0.1"}, "203.0.113.7"},
      {{"by=10.0.0.1 ; for=203.0.113.7"}, "203.0.113.7"},
      {{R"(for="203.0.113.7:4711")"}, "203.0.113.7"},
      {{R"(for="[2001:db8::1]:4711")"}, "2001:db8::1"},
      {{R"(for="[2001:db8::1]")"}, "2001:db8::1"},
      {{R"(for="[fe80::1%eth0]:4711")"}, "fe80::1"},
      {{R"(for="fe80::1%eth0")"}, "10.0.0.1"},  // an IPv6 address needs brackets
      {{"for=198.51.100.1, for=203.0.113.7"}, "203.0.113.7"},
      {{"for=198.51.100.1, for=203.0.113.7, for=10.9.9.9"}, "203.0.113.7"},
      {{"for=203.0.113.7", "for=10.9.9.9"}, "203.0.113.7"},
      {{"for=198.51.100.1, for=unknown"}, "10.0.0.1"},
      {{"for=198.51.100.1, for=_hidden, for=10.9.9.9"}, "10.9.9.9"},
      {{"for=198.51.100.1, proto=https"}, "10.0.0.1"},
      {{"for=198.51.100.1;for=203.0.113.7"}, "10.0.0.1"},                 // a repeated parameter is invalid
      {{"for=2001:db8::1"}, "10.0.0.1"},                                  // an IPv6 address needs brackets
      {{R"(for=203.0.113.7;host="a,for=198.51.100.1")"}, "203.0.113.7"},  // a quoted Host may contain a comma
      {{R"(for=203.0.113.7;host="a;for=198.51.100.1")"}, "203.0.113.7"},
      {{R"(for=203.0.113.7;host="a\",for=198.51.100.1;x=\"")"}, "203.0.113.7"},
      {{R"(for=198.51.100.1;x=", for=203.0.113.7)"},
       "203.0.113.7"},  // an open quote to the left of the client's element has no effect
  };
  for (const auto& test : cases)
    EXPECT_EQ(told_by(test.lines), test.client) << (test.lines.size() != 0 ? *test.lines.begin() : "nothing");
}

TEST(Identify, GroupsIpv6AddressesByPrefixAndKeepsIpv4Addresses) {
  ClientSettings settings;
  const auto network = [&](std::string_view peer) {
    return identify(settings, ip(peer), head_with({})).network.to_string();
  };
  EXPECT_EQ(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
  EXPECT_EQ(network("203.0.113.7"), "203.0.113.7");
  EXPECT_EQ(network("::ffff:203.0.113.7"), "203.0.113.7");
  settings.ipv6_prefix = 56;
  EXPECT_EQ(network("2001:db8:1:2ff:3:4:5:6"), "2001:db8:1:200::");
  settings.ipv6_prefix = 128;
  EXPECT_EQ(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2:3:4:5:6");
}

TEST(Identify, Ipv4HostBehindATranslatorOrTunnelIsIdentifiedByItsIpv4Address) {
  ClientSettings settings;
  for (const int prefix : {16, 32, 64, 128}) {
    settings.ipv6_prefix = prefix;
    const auto network = [&](std::string_view peer) { return network_of(settings, ip(peer)).to_string(); };
    for (const char* same :
         {"64:ff9b::203.0.113.7", "::ffff:0:203.0.113.7", "2002:cb00:7107::1", "2002:cb00:7107:9::2",
          "2001:0:4136:e378:8000:63bf:34ff:8ef8", "2001:0:5ef5:79fd:0:1:34ff:8ef8"})
      EXPECT_EQ(network(same), "203.0.113.7") << prefix;
    EXPECT_EQ(network("64:ff9b::203.0.113.8"), "203.0.113.8");
    EXPECT_EQ(network("::ffff:0:203.0.113.8"), "203.0.113.8");
    EXPECT_EQ(network("2002:cb00:7108::1"), "203.0.113.8");
    EXPECT_EQ(network("2001:0:4136:e378:8000:63bf:34ff:8ef7"), "203.0.113.8");
  }
}

TEST(Identify, AddressesOfSharedAndLocalIpv6BlocksAreNotGrouped) {
  ClientSettings settings;
  const auto network = [&](std::string_view peer) { return network_of(settings, ip(peer)).to_string(); };
  for (const char* alone : {"64:ff9b:1::cb00:7107", "64:ff9b:1:cb00:71:700::", "fe80::1", "fe80::2",
                            "febf::1:2:3:4", "::1", "::cb00:7107"})
    EXPECT_EQ(ip(network(alone)), ip(alone));
  // The blocks next to the special blocks above have ordinary addresses.
  for (const auto& [address, whole] : {std::pair{"64:ff9b:2::1", "64:ff9b:2::"},
                                       {"64:ff9b:0:1::1", "64:ff9b:0:1::"},
                                       {"2001:1::1", "2001:1::"},
                                       {"2003::1", "2003::"},
                                       {"fec0::1", "fec0::"},
                                       {"::1:0:0:0:1", "0:0:0:1::"},
                                       {"fd00::1", "fd00::"}})
    EXPECT_EQ(network(address), whole);
}

TEST(Identify, ReadsUserOrgAndServiceOnlyFromTrustedProxies) {
  const auto settings = behind_proxies();
  const auto head =
      head_with({{"x-user-id", "ann"}, {"X-Device-ID", "phone"}, {"Cookie", "service=s"}}, "org=acme");
  const auto trusted = identify(settings, ip("10.0.0.1"), head);
  EXPECT_EQ(trusted.user, "ann");
  EXPECT_EQ(trusted.org, "acme");
  EXPECT_EQ(trusted.service, "s");
  EXPECT_EQ(trusted.device, "phone");
  const auto stranger = identify(settings, ip("203.0.113.7"), head);
  EXPECT_EQ(stranger.user, "");
  EXPECT_EQ(stranger.org, "");
  EXPECT_EQ(stranger.service, "");
  EXPECT_EQ(stranger.device, "phone");
}

TEST(Identify, ReadsTheApiKeyFromTheConfiguredSource) {
  ClientSettings settings;
  const auto key = [&](const http::RequestHead& head) {
    return identify(settings, ip("203.0.113.7"), head).api_key;
  };
  EXPECT_EQ(key(head_with({{"x-api-key", "k1"}})), "k1");
  EXPECT_EQ(key(head_with({{"X_Api_Key", "k1"}})), "");
  settings.api_key = {Source::Kind::Query, "api_key"};
  EXPECT_EQ(key(head_with({}, "a=1&api_key=k2&b=2")), "k2");
  EXPECT_EQ(key(head_with({}, "API_KEY=k2&xapi_key=k3&api_key")), "");
  settings.api_key = {Source::Kind::Bearer, ""};
  EXPECT_EQ(key(head_with({{"Authorization", "bEARER  k4"}})), "k4");
  EXPECT_EQ(key(head_with({{"Authorization", "Basic k4"}})), "");
  EXPECT_EQ(key(head_with({{"Authorization", "Bearer"}})), "");
  EXPECT_EQ(key(head_with({{"Authorization", "Bearers A"}})), "");
  EXPECT_EQ(key(head_with({{"Authorization", "Bearer\tA"}})), "A");
  settings.api_key = {Source::Kind::Cookie, "key"};
  EXPECT_EQ(key(head_with({{"Cookie", "a=b; xkey=no"}, {"Cookie", "c=d;key=k5"}})), "k5");
}

// Returns the API key, or the reason why the request is ambiguous.
std::string key_or_ambiguity(const Source& source, Lines lines, std::string_view query = {}) {
  ClientSettings settings;
  settings.api_key = source;
  const auto head = head_with(lines, query);
  const auto client = identify(settings, ip("203.0.113.7"), head);
  EXPECT_TRUE(client.ambiguity.empty() || client.api_key.empty());
  return std::string(client.ambiguity.empty() ? client.api_key : client.ambiguity);
}

// Different API keys must not be treated as "no key". Otherwise the request would evade a limit that skips
// requests without a key, and the upstream would still use one of the keys.
TEST(Identify, RequestWithDifferentApiKeysIsRejectedAndWithEqualApiKeysAccepted) {
  const std::string two = "the request carries more than one API key";
  const Source header{Source::Kind::Header, "X-API-Key"};
  EXPECT_EQ(key_or_ambiguity(header, {{"X-API-Key", "k"}, {"x-api-key", "k"}}), "k");
  EXPECT_EQ(key_or_ambiguity(header, {{"X-API-Key", "k"}, {"X-API-Key", "other"}}), two);
  EXPECT_EQ(key_or_ambiguity(header, {{"X-API-Key", ""}, {"X-API-Key", "k"}}), two);
  EXPECT_EQ(key_or_ambiguity(header, {{"X-API-Key", "k"}, {"X-API-Key", "j"}, {"X-API-Key", "k"}}), two);
  EXPECT_EQ(key_or_ambiguity(header, {{"X-API-Key", ""}}), "");
  const Source bearer{Source::Kind::Bearer, ""};
  EXPECT_EQ(key_or_ambiguity(bearer, {{"Authorization", "Bearer A"}, {"Authorization", "Bearer A"}}), "A");
  EXPECT_EQ(key_or_ambiguity(bearer, {{"Authorization", "Bearer A"}, {"Authorization", "Basic x"}}), two);
  EXPECT_EQ(key_or_ambiguity(bearer, {{"Authorization", "Basic x"}, {"Authorization", "Bearer A"}}), two);
  const Source query{Source::Kind::Query, "api_key"};
  EXPECT_EQ(key_or_ambiguity(query, {}, "api_key=A&b=1&api%5Fkey=%41"), "A");
  EXPECT_EQ(key_or_ambiguity(query, {}, "api_key=%41&api_key=A"), "A");
  EXPECT_EQ(key_or_ambiguity(query, {}, "api_key=&api_key"), "");
  for (const char* twice : {"api_key=&api_key=A", "api_key&api_key=A", "api_key=junk&api_key=A",
                            "api_key=A&api_key=AA", "api_key=A&api%5Fkey=%42"})
    EXPECT_EQ(key_or_ambiguity(query, {}, twice), two) << twice;
  const Source cookie{Source::Kind::Cookie, "key"};
  EXPECT_EQ(key_or_ambiguity(cookie, {{"Cookie", "key=A; a=b"}, {"Cookie", "key=A"}}), "A");
  EXPECT_EQ(key_or_ambiguity(cookie, {{"Cookie", "key=A; key=B"}}), two);
}

TEST(Identify, ErrorNamesTheFirstAttributeThatHasDifferentValues) {
  auto settings = behind_proxies();
  const auto of = [&](std::string_view peer, Lines lines, std::string_view query = {}) {
    return std::string(identify(settings, ip(peer), head_with(lines, query)).ambiguity);
  };
  EXPECT_EQ(of("10.0.0.1", {{"X-User-ID", "a"}, {"X-User-ID", "b"}}), "the request names more than one user");
  EXPECT_EQ(of("203.0.113.7", {{"X-User-ID", "a"}, {"X-User-ID", "b"}}), "");
  EXPECT_EQ(of("10.0.0.1", {}, "org=a&org=b"), "the request names more than one organisation");
  EXPECT_EQ(of("10.0.0.1", {{"Cookie", "service=a; service=b"}}), "the request names more than one service");
  EXPECT_EQ(of("203.0.113.7", {{"X-Device-ID", "a"}, {"X-Device-ID", "b"}, {"X-User-ID", "a"}}),
            "the request names more than one device");
  settings.tokens = TokenVerifier::make({"HS256", std::string(32, 's'), "", ""}).value();
  EXPECT_EQ(of("203.0.113.7", {{"Authorization", "Bearer A"}, {"Authorization", "Bearer B"}}, "org=a&org=b"),
            "the request carries more than one bearer token");
}

TEST(Identify, LooksUpTheApiKeyInTheKeysFile) {
  auto settings = behind_proxies();
  settings.keys.emplace();
  ASSERT_TRUE(settings.keys->add(ApiKeys::digest("known"), {"bob", "", "pro", "billing"}));
  EXPECT_FALSE(settings.keys->add(ApiKeys::digest("known"), {}));
  EXPECT_EQ(settings.keys->size(), 1U);
  const auto with = [&](std::string_view key) {
    return identify(settings, ip("10.0.0.1"),
                    head_with({{"X-API-Key", key}, {"X-User-ID", "ann"}}, "org=acme"));
  };
  const auto known = with("known");
  EXPECT_EQ(known.api_key, "known");
  EXPECT_EQ(known.tier, "pro");
  EXPECT_EQ(known.user, "bob");  // the keys file overrides the header
  EXPECT_EQ(known.org, "acme");  // from the query, because the keys file states no org for this key
  EXPECT_EQ(known.service, "billing");
  EXPECT_EQ(with("unknown").api_key, "");
  EXPECT_FALSE(with("unknown").key_rejected);
  settings.unknown_keys = UnknownKeys::Accept;
  EXPECT_EQ(with("unknown").api_key, "unknown");
  EXPECT_EQ(with("unknown").tier, "");
  settings.unknown_keys = UnknownKeys::Reject;
  EXPECT_TRUE(with("unknown").key_rejected);
  EXPECT_FALSE(with("").key_rejected);
}

TEST(ApiKeys, OnlyOneSpellingOfAKeyIdIsValid) {
  EXPECT_TRUE(ApiKeys::is_id(ApiKeys::id_of(ApiKeys::digest("a"))));
  for (const auto* text :
       {"", "kf8s-92h1", "sha256:", "sha256:9f86d081884c7d6", "sha256:9f86d081884c7d650",
        "SHA256:9f86d081884c7d65", "sha256:9F86D081884C7D65", "sha256:9f86d081884c7dg5", "9f86d081884c7d65"})
    EXPECT_FALSE(ApiKeys::is_id(text)) << text;
}

// FIPS 180-4 gives this digest of "abc".
TEST(ApiKeys, DigestOfAKeyIsItsSha256) {
  const auto digest = ApiKeys::digest("abc");
  EXPECT_EQ(digest[0], 0xba);
  EXPECT_EQ(digest[1], 0x78);
  EXPECT_EQ(digest[30], 0x15);
  EXPECT_EQ(digest[31], 0xad);
}

// weir decodes query values, because the upstream decodes them too.
TEST(Identify, IdentityInAQueryParameterIsDecoded) {
  ClientSettings settings;
  settings.api_key = {Source::Kind::Query, "api_key"};
  settings.device = {Source::Kind::Query, "dev"};
  const auto of = [&](std::string_view query) {
    const auto head = head_with({}, query);
    Credentials credentials;
    const auto client = identify(settings, ip("203.0.113.7"), head, credentials);
    return std::string(client.api_key) + "," + std::string(client.device);
  };
  EXPECT_EQ(of("api_key=k%31&dev=d1"), "k1,d1");
  EXPECT_EQ(of("api%5Fkey=%6b1&d%65v=%64%31"), "k1,d1");
  EXPECT_EQ(of("api_key=a%20b%2Bc"), "a b+c,");
  EXPECT_EQ(of("api_key=a+b%2Bc"), "a b+c,");
  EXPECT_EQ(of("API_KEY=k1"), ",");
}

// weir decodes this cookie like a cookie in a rule's key. Otherwise each encoding of a session would count as
// another client.
TEST(Identify, IdentityInACookieIsDecodedAndUnquoted) {
  ClientSettings settings;
  settings.user = {Source::Kind::Cookie, "session"};
  settings.trusted_proxies = {cidr("10.0.0.0/8")};
  const auto of = [&](std::string_view cookie) {
    const auto head = head_with({{"Cookie", cookie}});
    return std::string(identify(settings, ip("10.0.0.1"), head).user);
  };
  for (const char* way : {"session=abc", "session=\"abc\"", "session=%61bc", "session=\"a%62c\""})
    EXPECT_EQ(of(way), "abc") << way;
  EXPECT_EQ(of("session=%2561bc"), "%61bc");
  EXPECT_EQ(of("session=\""), "\"");
  EXPECT_EQ(of("session=\"\""), "");
}

}  // namespace
}  // namespace weir::policy
