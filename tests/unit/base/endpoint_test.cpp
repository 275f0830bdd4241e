#include "weir/base/endpoint.hpp"

#include <gtest/gtest.h>

namespace weir::base {
namespace {

TEST(Endpoint, ReadsAndWritesEveryForm) {
  for (const std::string text : {"127.0.0.1:8080", "example.com:443", "[::1]:80", "[2001:db8::1]:65535",
                                 "localhost:0", "unix:/run/weir.sock"})
    EXPECT_EQ(parse_endpoint(text).value().to_string(), text);
}

TEST(Endpoint, KeepsItsParts) {
  const auto tcp = parse_endpoint("[2001:db8::1]:8443").value();
  EXPECT_EQ(tcp.host, "2001:db8::1");
  EXPECT_EQ(tcp.port, 8443);
  EXPECT_FALSE(tcp.is_unix());
  const auto local = parse_endpoint("unix:/run/a:b").value();
  EXPECT_TRUE(local.is_unix());
  EXPECT_EQ(local.unix_path, "/run/a:b");
}

TEST(Endpoint, RefusesEverythingElseAndQuotesIt) {
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

TEST(Endpoint, RefusesWhatLooksLikeAnIpv4AddressAndIsNone) {
  const auto parsed = parse_endpoint("256.1.1.1:80");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message,
            "\"256.1.1.1:80\" is not an address: a host that ends in a number is an IPv4 address, and "
            "\"256.1.1.1\" is "
            "none; write four numbers from 0 to 255, or a name");
  EXPECT_FALSE(parse_endpoint("127.1:80")) << "of which resolvers make 127.0.0.1";
}

}  // namespace
}  // namespace weir::base
