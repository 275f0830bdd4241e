#include "weir/http/http2_fields.hpp"

#include "weir/http/head_parser.hpp"

#include <initializer_list>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::http {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Pairs = std::initializer_list<std::pair<std::string_view, std::string_view>>;

// Returns the fields as lines.
std::string lines_of(const Http2Fields& fields) {
  std::string lines;
  for (std::size_t i = 0; i < fields.size(); ++i)
    lines.append(fields[i].name).append("=").append(fields[i].value).append("\n");
  return lines;
}

Http2RequestText request(const Pairs& fields, std::size_t most = 1 << 14) {
  Http2RequestText text(most);
  for (const auto& [name, value] : fields) text.add(name, value);
  return text;
}

constexpr auto kHostsDiffer = ":authority and Host differ";

std::string head_of(const Pairs& fields, std::optional<std::uint64_t> body = 0) {
  const auto text = request(fields);
  return text.fault() == nullptr ? text.head(body) : text.fault();
}

TEST(Http2FieldsTest, WritesNamesInLowerCase) {
  Http2Fields fields;
  fields.add_status(200);
  fields.add("X-RateLimit-Limit", "Ten");
  fields.add("empty", "");
  EXPECT_EQ(lines_of(fields), ":status=200\nx-ratelimit-limit=Ten\nempty=\n");
  EXPECT_EQ(fields.octets(), lines_of(fields).size() - 2 * fields.size());
  EXPECT_TRUE(fields.contains("x-ratelimit-limit"));
  EXPECT_FALSE(fields.contains("ten"));
  fields.clear();
  EXPECT_EQ(fields.size(), 0U);
  EXPECT_EQ(fields.octets(), 0U);
}

TEST(Http2FieldsTest, AddsTheFieldsOfAnHttp1HeadExceptConnectionFields) {
  Http2Fields fields;
  fields.add_lines(
      "Server: a\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nProxy-Connection: close\r\n"
      "Transfer-Encoding: chunked\r\nUpgrade: h2c\r\nVia:1.1 b\r\n\r\nBody: no field\r\n");
  EXPECT_EQ(lines_of(fields), "server=a\nvia=1.1 b\n");
  fields.clear();
  fields.add_lines("last: line without an end");
  EXPECT_EQ(lines_of(fields), "last=line without an end\n");
}

TEST(Http2FieldsTest, AddsOnlyTheValidTrailersOfAChunkedBody) {
  Http2Fields fields;
  fields.add_trailers(
      "Grpc-Status: 0\r\nno field\r\n: nameless\r\nbad name: 1\r\nContent-Length: 7\r\nTE: trailers\r\n"
      "Connection: x\r\nTransfer-Encoding: chunked\r\nHost: a\r\nX-Sum:\t 9 \t\r\n\r\n");
  EXPECT_EQ(lines_of(fields), "grpc-status=0\nx-sum=9\n");
}

TEST(Http2FieldsTest, AddsOnlyTheEndToEndFieldsOfAResponse) {
  ResponseHead head;
  ASSERT_FALSE(
      parse_response_head("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: X-Hop\r\nX-Hop: 1\r\nETag: "
                          "\"e\"\r\nSet-Cookie: a\r\n"
                          "Set-Cookie: b\r\nUpgrade: x\r\n\r\n",
                          false, head));
  Http2Fields fields;
  fields.add_forwarded(head.fields);
  EXPECT_EQ(lines_of(fields), "etag=\"e\"\nset-cookie=a\nset-cookie=b\n");
}

TEST(Http2RequestTextTest, RequestBecomesAnHttp1Head) {
  EXPECT_EQ(head_of({{":method", "GET"},
                     {":scheme", "https"},
                     {":path", "/a?b=c"},
                     {":authority", "example.com"},
                     {"accept", "*/*"},
                     {"x-empty", ""}}),
            "GET /a?b=c HTTP/1.1\r\nhost: example.com\r\naccept: */*\r\nx-empty: \r\n\r\n");
}

TEST(Http2RequestTextTest, SeveralCookieFieldsAreJoinedIntoOne) {
  EXPECT_EQ(head_of({{":method", "GET"},
                     {":path", "/"},
                     {"cookie", "a=1"},
                     {"accept", "x"},
                     {"cookie", "b=2"},
                     {"cookie", "c=3"}}),
            "GET / HTTP/1.1\r\naccept: x\r\ncookie: a=1; b=2; c=3\r\n\r\n");
}

TEST(Http2RequestTextTest, HostIsReadFromTheAuthorityOrTheHostField) {
  const std::string head = "GET / HTTP/1.1\r\nhost: a.example\r\n\r\n";
  EXPECT_EQ(head_of({{":method", "GET"}, {":path", "/"}, {":authority", "a.example"}}), head);
  EXPECT_EQ(head_of({{":method", "GET"}, {":path", "/"}, {"host", "a.example"}}), head);
  EXPECT_EQ(head_of({{":method", "GET"}, {":path", "/"}, {":authority", "a.example"}, {"host", "A.Example"}}),
            head);
}

TEST(Http2RequestTextTest, RejectsTwoDifferentHosts) {
  EXPECT_EQ(head_of({{":method", "GET"}, {":path", "/"}, {":authority", "a"}, {"host", "b"}}), kHostsDiffer);
  EXPECT_EQ(head_of({{":method", "GET"}, {":path", "/"}, {"host", "a"}, {"host", "a"}}), kHostsDiffer);
  EXPECT_EQ(head_of({{":method", "GET"}, {":path", "/"}, {":authority", ""}, {"host", "b"}}), kHostsDiffer);
}

TEST(Http2RequestTextTest, RejectsOtherSchemesThanHttpAndPathsWithoutASlash) {
  EXPECT_EQ(head_of({{":method", "GET"}, {":scheme", "foo"}, {":path", "/"}}),
            ":scheme is neither http nor https");
  EXPECT_EQ(head_of({{":method", "GET"}, {":scheme", "https"}, {":path", "http://b/"}, {":authority", "a"}}),
            ":path does not begin with a slash");
  EXPECT_EQ(head_of({{":method", "OPTIONS"}, {":scheme", "http"}, {":path", "*"}}),
            "OPTIONS * HTTP/1.1\r\n\r\n");
}

TEST(Http2RequestTextTest, WritesTheAuthorityAsTargetOfConnect) {
  EXPECT_EQ(head_of({{":method", "CONNECT"}, {":authority", "a.example:443"}}),
            "CONNECT a.example:443 HTTP/1.1\r\nhost: a.example:443\r\n\r\n");
}

TEST(Http2RequestTextTest, WritesAnExtendedConnectAsTheHandshakeOfAWebSocket) {
  const auto text = request({{":method", "CONNECT"},
                             {":protocol", "WebSocket"},
                             {":scheme", "https"},
                             {":path", "/chat"},
                             {":authority", "a"},
                             {"sec-websocket-version", "13"},
                             {"sec-websocket-key", "the client's"}});
  EXPECT_TRUE(text.opens_websocket());
  EXPECT_EQ(text.fault(), nullptr);
  const auto head = text.head(std::nullopt, "key");
  EXPECT_EQ(head,
            "GET /chat HTTP/1.1\r\nhost: a\r\nsec-websocket-version: 13\r\nconnection: upgrade\r\n"
            "upgrade: websocket\r\nsec-websocket-key: key\r\n\r\n");
  EXPECT_EQ(text.head(5, "key"), head) << "octets behind the head belong to the WebSocket";
}

TEST(Http2RequestTextTest, ExtendedConnectForAnotherProtocolOpensNoWebSocket) {
  const auto text =
      request({{":method", "CONNECT"}, {":protocol", "connect-udp"}, {":path", "/"}, {":authority", "a"}});
  EXPECT_FALSE(text.opens_websocket());
  EXPECT_EQ(text.head(0, "key"), "CONNECT / HTTP/1.1\r\nhost: a\r\n\r\n");
}

TEST(Http2RequestTextTest, WebSocketRequestWithAContentLengthIsRejected) {
  EXPECT_EQ(head_of({{":method", "CONNECT"},
                     {":protocol", "websocket"},
                     {":path", "/"},
                     {":authority", "a"},
                     {"content-length", "1"}}),
            "a request for a WebSocket has a Content-Length");
}

TEST(Http2FieldsTest, AnswerToAnExtendedConnectHasStatus200InPlaceOf101) {
  constexpr std::string_view kSwitching =
      "HTTP/1.1 101 Switching\r\nConnection: upgrade, X-Hop\r\nUpgrade: websocket\r\nX-Hop: 1\r\n"
      "Sec-WebSocket-Accept: a\r\nSec-WebSocket-Protocol: chat\r\nX-Kept: yes\r\n\r\n";
  ResponseHead head;
  ASSERT_FALSE(parse_response_head(kSwitching, false, head));
  Http2Fields fields;
  fields.add_websocket_response(head.fields);
  EXPECT_EQ(lines_of(fields), ":status=200\nsec-websocket-protocol=chat\nx-kept=yes\n");
}

TEST(Http2RequestTextTest, RequestGetsTheBodyFramingOfHttp1) {
  const Pairs plain{{":method", "POST"}, {":path", "/"}};
  EXPECT_EQ(head_of(plain, 0), "POST / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(head_of(plain, 12), "POST / HTTP/1.1\r\ncontent-length: 12\r\n\r\n");
  EXPECT_EQ(head_of(plain, std::nullopt), "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n");
  const Pairs with_length{{":method", "POST"}, {":path", "/"}, {"content-length", "9"}};
  for (const std::optional<std::uint64_t> body :
       {std::optional<std::uint64_t>{}, std::optional<std::uint64_t>{9}})
    EXPECT_EQ(head_of(with_length, body), "POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\n");
}

TEST(Http2RequestTextTest, FieldsBeyondTheMaximumHeadSizeAreCountedButNotKept) {
  // The size of a field is the length of its name and value, plus 32 octets.
  auto text = request({{":method", "GET"}, {":path", "/"}}, 7 + 3 + 32 + 5 + 1 + 32 + 1 + 1 + 32);
  EXPECT_EQ(text.size(), 80U);
  text.add("a", "b");
  EXPECT_EQ(text.size(), 114U);
  EXPECT_FALSE(text.is_too_large());
  text.add("c", std::string(1000, 'd'));
  EXPECT_TRUE(text.is_too_large());
  EXPECT_EQ(text.size(), 114U + 1033U) << "counts fields that it does not keep";
  EXPECT_EQ(text.head(0), "GET / HTTP/1.1\r\na: b\r\n\r\n");
}

// The codec rejects line ends in names and values. The HTTP/1.1 parser rejects everything else that HTTP/1.1
// cannot carry.
TEST(Http2RequestTextTest, RequestThatHttp1CannotCarryIsRejectedByTheParser) {
  const auto refused = [](const Pairs& fields) {
    const auto text = head_of(fields);
    RequestHead head;
    return parse_request_head(text, head).has_value();
  };
  EXPECT_FALSE(refused({{":method", "GET"}, {":path", "/"}, {":authority", "a"}}));
  EXPECT_TRUE(refused({{":method", "GET"}, {":path", "/a b"}, {":authority", "a"}}));
  EXPECT_TRUE(refused({{":method", "GET"}, {":path", "/ HTTP/1.1"}, {":authority", "a"}}));
  EXPECT_TRUE(refused({{":method", "G T"}, {":path", "/"}, {":authority", "a"}}));
  EXPECT_TRUE(refused({{":method", "GET"}, {":path", "/"}, {":authority", "a b"}}));
  EXPECT_TRUE(refused({{":method", "GET"}, {":path", "/"}, {":authority", "a@b"}}));
  EXPECT_TRUE(refused({{":method", "GET"}, {":path", "/"}})) << "a request needs a host";
  EXPECT_TRUE(refused({{":method", "GET"}, {":path", "/"}, {":authority", "a"}, {"content-length", "x"}}));
  EXPECT_TRUE(refused({{":method", "GET"}, {":path", "/"}, {":authority", "a"}, {"x", "a\x01"}}));
}

TEST(Http2FieldsTest, Http1HeadBecomesAnHttp2Request) {
  Http2Fields fields;
  const auto length = fields.add_request(
      "POST /a?b HTTP/1.1\r\nHost: api.example:8443\r\nContent-Length: 5\r\nX-A: 1\r\nConnection: x\r\n\r\n",
      true);
  EXPECT_EQ(
      lines_of(fields),
      ":method=POST\n:scheme=https\n:path=/a?b\n:authority=api.example:8443\ncontent-length=5\nx-a=1\n");
  EXPECT_EQ(length, 5U);
}

TEST(Http2FieldsTest, ReportsWhetherARequestHasABody) {
  Http2Fields fields;
  EXPECT_EQ(fields.add_request("GET / HTTP/1.1\r\nHost: a\r\n\r\n", false), 0U);
  EXPECT_EQ(fields.add_request("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", false), 0U);
  EXPECT_EQ(
      fields.add_request("PUT / HTTP/1.1\r\nHost: a\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n", false),
      std::nullopt);
}

TEST(Http2FieldsTest, RequestToAGrpcServerAsksForTrailers) {
  Http2Fields call, other;
  call.add_request("POST /s/m HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc+proto\r\n\r\n", false);
  other.add_request("POST /s/m HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\r\n", false);
  EXPECT_THAT(lines_of(call), HasSubstr("\nte=trailers\n"));
  EXPECT_FALSE(other.contains("te"));
}

// Writes a response as text. The response has the given fields, body and trailers.
std::string text_of(const Pairs& fields, std::string_view body, const Pairs& trailers = {},
                    bool to_head = false, std::size_t most = 1 << 14) {
  Http2ResponseText response(to_head, most);
  std::string text;
  for (const auto& [name, value] : fields) response.add(name, value);
  response.end_fields(text);
  response.add_body(body, text);
  for (const auto& [name, value] : trailers) response.add(name, value);
  if (trailers.size() != 0) response.end_fields(text);
  response.end(text);
  return text;
}

TEST(Http2ResponseTextTest, ResponseBodyIsWrittenInChunks) {
  EXPECT_EQ(text_of({{":status", "200"}, {"server", "s"}}, "0123456789abcdef"),
            "HTTP/1.1 200 OK\r\nserver: s\r\n\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n");
}

TEST(Http2ResponseTextTest, KeepsTheContentLengthAndTheTrailers) {
  EXPECT_EQ(text_of({{":status", "200"}, {"content-length", "3"}}, "abc", {{"x", "y"}}),
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n");
}

TEST(Http2ResponseTextTest, WritesTrailersBehindTheLastChunk) {
  EXPECT_EQ(text_of({{":status", "200"}}, "a", {{"grpc-status", "0"}, {"grpc-message", ""}}),
            "HTTP/1.1 200 OK\r\n\r\n1\r\na\r\n0\r\ngrpc-status: "
            "0\r\ngrpc-message: \r\n\r\n");
}

TEST(Http2ResponseTextTest, ResponseWithoutABodyHasNoBodyFraming) {
  EXPECT_EQ(text_of({{":status", "204"}}, ""), "HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_EQ(text_of({{":status", "304"}}, ""), "HTTP/1.1 304 Not Modified\r\n\r\n");
  EXPECT_EQ(text_of({{":status", "200"}}, "", {}, true), "HTTP/1.1 200 OK\r\n\r\n");
}

TEST(Http2ResponseTextTest, WritesInterimHeadsBeforeTheFinalHead) {
  Http2ResponseText response(false, 1 << 14);
  std::string text;
  for (const auto* status : {"103", "200"}) {
    response.add(":status", status);
    response.add("link", "</a>");
    response.end_fields(text);
  }
  EXPECT_EQ(text,
            "HTTP/1.1 103 Unknown\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nlink: "
            "</a>\r\n\r\n");
}

// The text exceeds the bound of 1,000 octets, so the HTTP/1.1 parser that reads it rejects the head as too
// large.
TEST(Http2ResponseTextTest, TooLargeHeadIsPaddedBeyondTheBoundAndHasNoEnd) {
  const std::string large(600, 'x');
  const auto text = text_of({{":status", "200"}, {"a", large}, {"b", large}}, "", {}, false, 1000);
  EXPECT_GT(text.size(), 1000U);
  EXPECT_LT(text.size(), 2000U);
  EXPECT_EQ(text.find("\r\n\r\n"), std::string::npos);
}

}  // namespace
}  // namespace weir::http
