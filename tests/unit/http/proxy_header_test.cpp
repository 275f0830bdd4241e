#include "weir/http/proxy_header.hpp"

#include <gtest/gtest.h>

namespace weir::http::test {
namespace {

using namespace std::string_literals;
using Status = ProxyHeader::Status;

base::IpAddress ip(const char* text) {
  return *base::IpAddress::parse(text);
}

const ConnectionEnds kV4{ip("203.0.113.7"), ip("198.51.100.1"), 51234, 443};
const ConnectionEnds kV6{ip("2001:db8::7"), ip("2001:db8::1"), 1, 65535};
const std::string kSignature = "\r\n\r\n\0\r\nQUIT\n"s;

std::string second(const std::optional<ConnectionEnds>& ends) {
  std::string out;
  append_proxy_header(out, ends);
  return out;
}

struct Good {
  std::string bytes;
  std::optional<ConnectionEnds> ends;
};

std::vector<Good> good() {
  auto with_tlv = second(kV4);
  with_tlv[15] = static_cast<char>(12 + 5);
  with_tlv += "\x04\0\x02hi"s;
  return {{"PROXY TCP4 203.0.113.7 198.51.100.1 51234 443\r\n", kV4},
          {"PROXY TCP6 2001:db8::7 2001:db8::1 1 65535\r\n", kV6},
          {"PROXY UNKNOWN\r\n", std::nullopt},
          {"PROXY UNKNOWN ffff:f...f 1 2 whatever it says\r\n", std::nullopt},
          {second(kV4), kV4},
          {second(kV6), kV6},
          {second(std::nullopt), std::nullopt},
          {with_tlv, kV4},
          {kSignature + "\x21\0\0\0"s, std::nullopt},  // PROXY with an unspecified family
          {kSignature + "\x20\x11\0\x0c\1\2\3\4\5\6\7\x8\0\1\0\2"s,
           std::nullopt},  // LOCAL: the addresses are ignored
          {kSignature + "\x21\x31\0\xd8"s + std::string(216, 'u'), std::nullopt}};  // a unix socket
}

// For each incomplete header, the reader asks for more octets and reports no fault. The reader ignores octets
// after a complete header.
TEST(ProxyHeader, IncompleteHeaderNeedsMoreOctetsWhereverItIsCut) {
  for (const auto& [bytes, ends] : good()) {
    for (std::size_t cut = 0; cut < bytes.size(); ++cut)
      EXPECT_EQ(read_proxy_header(bytes.substr(0, cut)).status, Status::NeedMore) << cut << " of " << bytes;
    for (const auto& behind : {""s, "GET / HTTP/1.1\r\n\r\n"s, "\0PROXY"s}) {
      const auto read = read_proxy_header(bytes + behind);
      EXPECT_EQ(read.status, Status::Whole) << bytes;
      EXPECT_EQ(read.size, bytes.size()) << bytes;
      EXPECT_EQ(read.ends, ends) << bytes;
    }
  }
}

TEST(ProxyHeader, RejectsBytesThatAreNotAProxyHeader) {
  for (const auto& bytes : {"GET / HTTP/1.1\r\n\r\n"s,
                            "PROXx"s,
                            "proxy TCP4"s,
                            "PROXY  TCP4 1.2.3.4 1.2.3.4 1 2\r\n"s,
                            "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n"s,
                            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n"s,
                            "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n"s,
                            "PROXY TCP4 1.2.3.4 1.2.3.4 -1 2\r\n"s,
                            "PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n"s,
                            "PROXY TCP4 1.2.3.4 1.2.3.4  2\r\n"s,
                            "PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n"s,
                            "PROXY TCP4 ::1 ::1 1 2\r\n"s,
                            "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n"s,
                            "PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n"s,
                            "PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n"s,
                            "PROXY UNKNOWNS\r\n"s,
                            "PROXY \r\n"s,
                            "PROXY TCP4\n"s,
                            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\rX"s,
                            "PROXY TCP4 1.2.3.4\0 1.2.3.4 1 2\r\n"s,
                            "PROXY UNKNOWN "s + std::string(120, 'x'),
                            "\r\n\r\nGET"s,
                            kSignature + "\x11"s,
                            kSignature + "\x22"s,
                            kSignature + "\x21\x11\0\x0b"s + std::string(11, 'x'),
                            kSignature + "\x21\x21\0\x23"s + std::string(35, 'x'),
                            kSignature + "\x21\x41\0\0"s,
                            kSignature + "\x21\x13\0\0"s,
                            kSignature + "\x21\x11\xff\xff"s})
    EXPECT_EQ(read_proxy_header(bytes).status, Status::Bad) << bytes;
}

TEST(ProxyHeader, Ipv4AddressBesideAnIpv6AddressIsWrittenAsIpv6) {
  const ConnectionEnds mixed{ip("203.0.113.7"), ip("2001:db8::1"), 1, 2};
  EXPECT_EQ(read_proxy_header(second(mixed)).ends, mixed);
  EXPECT_EQ(second(mixed).size(), 16U + 36U);
  EXPECT_EQ(second(kV4).size(), 16U + 12U);
}

}  // namespace
}  // namespace weir::http::test
