#include "weir/http/forwarding.hpp"

#include "weir/http/head_parser.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

constexpr ForwardedBy kStranger{.peer = "203.0.113.7", .proto = "https", .request_id = "id-1"};
constexpr ForwardedBy kTrusted{
    .peer = "10.0.0.1", .proto = "https", .request_id = "id-1", .peer_trusted = true};

// Returns the head that the upstream receives for a request with this head (given without its empty line).
std::string forwarded(const std::string& bytes, const ForwardedBy& by = kStranger) {
  RequestHead head;
  const auto whole = bytes + "\r\n\r\n";
  if (const auto fault = parse_request_head(whole, head)) return fault->what;
  std::string out;
  write_request_head(out, head, by);
  return out;
}

// Returns the head that the client receives. `bytes` is the upstream's response head, `request_bytes` the
// head of the request.
std::string answered(const std::string& bytes, const std::string& request_bytes = "GET / HTTP/1.1\r\nHost: a",
                     bool keep_alive = true) {
  RequestHead request;
  ResponseHead response;
  const auto whole_request = request_bytes + "\r\n\r\n";
  const auto whole = bytes + "\r\n\r\n";
  if (const auto fault = parse_request_head(whole_request, request)) return fault->what;
  if (const auto fault = parse_response_head(whole, request.method == "HEAD", response)) return fault->what;
  const auto form = response_form(request, response, keep_alive);
  std::string out;
  write_response_head(out, response, form, {}, "now");
  return out;
}

std::string without_date(std::string head) {
  constexpr std::string_view kOurs = "Date: now\r\n";
  const auto at = head.find(kOurs);
  return at == std::string::npos ? head + "(without a date)" : head.erase(at, kOurs.size());
}

std::string without_ours(std::string head) {
  for (const char* ours : {"X-Forwarded-For: 203.0.113.7\r\n", "X-Forwarded-Proto: https\r\n",
                           "X-Forwarded-Host: a\r\n", "X-Request-ID: id-1\r\n", "Via: 1.1 weir\r\n"}) {
    const auto at = head.find(ours);
    if (at == std::string::npos) return head + "(without " + ours + ")";
    head.erase(at, std::string_view(ours).size());
  }
  return head;
}

TEST(WriteRequestHead, ForwardsTargetAndFieldsAndAddsForwardingFields) {
  EXPECT_EQ(forwarded("GET /a%2Fb/c/../?d HTTP/1.1\r\nhost: a\r\nAccept:  x \r\nX-Two: 1\r\nX-Two: 2"),
            "GET /a%2Fb/c/../?d HTTP/1.1\r\n"
            "Host: a\r\n"
            "Accept: x\r\n"
            "X-Two: 1\r\n"
            "X-Two: 2\r\n"
            "X-Forwarded-For: 203.0.113.7\r\n"
            "X-Forwarded-Proto: https\r\n"
            "X-Forwarded-Host: a\r\n"
            "X-Request-ID: id-1\r\n"
            "Via: 1.1 weir\r\n"
            "\r\n");
}

// Returns the head that weir forwards for a request with the header fields `lines` from the peer of `by`.
// Only trusted peers may send usual_trusted_fields().
std::string forwarded_of(const std::string& lines, ForwardedBy by) {
  const auto names = usual_trusted_fields();
  by.trusted_fields = &names;
  return forwarded("GET / HTTP/1.1\r\nHost: a\r\n" + lines, by);
}

TEST(WriteRequestHead, IdentityFieldsFromAnUntrustedPeerAreNotForwarded) {
  EXPECT_EQ(
      without_ours(forwarded_of("X-A: 1\r\nX-Real-IP: 9.9.9.9\r\nx-forwarded-user: root\r\nX-B: 2\r\n"
                                "PROXY: evil:80\r\nX-Original-URL: /admin\r\nX-SSL-Client-Verify: SUCCESS",
                                kStranger)),
      "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nX-B: 2\r\n\r\n");
}

TEST(WriteRequestHead, IdentityFieldsFromAnUntrustedPeerAreNotForwardedInAnySpelling) {
  auto by = kStranger;
  by.underscores = true;
  EXPECT_EQ(
      without_ours(forwarded_of("X_Real_IP: 9.9.9.9\r\nX_Forwarded_For: 1.1.1.1\r\nX.Real.IP: 8.8.8.8\r\n"
                                "x_a: 1",
                                by)),
      "GET / HTTP/1.1\r\nHost: a\r\nx_a: 1\r\n\r\n");
}

TEST(WriteRequestHead, IdentityFieldsFromATrustedPeerAreForwarded) {
  const auto head = forwarded_of("X-Real-IP: 9.9.9.9\r\nX-Forwarded-User: root", kTrusted);
  EXPECT_NE(head.find("\r\nX-Real-IP: 9.9.9.9\r\nX-Forwarded-User: root\r\n"), std::string::npos) << head;
}

TEST(WriteRequestHead, DropsHopByHopFields) {
  EXPECT_EQ(without_ours(forwarded(
                "GET / HTTP/1.1\r\nHost: a\r\nConnection: X-Secret, close\r\nX-Secret: 1\r\nKeep-Alive: 1\r\n"
                "Proxy-Connection: x\r\nTE: trailers\r\nTrailer: X\r\nUpgrade: h2c\r\nX-Stays: 1")),
            "GET / HTTP/1.1\r\nHost: a\r\nX-Stays: 1\r\n\r\n");
}

TEST(WriteRequestHead, ConnectionFieldCannotRemoveHostAndBodyFraming) {
  EXPECT_EQ(
      without_ours(forwarded("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
                             "Connection: Content-Length, Host, Transfer-Encoding, X-Forwarded-For, Via")),
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(without_ours(forwarded("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n"
                                   "Connection: Transfer-Encoding")),
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
}

TEST(WriteRequestHead, ForwardsContentLengthZero) {
  EXPECT_EQ(without_ours(forwarded("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 000")),
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
}

constexpr const char* kClaims =
    "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 2.2.2.2, 3.3.3.3\r\n"
    "X-Forwarded-For:\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: b\r\nForwarded: for=4.4.4.4\r\n"
    "X-Request-ID: theirs\r\nVia: 1.0 p\r\nVia: 1.1 q";

TEST(WriteRequestHead, ReplacesForwardingFieldsFromUntrustedPeers) {
  EXPECT_EQ(forwarded(kClaims),
            "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Proto: https\r\n"
            "X-Forwarded-Host: a\r\nX-Request-ID: id-1\r\nVia: 1.0 p, 1.1 q, 1.1 weir\r\n\r\n");
}

TEST(WriteRequestHead, AppendsToForwardingFieldsFromTrustedPeers) {
  EXPECT_EQ(forwarded(kClaims, kTrusted),
            "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: b\r\n"
            "Forwarded: for=4.4.4.4\r\nX-Request-ID: theirs\r\n"
            "X-Forwarded-For: 1.1.1.1, 2.2.2.2, 3.3.3.3, 10.0.0.1\r\nVia: 1.0 p, 1.1 q, 1.1 weir\r\n\r\n");
}

// A trusted proxy may forward the client's Connection field. The names in this field must not remove the
// forwarding fields.
TEST(WriteRequestHead, ConnectionFieldCannotRemoveTheForwardingFieldsThatWeirWrites) {
  EXPECT_EQ(forwarded("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: b\r\n"
                      "X-Request-ID: theirs\r\nX-Forwarded-For: 1.1.1.1\r\n"
                      "Connection: X-Forwarded-Proto, X-Forwarded-Host, X-Request-ID, X-Forwarded-For",
                      kTrusted),
            "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1, 10.0.0.1\r\nX-Forwarded-Proto: https\r\n"
            "X-Forwarded-Host: a\r\nX-Request-ID: id-1\r\nVia: 1.1 weir\r\n\r\n");
}

TEST(WriteRequestHead, WritesTheForwardedFieldIfConfigured) {
  auto by = kStranger;
  by.add_forwarded = true;
  EXPECT_NE(forwarded("GET / HTTP/1.1\r\nHost: a:80", by)
                .find("\r\nForwarded: for=203.0.113.7;proto=https;host=\"a:80\"\r\n"),
            std::string::npos);
  by.peer = "2001:db8::1";
  EXPECT_NE(forwarded("GET / HTTP/1.1\r\nHost: a", by)
                .find("\r\nForwarded: for=\"[2001:db8::1]\";proto=https;host=\"a\"\r\n"),
            std::string::npos);
}

// The peer of a unix socket has no address. Forwarded has the word "unknown" for such a peer (RFC 7239 §6.3).
// X-Forwarded-For has no such word.
TEST(WriteRequestHead, WritesNoAddressForPeersOnUnixSockets) {
  auto by = kTrusted;
  by.peer = {};
  by.add_forwarded = true;
  const auto ours = [&](const std::string& theirs) {
    return forwarded("GET / HTTP/1.1\r\nHost: a" + theirs, by);
  };
  EXPECT_EQ(ours("").find("X-Forwarded-For"), std::string::npos);
  EXPECT_NE(ours("").find("\r\nForwarded: for=unknown;proto=https;"), std::string::npos);
  EXPECT_NE(ours("\r\nX-Forwarded-For: 1.1.1.1").find("\r\nX-Forwarded-For: 1.1.1.1\r\n"), std::string::npos);
}

// CGI and WSGI programs read "X_API_Key" and "X-API-Key" as one variable. weir itself reads only "X-API-Key",
// so the other spelling must not reach such programs.
TEST(WriteRequestHead, DropsFieldNamesWithUnderscoresUnlessTheyAreAllowed) {
  const std::string twins =
      "X_API_Key: A\r\nX-Stays: 1\r\nX_Forwarded_For: 6.6.6.6\r\nTransfer_Encoding: chunked\r\n_: 1\r\n";
  const auto head = "GET / HTTP/1.1\r\nHost: a\r\n" + twins + "X-Also: a_b";
  EXPECT_EQ(without_ours(forwarded(head)), "GET / HTTP/1.1\r\nHost: a\r\nX-Stays: 1\r\nX-Also: a_b\r\n\r\n");
  EXPECT_EQ(forwarded(head, kTrusted).find("X_"), std::string::npos);
  auto by = kStranger;
  by.underscores = true;
  EXPECT_EQ(without_ours(forwarded(head, by)),
            "GET / HTTP/1.1\r\nHost: a\r\n" + twins + "X-Also: a_b\r\n\r\n");
}

TEST(WriteRequestHead, WritesTheReceivedHttpVersionInVia) {
  EXPECT_NE(forwarded("GET / HTTP/1.0\r\nHost: a").find("GET / HTTP/1.1\r\n"), std::string::npos);
  EXPECT_NE(forwarded("GET / HTTP/1.0\r\nHost: a").find("\r\nVia: 1.0 weir\r\n"), std::string::npos);
}

// weir forwards an HTTP/1.0 request as HTTP/1.1, and servers reject HTTP/1.1 with an empty Host.
TEST(WriteRequestHead, RequestWithoutAHostIsForwardedWithTheHostOfTheUpstreamServer) {
  auto by = kStranger;
  by.host = "10.0.0.9:80";
  for (const char* head : {"GET / HTTP/1.0", "GET / HTTP/1.1\r\nHost:"}) {
    const auto out = forwarded(head, by);
    EXPECT_TRUE(out.starts_with("GET / HTTP/1.1\r\nHost: 10.0.0.9:80\r\n")) << out;
    EXPECT_NE(out.find("\r\nX-Forwarded-Host: \r\n"), std::string::npos) << "the client sent no Host";
  }
}

TEST(WriteRequestHead, HostThatWeirReplacesIsForwardedInXForwardedHostAndForwarded) {
  auto by = kStranger;
  by.host = "api.internal";
  by.add_forwarded = true;
  for (const char* head : {"GET / HTTP/1.1\r\nHost: a:81", "GET http://a:81/ HTTP/1.1\r\nHost: b"}) {
    const auto out = forwarded(head, by);
    EXPECT_TRUE(out.starts_with("GET / HTTP/1.1\r\nHost: api.internal\r\n")) << out;
    EXPECT_NE(out.find("\r\nX-Forwarded-Host: a:81\r\n"), std::string::npos) << out;
    EXPECT_NE(out.find(";host=\"a:81\"\r\n"), std::string::npos) << out;
  }
}

TEST(WriteRequestHead, WritesTheRewrittenPathAndTheFieldsThatTheRouteAdds) {
  auto by = kStranger;
  by.path = "/v2/x";
  by.added = "X-A: 1\r\nX-B: 2\r\n";
  EXPECT_EQ(without_ours(forwarded("GET /x?y=1 HTTP/1.1\r\nHost: a\r\nX-C: 3", by)),
            "GET /v2/x?y=1 HTTP/1.1\r\nHost: a\r\nX-C: 3\r\nX-A: 1\r\nX-B: 2\r\n\r\n");
  for (const char* line : {"GET /x", "GET /x?", "GET http://a/x", "GET http://a"})
    EXPECT_TRUE(
        forwarded(std::string(line) + " HTTP/1.1\r\nHost: a", by).starts_with("GET /v2/x HTTP/1.1\r\n"))
        << line;
  EXPECT_TRUE(forwarded("GET http://a?q HTTP/1.1\r\nHost: a", by).starts_with("GET /v2/x?q HTTP/1.1\r\n"));
}

TEST(WriteRequestHead, ConvertsAbsoluteFormToOriginForm) {
  const std::pair<const char*, const char*> cases[] = {
      {"GET http://a/x?y=http://z/ ", "GET /x?y=http://z/ HTTP/1.1\r\nHost: a\r\n"},
      {"GET http://a:81 ", "GET / HTTP/1.1\r\nHost: a:81\r\n"},
      {"GET http://a?q ", "GET /?q HTTP/1.1\r\nHost: a\r\n"},
      {"GET http://a/x? ", "GET /x? HTTP/1.1\r\nHost: a\r\n"},
      {"GET https://a//x/../y ", "GET //x/../y HTTP/1.1\r\nHost: a\r\n"},
      {"OPTIONS http://a ", "OPTIONS * HTTP/1.1\r\nHost: a\r\n"},
      {"OPTIONS http://a/ ", "OPTIONS / HTTP/1.1\r\nHost: a\r\n"},
      {"OPTIONS http://a? ", "OPTIONS /? HTTP/1.1\r\nHost: a\r\n"},
      {"OPTIONS * ", "OPTIONS * HTTP/1.1\r\nHost: other\r\n"},
      {"GET /? ", "GET /? HTTP/1.1\r\nHost: other\r\n"},
  };
  for (const auto& [line, expected] : cases) {
    const auto out = forwarded(std::string(line) + "HTTP/1.1\r\nHost: other");
    EXPECT_TRUE(out.starts_with(expected)) << line << "became\n" << out;
  }
}

TEST(WriteResponseHead, ForwardsStatusAndFieldsOfAResponseExceptHopByHopFields) {
  EXPECT_EQ(
      without_date(answered("HTTP/1.0 404 Not There\r\nContent-Length: 3\r\nServer: s\r\nKeep-Alive: 1\r\n"
                            "Connection: x-secret\r\nX-Secret: 1\r\nUpgrade: h2c\r\nTrailer: x")),
      "HTTP/1.1 404 Not There\r\nServer: s\r\nContent-Length: 3\r\n\r\n");
}

// RFC 9110 §6.6.1: a recipient may add Date to a response without it.
TEST(WriteResponseHead, AddsADateFieldWithTheTimeOfReceiptIfThereIsNone) {
  EXPECT_EQ(answered("HTTP/1.1 304 Same\r\ndate: then"), "HTTP/1.1 304 Same\r\ndate: then\r\n\r\n");
  EXPECT_EQ(answered("HTTP/1.1 304 Same\r\nETag: 1"), "HTTP/1.1 304 Same\r\nETag: 1\r\nDate: now\r\n\r\n");
  EXPECT_EQ(answered("HTTP/1.1 304 Same\r\nDate: then\r\nConnection: date"),
            "HTTP/1.1 304 Same\r\nDate: now\r\n\r\n");
}

TEST(WriteResponseHead, WritesTheFieldsThatWeirAddsBeforeTheBodyFraming) {
  ResponseHead response;
  ASSERT_FALSE(parse_response_head("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", false, response));
  std::string out = "before ";
  write_response_head(out, response, {.framing = Framing::Length}, "X: y\r\n", "now");
  EXPECT_EQ(out, "before HTTP/1.1 200 OK\r\nDate: now\r\nX: y\r\nContent-Length: 3\r\n\r\n");
}

TEST(WriteResponseHead, BodyOfUnknownLengthIsSentInChunksExceptToHttp10Clients) {
  for (const char* framing : {"", "\r\nTransfer-Encoding: chunked"}) {
    const auto answer = std::string("HTTP/1.1 200 OK") + framing;
    EXPECT_EQ(without_date(answered(answer)), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    EXPECT_EQ(without_date(answered(answer, "GET / HTTP/1.0\r\nConnection: keep-alive")),
              "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
  }
}

TEST(WriteResponseHead, WritesTheConnectionFieldThatEachHttpVersionNeeds) {
  const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 3";
  EXPECT_EQ(without_date(answered(answer, "GET / HTTP/1.0\r\nConnection: keep-alive")),
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(without_date(answered(answer, "GET / HTTP/1.1\r\nHost: a", false)),
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n");
}

TEST(WriteResponseHead, KeepsContentLengthInResponsesToHeadAndIn304) {
  EXPECT_EQ(without_date(answered("HTTP/1.1 200 OK\r\nContent-Length: 3", "HEAD / HTTP/1.1\r\nHost: a")),
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(without_date(answered("HTTP/1.1 304 Not Modified\r\nContent-Length: 3")),
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(
      without_date(answered("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", "HEAD / HTTP/1.1\r\nHost: a")),
      "HTTP/1.1 200 OK\r\n\r\n");
  EXPECT_EQ(without_date(answered("HTTP/1.1 200 OK\r\nContent-Length: 0")),
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

TEST(WriteResponseHead, WritesNoContentLengthWith204) {
  EXPECT_EQ(without_date(answered("HTTP/1.1 204 No Content\r\nContent-Length: 3")),
            "HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_EQ(without_date(answered("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked")),
            "HTTP/1.1 204 No Content\r\n\r\n");
}

// RFC 9112 §6.3: Transfer-Encoding overrides Content-Length, so Content-Length must not be forwarded.
TEST(WriteResponseHead, ResponseWithoutABodyIsForwardedWithoutItsAmbiguousContentLength) {
  const std::string to_head = "HEAD / HTTP/1.1\r\nHost: a";
  for (const char* fields : {"Content-Length: 3\r\nTransfer-Encoding: chunked", "Content-Length: 3x",
                             "Content-Length: 3\r\nContent-Length: 4", "Transfer-Encoding: gzip"}) {
    EXPECT_EQ(without_date(answered(std::string("HTTP/1.1 200 OK\r\n") + fields, to_head)),
              "HTTP/1.1 200 OK\r\n\r\n")
        << fields;
    EXPECT_EQ(without_date(answered(std::string("HTTP/1.1 304 Same\r\n") + fields)),
              "HTTP/1.1 304 Same\r\n\r\n")
        << fields;
  }
}

// RFC 9110 §15.5.22: the client must learn which protocols the server requires.
TEST(WriteResponseHead, ForwardsTheUpgradeFieldOfStatus426) {
  const std::string answer = "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nConnection: Upgrade\r\n";
  EXPECT_EQ(without_date(answered(answer + "Upgrade: websocket")),
            "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nUpgrade: websocket\r\n"
            "Connection: upgrade\r\n\r\n");
  EXPECT_EQ(without_date(answered(answer + "Upgrade: TLS/1.2\r\nupgrade: IRC/6.9, x",
                                  "GET / HTTP/1.1\r\nHost: a", false)),
            "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nUpgrade: TLS/1.2, IRC/6.9, x\r\n"
            "Connection: close, upgrade\r\n\r\n");
  EXPECT_EQ(without_date(answered(answer + "Upgrade: a", "GET / HTTP/1.0\r\nConnection: keep-alive")),
            "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nUpgrade: a\r\n"
            "Connection: keep-alive, upgrade\r\n\r\n");
  EXPECT_EQ(without_date(answered(answer + "Upgrade:")),
            "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n");
}

TEST(WriteResponseHead, DropsTheUpgradeFieldOfOtherStatuses) {
  for (const char* status : {"200 OK", "403 No", "503 Busy", "505 Old"})
    EXPECT_EQ(without_date(answered(std::string("HTTP/1.1 ") + status +
                                    "\r\nContent-Length: 0\r\nConnection: upgrade\r\nUpgrade: h2c")),
              std::string("HTTP/1.1 ") + status + "\r\nContent-Length: 0\r\n\r\n");
}

// weir copies adjacent lines in one piece. Here white space follows the values of the received fields, but
// each line that weir writes must end in CRLF.
TEST(WriteResponseHead, EndsEveryLineWithCrLfEvenIfTheServerDoesNot) {
  for (const std::string fields :
       {"A: 1\nB: 2\nC: 3", "A: 1\r\nB: 2\nC: 3", "A: 1 \nB: 2 \nC: 3", "A:1\nB:\t2\t\nC:  3",
        "A: 1\r\nB: 2 \nC: 3", "A: 1\nContent-Length: 9\nB: 2\nC: 3"})
    EXPECT_EQ(without_date(answered("HTTP/1.1 204 No\n" + fields)),
              "HTTP/1.1 204 No\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n")
        << fields;
}

TEST(WriteInterimHead, DropsHopByHopFieldsOfInterimResponses) {
  ResponseHead response;
  const std::string bytes =
      "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nConnection: x\r\nX: y\r\nContent-Length: 3\r\n\r\n";
  ASSERT_FALSE(parse_response_head(bytes, false, response));
  std::string out;
  write_interim_head(out, response);
  EXPECT_EQ(out, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n");
}

// The test checks the size that weir reserves for a head (text_writer.hpp): with assertions enabled, a longer
// head aborts the test.
TEST(WriteRequestHead, ReservesEnoughRoomForTheLongestHead) {
  for (const std::string name : {"X-Forwarded-For", "Via", "A"})
    for (const std::size_t fields : {0U, 1U, 50U, 110U})
      for (const std::size_t size : {0U, 1U, 200U}) {
        const std::string authority(200, 'h');
        std::string head = "GET http://" + authority + "/ HTTP/1.1\r\nHost: " + authority;
        for (std::size_t i = 0; i < fields; ++i) head += "\r\n" + name + ":" + std::string(size, 'v');
        auto by = kTrusted;
        by.peer = "2001:db8:1111:2222:3333:4444:5555:6666";
        by.add_forwarded = true;
        const auto out = forwarded(head, by);
        EXPECT_TRUE(out.ends_with("\r\n\r\n")) << out;
        EXPECT_GE(out.size(), fields * size + 3 * authority.size());
      }
}

// weir must be able to parse each head that it writes, with the same framing and only its own hop-by-hop
// fields.
TEST(WriteRequestHead, ParserAcceptsEveryForwardedHead) {
  for (const char* framing : {"", "\r\nContent-Length: 7", "\r\nTransfer-Encoding: chunked"}) {
    const auto original =
        std::string("POST http://a/x?y HTTP/1.1\r\nHost: b\r\nConnection: x\r\nX: y") + framing;
    const auto out = forwarded(original, kTrusted);
    RequestHead before;
    RequestHead after;
    const auto whole = original + "\r\n\r\n";
    ASSERT_FALSE(parse_request_head(whole, before));
    ASSERT_FALSE(parse_request_head(out, after)) << out;
    EXPECT_EQ(after.framing, before.framing);
    EXPECT_EQ(after.content_length, before.content_length);
    EXPECT_EQ(after.authority, before.authority);
    EXPECT_EQ(after.path, before.path);
    EXPECT_EQ(find_field(after.fields, "X"), nullptr);
    EXPECT_EQ(find_field(after.fields, FieldId::Connection), nullptr);
  }
}

TEST(WriteRequestHead, RequestsAnUncompressedAndWholeResponseIfWeirReadsTheResponse) {
  const std::string head =
      "GET / HTTP/1.1\r\nHost: a\r\naccept-encoding: gzip\r\nAccept: b\r\nRange: bytes=0-1\r\nIf-Range: c\r\n"
      "Accept-Encoding: br\r\nX-Range: d";
  auto by = kStranger;
  EXPECT_NE(forwarded(head, by).find("Range: bytes=0-1\r\nIf-Range: c\r\nAccept-Encoding: br"),
            std::string::npos);
  by.whole_and_plain = true;
  const auto out = forwarded(head, by);
  EXPECT_NE(out.find("Accept: b\r\nX-Range: d\r\nAccept-Encoding: identity\r\n"), std::string::npos) << out;
  EXPECT_EQ(out.find("gzip"), std::string::npos) << out;
  EXPECT_EQ(out.find("bytes"), std::string::npos) << out;
  EXPECT_EQ(out.find("If-Range"), std::string::npos) << out;
}

}  // namespace
}  // namespace weir::http
