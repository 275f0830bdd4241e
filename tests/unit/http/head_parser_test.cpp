#include "unit/http/head_words.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

// Describes the result: "400", or "METHOD path[?query] @authority framing keep|close [expects]".
std::string verdict(std::string_view bytes) {
  RequestHead head;
  if (const auto fault = parse_request_head(bytes, head)) return std::to_string(fault->status);
  std::string text{head.method};
  text.append(" ").append(head.path);
  if (!head.query.empty()) text.append("?").append(head.query);
  text.append(" @").append(head.authority).append(" ").append(framing_of(head.framing, head.content_length));
  text += head.keep_alive ? " keep" : " close";
  return head.expects_continue ? text + " expects" : text;
}

struct Case {
  std::string_view head;  // without the empty line at the end
  std::string_view verdict;
};

// A macro, because as an argument of a function the text would end at its first NUL.
#define RAW(text) std::string_view(text, sizeof(text) - 1)

const Case kTargets[] = {
    {"GET / HTTP/1.1\r\nHost: a", "GET / @a none keep"},
    {"GET /a/b?c=d&e HTTP/1.1\r\nHost: a:80", "GET /a/b?c=d&e @a:80 none keep"},
    {"GET /a?b?c HTTP/1.1\r\nHost: a", "GET /a?b?c @a none keep"},
    {"GET /%2e%2e/x HTTP/1.1\r\nHost: a", "GET /%2e%2e/x @a none keep"},
    {"GET //x HTTP/1.1\r\nHost: a", "GET //x @a none keep"},
    {"get / HTTP/1.1\r\nHost: a", "400"},
    {"POSt / HTTP/1.1\r\nHost: a", "400"},
    {"PURGE /x HTTP/1.1\r\nHost: a", "PURGE /x @a none keep"},
    {"GET http://b/x?y HTTP/1.1\r\nHost: a", "GET /x?y @b none keep"},
    {"GET HTTP://b:81 HTTP/1.1\r\nHost: a", "GET / @b:81 none keep"},
    {"GET https://b?q HTTP/1.1\r\nHost: a", "GET /?q @b none keep"},
    {"GET http://b/x HTTP/1.1", "400"},
    {"GET ftp://b/x HTTP/1.1\r\nHost: a", "400"},
    {"GET http:///x HTTP/1.1\r\nHost: a", "400"},
    {"GET http://u@b/x HTTP/1.1\r\nHost: b", "400"},
    {"GET http://b:x/ HTTP/1.1\r\nHost: b", "400"},
    {"GET x HTTP/1.1\r\nHost: a", "400"},
    {"GET a:80 HTTP/1.1\r\nHost: a", "400"},
    {"GET ?x HTTP/1.1\r\nHost: a", "400"},
    {"GET /a#b HTTP/1.1\r\nHost: a", "400"},
    {"OPTIONS * HTTP/1.1\r\nHost: a", "OPTIONS * @a none keep"},
    {"OPTIONS http://b HTTP/1.1\r\nHost: a", "OPTIONS * @b none keep"},
    {"OPTIONS http://b/ HTTP/1.1\r\nHost: a", "OPTIONS / @b none keep"},
    {"OPTIONS http://b? HTTP/1.1\r\nHost: a", "OPTIONS / @b none keep"},
    {"GET * HTTP/1.1\r\nHost: a", "400"},
    {"CONNECT a:443 HTTP/1.1\r\nHost: a", "405"},
    {"GET  / HTTP/1.1\r\nHost: a", "400"},
    {"GET /  HTTP/1.1\r\nHost: a", "400"},
    {"GET\t/ HTTP/1.1\r\nHost: a", "400"},
    {" GET / HTTP/1.1\r\nHost: a", "400"},
    {"GET / x HTTP/1.1\r\nHost: a", "400"},
    {"GET /", "400"},
    {"GET HTTP/1.1\r\nHost: a", "400"},
    {"G@T / HTTP/1.1\r\nHost: a", "400"},
    {"GET / HTTP/1.1 \r\nHost: a", "400"},
    {"GET / HTTP/2.0\r\nHost: a", "400"},
    {"GET / HTTP/1.11\r\nHost: a", "400"},
    {"GET / http/1.1\r\nHost: a", "400"},
    {RAW("GET /\0 HTTP/1.1\r\nHost: a"), "400"},
};

const Case kHosts[] = {
    {"GET / HTTP/1.1", "400"},
    {"GET / HTTP/1.0", "GET / @ none close"},
    {"GET / HTTP/1.1\r\nHost:", "GET / @ none keep"},
    {"GET / HTTP/1.1\r\nhOST:  A.b \t", "GET / @A.b none keep"},
    {"GET / HTTP/1.1\r\nHost: a\r\nHost: a", "400"},
    {"GET / HTTP/1.1\r\nHost: a\r\nHost: b", "400"},
    {"GET / HTTP/1.1\r\nHost: a b", "400"},
    {"GET / HTTP/1.1\r\nHost: a/b", "400"},
    {"GET / HTTP/1.1\r\nHost: u@a", "400"},
    {"GET / HTTP/1.1\r\nHost: a\"b", "400"},
    {"GET / HTTP/1.1\r\nHost: a:b", "400"},
    {"GET / HTTP/1.1\r\nHost: a:1:2", "400"},
    {"GET / HTTP/1.1\r\nHost: :80", "400"},
    {"GET / HTTP/1.1\r\nHost: a:", "GET / @a: none keep"},
    {"GET / HTTP/1.1\r\nHost: [::1]:80", "GET / @[::1]:80 none keep"},
    {"GET / HTTP/1.1\r\nHost: [::1", "400"},
    {"GET / HTTP/1.1\r\nHost: []", "400"},
    {"GET / HTTP/1.1\r\nHost: [::1]x", "400"},
    {"GET / HTTP/1.1\r\nHost: a]", "400"},
    {"GET / HTTP/1.1\r\nHost: [:::1]", "400"},
    {"GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]", "400"},
    {"GET / HTTP/1.1\r\nHost: [v1.a]", "400"},
    {"GET / HTTP/1.1\r\nHost: [1.2.3.4]", "400"},
    {"GET / HTTP/1.1\r\nHost: [::ffff:1.2.3.4]:1", "GET / @[::ffff:1.2.3.4]:1 none keep"},
    {"GET / HTTP/1.1\r\nHost: a%2eb", "400"},
    {"GET / HTTP/1.1\r\nHost: a%zz", "400"},
    {"GET / HTTP/1.1\r\nHost: a..b", "400"},
    {"GET / HTTP/1.1\r\nHost: .a", "400"},
    {"GET / HTTP/1.1\r\nHost: .", "400"},
    {"GET / HTTP/1.1\r\nHost: a.b.:80", "GET / @a.b.:80 none keep"},
    {"GET / HTTP/1.1\r\nHost: a_b", "GET / @a_b none keep"},
    {"GET / HTTP/1.1\r\nHost: a:65535", "GET / @a:65535 none keep"},
    {"GET / HTTP/1.1\r\nHost: a:65536", "400"},
    {"GET / HTTP/1.1\r\nHost: a:99999999999999999999", "400"},
    {"GET http://a:65536/ HTTP/1.1\r\nHost: a", "400"},
    {"GET http://[::g]/ HTTP/1.1\r\nHost: a", "400"},
};

const Case kFramings[] = {
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5", "POST / @a 5 keep"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0", "POST / @a none keep"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775807",
     "POST / @a 9223372036854775807 keep"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775808", "400"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615", "400"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551621", "400"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:", "400"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5", "400"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5", "400"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5", "400"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5 5", "400"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 6", "400"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6", "400"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 5", "400"},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked", "POST / @a chunked keep"},
    {"POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding: Chunked ", "POST / @a chunked keep"},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5", "400"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked", "400"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: identity", "400"},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity", "501"},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked", "501"},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip", "501"},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked", "501"},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked", "501"},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"", "501"},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1", "501"},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:", "501"},
    {"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked", "400"},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked", "400"},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked", "400"},
    {RAW("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chun\0ked"), "400"},
};

const Case kFields[] = {
    {"GET / HTTP/1.1\r\n Host: a", "400"},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c", "400"},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\tc", "400"},
    {"GET / HTTP/1.1\r\nHost: a\r\nX:\r\n b", "400"},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n ", "400"},
    {"GET / HTTP/1.1\r\nHost:\r\n a", "400"},
    {"GET / HTTP/1.1\r\nHost: a\r\nX", "400"},
    {"GET / HTTP/1.1\r\nHost: a\r\n: b", "400"},
    {"GET / HTTP/1.1\r\nHost: a\r\nX Y: b", "400"},
    {"GET / HTTP/1.1\r\nHost: a\r\nX(: b", "400"},
    {"GET / HTTP/1.1\nHost: a", "400"},
    {"GET / HTTP/1.1\r\nHost: a\nX: b", "400"},
    {"GET / HTTP/1.1\r\nHost: a\rX: b", "400"},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: b\rc", "400"},
    {RAW("GET / HTTP/1.1\r\nHost: a\r\nX: b\0c"), "400"},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: b\x01", "400"},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: \xc3\xa4", "GET / @a none keep"},
    {"GET / HTTP/1.1\r\nHost: a\r\nX:", "GET / @a none keep"},
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close", "GET / @a none close"},
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: x, CLOSE", "GET / @a none close"},
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: closed", "GET / @a none keep"},
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: close", "GET / @a none close"},
    {"GET / HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive", "GET / @a none keep"},
    {"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive, close", "GET / @a none close"},
    {"GET / HTTP/1.1\r\nHost: a\r\nProxy-Connection: close", "GET / @a none keep"},
    {"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-Continue", "PUT / @a 1 keep expects"},
    {"PUT / HTTP/1.0\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue", "PUT / @a 1 close"},
    {"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue", "GET / @a none keep"},
    {"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: more", "417"},
    {"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue, more", "417"},
    {"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect:", "417"},
    {"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: ,", "417"},
    {"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\nExpect: more", "417"},
    {"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue, 100-continue",
     "PUT / @a 1 keep expects"},
    {"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\nExpect: 100-continue",
     "PUT / @a 1 keep expects"},
    {"PUT / HTTP/1.1\r\nHost: a\r\nConnection: Expect\r\nContent-Length: 1\r\nExpect: 100-continue",
     "PUT / @a 1 keep"},
    {"PUT / HTTP/1.0\r\nHost: a\r\nContent-Length: 1\r\nExpect: more", "417"},
};

template <std::size_t kCount>
void check(const Case (&cases)[kCount]) {
  for (const auto& [head, expected] : cases) {
    const auto bytes = std::string(head) + "\r\n\r\n";
    EXPECT_EQ(verdict(bytes), expected) << head;
  }
}

TEST(RequestHead, AcceptsValidTargetsAndRejectsInvalidTargets) {
  check(kTargets);
}
TEST(RequestHead, AcceptsValidHostsAndRejectsInvalidHosts) {
  check(kHosts);
}
TEST(RequestHead, FindsTheBodyFramingAndRejectsAmbiguousFraming) {
  check(kFramings);
}
TEST(RequestHead, RejectsInvalidFieldsAndReadsConnectionOptions) {
  check(kFields);
}

TEST(RequestHead, RejectsATruncatedHeadAndBytesAfterTheHead) {
  const std::string_view head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_EQ(verdict(head), "GET / @a none keep");
  for (std::size_t size = 0; size < head.size(); ++size)
    EXPECT_EQ(verdict(head.substr(0, size)), "400") << size;
  EXPECT_EQ(verdict(std::string(head) + "x"), "400");
}

TEST(Fields, TooManyFieldsAreRejected) {
  const auto with_fields = [](std::string bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) bytes += "X: y\r\n";
    return bytes;
  };
  const auto request = with_fields("GET / HTTP/1.1\r\nHost: a\r\n", kMaxFields - 1);
  EXPECT_EQ(verdict(request + "\r\n"), "GET / @a none keep");
  EXPECT_EQ(verdict(request + "X: y\r\n\r\n"), "431");
  const auto response = with_fields("HTTP/1.1 204 No\r\n", kMaxFields);
  EXPECT_EQ(response_verdict(response + "\r\n"), "204 none keep");
  EXPECT_EQ(response_verdict(response + "X: y\r\n\r\n"), "431") << "the head is valid but too large";
  EXPECT_EQ(response_verdict(response + "X y\r\n\r\n"), "502");
}

TEST(RequestHead, AcceptsATargetOf60000Octets) {
  const auto path = "/" + std::string(60'000, 'a');
  EXPECT_EQ(verdict("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n"), "GET " + path + " @a none keep");
}

TEST(RequestHead, FieldsThatConnectionListsAreMarkedAsHopByHop) {
  const std::string bytes =
      "GET / HTTP/1.1\r\nHost: a\r\nX-One: 1\r\nConnection: x-ONE, , te\r\nX-Two: 2\r\nTE: trailers\r\n"
      "Keep-Alive: 5\r\nX-Forwarded-For: 1.2.3.4\r\nUpgrade: h2c\r\nTrailer: X\r\nProxy-Connection: "
      "x\r\n\r\n";
  RequestHead head;
  ASSERT_FALSE(parse_request_head(bytes, head));
  std::string ending;
  for (const auto& field : head.fields)
    if (field.hop_by_hop) ending.append(field.name).append(" ");
  EXPECT_EQ(ending, "X-One Connection TE Keep-Alive Upgrade Trailer Proxy-Connection ");
  EXPECT_EQ(find_field(head.fields, "x-two")->value, "2");
  EXPECT_EQ(find_field(head.fields, FieldId::XForwardedFor)->value, "1.2.3.4");
  EXPECT_EQ(find_field(head.fields, "X_Two"), nullptr);
}

// weir compares each option of Connection with every field name, so it bounds the number of options and of
// fields.
TEST(Connection, TooManyOptionsInAllConnectionFieldsTogetherAreRejected) {
  const auto lines = [](std::size_t a, std::size_t b) {
    std::string text = "\r\nConnection: close, , ";
    for (std::size_t i = 1; i < a; ++i) text += "x,";
    text += "\r\nConnection: ";
    for (std::size_t i = 0; i < b; ++i) text += "y,";
    return text + "\r\n\r\n";
  };
  for (const std::size_t first : {1, 31}) {
    EXPECT_EQ(verdict("GET / HTTP/1.1\r\nHost: a" + lines(first, 32 - first)), "GET / @a none close");
    EXPECT_EQ(verdict("GET / HTTP/1.1\r\nHost: a" + lines(first, 33 - first)), "400");
    EXPECT_EQ(response_verdict("HTTP/1.1 204 No" + lines(first, 32 - first)), "204 none close");
    EXPECT_EQ(response_verdict("HTTP/1.1 204 No" + lines(first, 33 - first)), "431");
  }
  RequestHead head;
  EXPECT_STREQ(parse_request_head("GET / HTTP/1.1\r\nHost: a" + lines(33, 7500), head)->what,
               "the Connection header has too many options");
}

TEST(RequestHead, ExpectFieldThatConnectionListsIsIgnored) {
  RequestHead head;
  const std::string bytes =
      "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nConnection: expect\r\nExpect: 100-continue\r\n\r\n";
  ASSERT_FALSE(parse_request_head(bytes, head));
  EXPECT_FALSE(head.expects_continue);
}

TEST(RequestHead, ParsingANewHeadForgetsThePreviousHead) {
  RequestHead head;
  const std::string first =
      "PUT /a?b HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
  ASSERT_FALSE(parse_request_head(first, head));
  const std::string second = "GET /c HTTP/1.1\r\nHost: b\r\n\r\n";
  ASSERT_FALSE(parse_request_head(second, head));
  EXPECT_EQ(head.query, "");
  EXPECT_EQ(head.framing, Framing::None);
  EXPECT_EQ(head.content_length, 0U);
  EXPECT_FALSE(head.expects_continue);
  EXPECT_EQ(head.fields.size(), 1U);
}

TEST(RequestHead, RecognisesPlainPathsAndHosts) {
  RequestHead head;
  std::string bytes;  // the views of the head refer to it
  const auto parse = [&](const char* text) {
    bytes = text;
    ASSERT_FALSE(parse_request_head(bytes, head)) << bytes;
  };
  parse("GET /a/b?c=/../%2f HTTP/1.1\r\nHost: example.com:8080\r\n\r\n");
  EXPECT_TRUE(head.plain_path);
  EXPECT_EQ(head.host, "example.com");
  parse("GET /a/../b HTTP/1.1\r\nHost: Example.com\r\n\r\n");
  EXPECT_FALSE(head.plain_path);
  EXPECT_EQ(head.host, "");
  parse("GET http://other/a HTTP/1.1\r\nHost: example.com\r\n\r\n");
  EXPECT_TRUE(head.plain_path);
  EXPECT_EQ(head.host, "") << "not the host of the target";
  parse("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_FALSE(head.plain_path);
}

TEST(FindHeadEnd, NextSearchStartsWhereThePreviousSearchEnded) {
  const std::string_view bytes = "GET / HTTP/1.1\r\nHost: a\r\n\r\nbody\r\n\r\n";
  const std::size_t end = bytes.find("body");
  EXPECT_EQ(find_head_end(bytes), end);
  for (std::size_t seen = 0; seen < end; ++seen) {
    EXPECT_EQ(find_head_end(bytes.substr(0, seen)), 0U) << seen;
    EXPECT_EQ(find_head_end(bytes, seen), end) << seen;
  }
}

}  // namespace
}  // namespace weir::http
