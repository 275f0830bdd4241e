#include "weir/http/rejected_head.hpp"

#include <gtest/gtest.h>

namespace weir::http {
namespace {

std::string parts_of(std::string_view bytes) {
  const auto head = read_rejected_head(bytes);
  return std::string(head.method) + "|" + head.target + "|" + std::string(head.host);
}

TEST(RejectedHead, ContainsTheReadablePartsOfAMalformedHead) {
  const std::pair<const char*, const char*> cases[] = {
      {"GET /a?b HTTP/1.1\r\nX: 1\r\nhOST:  a.example:80 \r\n\r\n", "GET|/a?b|a.example:80"},
      {"GET /a b HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET|/a b|a"},
      {"GET nonsense\r\n\r\n", "GET|nonsense|"},
      {"get /a HTTP/2.0\r\n", "get|/a|"},
      {"GET /a HTTP/1.1\nHost: a\n", "GET|/a|a"},
      {"GET /a HTTP/1.1\r\nHost: a", "GET|/a|"},
      {"GET /lo", "GET|/lo|"},
      {"GET", "GET||"},
      {"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n", "CONNECT|a:443|a:443"},
      {"GET http://b.example/x HTTP/1.1\r\nHost: a\r\n", "GET|http://b.example/x|b.example"},
      {"GET /r?to=http://b.example/x HTTP/1.1\r\nHost: a\r\n", "GET|/r?to=http://b.example/x|a"},
      {"\x16\x03\x01\x02", "||"},
      {"", "||"},
      {"\r\n", "||"},
      {"{\"a\": 1}\r\n", "||"},
  };
  for (const auto& [bytes, text] : cases) EXPECT_EQ(parts_of(bytes), text) << bytes;
}

TEST(RejectedHead, HidesUserAndPasswordInAnAbsoluteTarget) {
  EXPECT_EQ(parts_of("GET http://ann:secret@b.example/x?y HTTP/1.1\r\n\r\n"),
            "GET|http://***@b.example/x?y|b.example");
  EXPECT_EQ(parts_of("GET / HTTP/1.1\r\nHost: ann:secret@b.example:80\r\n\r\n"), "GET|/|b.example:80");
  EXPECT_EQ(parts_of("GET / HTTP/1.1\r\nHost: a@b:c@d\r\n\r\n"), "GET|/|d");
  EXPECT_EQ(parts_of("CONNECT ann:secret@b.example:443 HTTP/1.1\r\n\r\n"),
            "CONNECT|***@b.example:443|b.example:443");
  EXPECT_EQ(parts_of("GET ann:secret@b.example/x HTTP/1.1\r\nHost: a\r\n\r\n"),
            "GET|***@b.example/x|b.example");
  EXPECT_EQ(parts_of("GET http:ann:secret@b.example HTTP/1.1\r\n\r\n"), "GET|***@b.example|b.example");
  EXPECT_EQ(parts_of("GET /a@b?c@d HTTP/1.1\r\nHost: a\r\n\r\n"), "GET|/a@b?c@d|a")
      << "a path contains no credentials";
  EXPECT_EQ(parts_of("GET @b HTTP/1.1\r\n\r\n"), "GET|@b|b");
  EXPECT_EQ(parts_of("GET http://a@b:c@d HTTP/1.1\r\n\r\n"), "GET|http://***@d|d");
}

}  // namespace
}  // namespace weir::http
