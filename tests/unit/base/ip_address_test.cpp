#include "weir/base/ip_address.hpp"

#include <gtest/gtest.h>

namespace weir::base {
namespace {

IpAddress ip(std::string_view text) {
  return IpAddress::parse(text).value();
}
Cidr cidr(std::string_view text) {
  return Cidr::parse(text).value();
}

TEST(IpAddress, ParsesAndFormatsBothFamilies) {
  for (const std::string text :
       {"203.0.113.7", "0.0.0.0", "255.255.255.255", "2001:db8::1", "::", "::1", "fe80::1:2"})
    EXPECT_EQ(ip(text).to_string(), text);
  EXPECT_EQ(ip("2001:DB8:0:0:0:0:0:1").to_string(), "2001:db8::1");
  EXPECT_EQ(IpAddress::v4(0xcb007107), ip("203.0.113.7"));
}

TEST(IpAddress, Ipv4MappedIpv6AddressEqualsTheIpv4Address) {
  EXPECT_EQ(ip("::ffff:203.0.113.7"), ip("203.0.113.7"));
  EXPECT_EQ(ip("::ffff:cb00:7107"), ip("203.0.113.7"));
  EXPECT_TRUE(ip("::ffff:203.0.113.7").is_v4());
  EXPECT_FALSE(ip("::203.0.113.7").is_v4());
  EXPECT_EQ(ip("::ffff:203.0.113.7").to_string(), "203.0.113.7");
}

TEST(IpAddress, RejectsInvalidText) {
  using namespace std::literals;
  for (const std::string_view text :
       {""sv, "1.2.3"sv, "1.2.3.4.5"sv, "256.1.1.1"sv, "01.2.3.4"sv, "1.2.3.4 "sv, " 1.2.3.4"sv,
        "1.2.3.4:80"sv, "[::1]"sv, "::1%eth0"sv, "1::2::3"sv, "12345::"sv, "host"sv, "1.2.3.4\0"sv,
        "1.2.3.4\0.5"sv, "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc"sv})
    EXPECT_FALSE(IpAddress::parse(text)) << text;
}

TEST(IpAddress, MaskedAddressKeepsOnlyTheBitsOfItsPrefix) {
  EXPECT_EQ(ip("2001:db8:1:2:3:4:5:6").masked(64), ip("2001:db8:1:2::"));
  EXPECT_EQ(ip("2001:db8:ffff::").masked(35), ip("2001:db8:e000::"));
  EXPECT_EQ(ip("2001:db8::1").masked(128), ip("2001:db8::1"));
  EXPECT_EQ(ip("2001:db8::1").masked(0), ip("::"));
  EXPECT_EQ(ip("203.0.113.7").masked(96 + 24), ip("203.0.113.0"));
}

TEST(Cidr, ContainsExactlyTheAddressesOfItsBlock) {
  EXPECT_TRUE(cidr("10.0.0.0/8").contains(ip("10.255.255.255")));
  EXPECT_FALSE(cidr("10.0.0.0/8").contains(ip("11.0.0.0")));
  EXPECT_TRUE(cidr("10.0.0.0/8").contains(ip("::ffff:10.1.2.3")));
  EXPECT_FALSE(cidr("10.0.0.0/8").contains(ip("::10.1.2.3")));
  EXPECT_TRUE(cidr("2001:db8::/33").contains(ip("2001:db8:7fff::1")));
  EXPECT_FALSE(cidr("2001:db8::/33").contains(ip("2001:db8:8000::1")));
  EXPECT_TRUE(cidr("0.0.0.0/0").contains(ip("203.0.113.7")));
  EXPECT_FALSE(cidr("0.0.0.0/0").contains(ip("2001:db8::1")));
  EXPECT_TRUE(cidr("::/0").contains(ip("203.0.113.7")));
  EXPECT_TRUE(cidr("203.0.113.7").contains(ip("203.0.113.7")));
  EXPECT_FALSE(cidr("203.0.113.7").contains(ip("203.0.113.6")));
}

TEST(Cidr, ParsesAndFormats) {
  for (const std::string text : {"10.0.0.0/8", "203.0.113.7/32", "2001:db8::/32", "::/0", "0.0.0.0/0"})
    EXPECT_EQ(cidr(text).to_string(), text);
  EXPECT_EQ(cidr("::1").to_string(), "::1/128");
  for (const std::string_view text :
       {"10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8x", "/8", "2001:db8::/129",
        "2001:db8::1/32", "10.0.0.0/ 8", "10.0.0.0/8/8"})
    EXPECT_FALSE(Cidr::parse(text)) << text;
}

TEST(Cidr, BlockOfIpv4MappedAddressesEqualsTheIpv4Block) {
  EXPECT_EQ(cidr("::ffff:0:0/96").to_string(), "0.0.0.0/0");
  EXPECT_EQ(cidr("::ffff:10.0.0.0/104").to_string(), "10.0.0.0/8");
  EXPECT_EQ(cidr("::ffff:203.0.113.7").to_string(), "203.0.113.7/32");
  for (const std::string_view text :
       {"::ffff:0:0/95", "::ffff:0:0/90", "::ffff:10.0.0.0/8", "::ffff:10.0.0.0/102"})
    EXPECT_FALSE(Cidr::parse(text)) << text;
}

}  // namespace
}  // namespace weir::base
