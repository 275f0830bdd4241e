#include "weir/base/endpoint.hpp"

#include <gtest/gtest.h>

namespace weir::base {
namespace {

TEST(Endpoint, ParsesAndFormatsEveryFormOfAddress) {
  for (const std::string text : {"127.0.0.1:8080", "example.com:443", "[::1]:80", "[2001:db8::1]:65535",
                                 "localhost:0", "unix:/run/weir.sock"})
    EXPECT_EQ(parse_endpoint(text).value().to_string(), text);
}

TEST(Endpoint, ReturnsHostAndPortOrThePathOfAUnixSocket) {
  const auto tcp = parse_endpoint("[2001:db8::1]:8443").value();
  EXPECT_EQ(tcp.host, "2001:db8::1");
  EXPECT_EQ(tcp.port, 8443);
  EXPECT_FALSE(tcp.is_unix());
  const auto local = parse_endpoint("unix:/run/a:b").value();
  EXPECT_TRUE(local.is_unix());
  EXPECT_EQ(local.unix_path, "/run/a:b");
}

TEST(Endpoint, RejectsInvalidTextAndQuotesItInTheError) {
  for (const std::string text :
       {"",         "host",          ":80",   "host:",   "host:65536", "host:-1",  "host:80x",
        "::1:80",   "[::1]",         "[]:80", "[::1:80", "::1]:80",    "host: 80", "unix:",
        "[",        "[:80",          "]:80",  "*:80",    " host:80",   "a b:80",   "unix:weir.sock",
        "unix:./a", "unix:@abstract"}) {
    const auto parsed = parse_endpoint(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message.find("\"" + text + "\""), std::string::npos);
  }
  EXPECT_FALSE(parse_endpoint("unix:/" + std::string(107, 'x')));
  EXPECT_TRUE(parse_endpoint("unix:/" + std::string(106, 'x')));
}

TEST(Endpoint, EverySpellingOfAnIpv6AddressGivesTheSameEndpoint) {
  for (const char* spelt : {"[::1]:80", "[0:0:0:0:0:0:0:1]:80", "[0::1]:080"})
    EXPECT_EQ(parse_endpoint(spelt).value().to_string(), "[::1]:80") << spelt;
  EXPECT_EQ(parse_endpoint("[2001:DB8::A]:1").value(), parse_endpoint("[2001:db8:0::a]:1").value());
}

TEST(Endpoint, ErrorSaysWhatIsWrongWithThePort) {
  for (const auto& [text, fault] :
       {std::pair{"127.0.0.1:70000", "the port 70000 is above 65535"},
        {"127.0.0.1:99999999999999999999", "the port 99999999999999999999 is above 65535"},
        {"127.0.0.1:", "the port is missing after the colon, as in 127.0.0.1:8080"},
        {"localhost", "the port is missing, as in localhost:8080"},
        {"127.0.0.1", "the port is missing, as in 127.0.0.1:8080"},
        {"[::1]", "the port is missing, as in [::1]:8080"},
        {"::1", "an IPv6 address needs brackets; write [::1]:8080"},
        {"::1:9900", "an IPv6 address needs brackets; write [::1]:9900"},
        {"9900", "the host is missing; write 127.0.0.1:9900, or 0.0.0.0:9900 for all addresses"},
        {":9900", "the host is missing; write 127.0.0.1:9900, or 0.0.0.0:9900 for all addresses"},
        {"a:http", "the port \"http\" is not a number from 0 to 65535; write a:80"},
        {"a:-1", "the port \"-1\" is not a number from 0 to 65535"},
        {"a:80x", "the port \"80x\" is not a number from 0 to 65535"},
        {"a:80/b", "a path follows the port; write a:80"},
        {"http://a:80", "it is a URL; write only host:port, such as a:80"},
        {"unix:weir.sock", "the path of a unix socket begins with /; write unix:/run/weir.sock"}}) {
    const auto parsed = parse_endpoint(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().message, "\"" + std::string(text) + "\" is not an address: " + fault);
  }
  EXPECT_EQ(parse_endpoint("unix:80").value().port, 80);
}

TEST(Endpoint, RejectsHostsThatOnlyLookLikeIpv4Addresses) {
  const auto parsed = parse_endpoint("256.1.1.1:80");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message,
            "\"256.1.1.1:80\" is not an address: a host that ends in a number must be an IPv4 address, but "
            "\"256.1.1.1\" is not; write four numbers from 0 to 255, or a name");
  EXPECT_FALSE(parse_endpoint("127.1:80")) << "some resolvers read this text as 127.0.0.1";
}

}  // namespace
}  // namespace weir::base
