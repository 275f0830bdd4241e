// Heads of responses: how weir finds the end of their bodies, and which heads are faulty.
#include "unit/http/head_words.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

struct ResponseCase {
  std::string_view head;  // without the empty line at the end
  std::string_view verdict;
};

// A macro, because as an argument of a function the text would end at its first NUL.
#define RAW(text) std::string_view(text, sizeof(text) - 1)

const ResponseCase kResponses[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 5", "200 5 keep"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0", "200 none keep"},
    {"HTTP/1.1 200 \r\nContent-Length: 5", "200 5 keep"},
    {"HTTP/1.1 200 OK", "200 until-close keep"},
    {"HTTP/1.0 200 OK", "200 until-close close"},
    {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5", "200 5 keep"},
    {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5", "200 5 close"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", "200 chunked keep"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked", "502"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity", "502"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "502"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5", "502"},
    {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked", "200 chunked close"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6", "502"},
    {"HTTP/1.1 200 OK\r\nContent-Length: five", "502"},
    {"HTTP/1.1 200 OK\r\nContent-Length: -1", "502"},
    {"HTTP/1.1 204 No Content", "204 none keep"},
    {"HTTP/1.1 204 No Content\r\nContent-Length: 0", "204 none keep"},
    {"HTTP/1.1 204 No Content\r\nContent-Length: 5", "204 none close"},
    {"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked", "204 none close"},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5", "304 none keep"},
    {"HTTP/1.1 100 Continue", "100 none keep"},
    {"HTTP/1.1 103 Early Hints\r\nLink: x", "103 none keep"},
    {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade", "101 none keep"},
    {"HTTP/1.1 404 Not \xc3\xa4", "404 until-close keep"},
    {"HTTP/1.1 999 Odd\r\nContent-Length: 1", "999 1 keep"},
    {"HTTP/1.1 000 Zero\r\nContent-Length: 1", "502"},
    {"HTTP/1.1 099 Low\r\nContent-Length: 1", "502"},
    {"HTTP/1.1 20 OK\r\nContent-Length: 1", "502"},
    {"HTTP/1.1 2000 OK\r\nContent-Length: 1", "502"},
    {"HTTP/1.1 2x0 OK\r\nContent-Length: 1", "502"},
    {"HTTP/2.0 200 OK\r\nContent-Length: 1", "502"},
    {"HTTPS/1.1 200 OK", "502"},
    {"ICY 200 OK", "502"},
    {"200 OK", "502"},
    {"", "502"},
    {"HTTP/1.1 200 OK\r\nX : y", "502"},
    {"HTTP/1.1 200 OK\r\nX: y\r\n z", "502"},
    {RAW("HTTP/1.1 200 OK\r\nX: y\0z"), "502"},
    {"HTTP/1.1 200 OK\nContent-Length: 1", "200 1 keep"},
    {"HTTP/1.1 200 OK\r\nX: a\nContent-Length: 1", "200 1 keep"},
    {"HTTP/1.1 200 OK\rContent-Length: 1", "502"},
    {"HTTP/1.1 200 OK\r\nX: a\rContent-Length: 1", "502"},
    {"HTTP/1.1 200 OK\r\nX: a\r\r\nContent-Length: 1", "502"},
    {"HTTP/1.1 200 OK\nX: a\n b", "502"},
};

TEST(ResponseHead, FindsTheBodyFramingAndRejectsHeadsWithAmbiguousFraming) {
  for (const auto& [head, expected] : kResponses) {
    const auto bytes = std::string(head) + "\r\n\r\n";
    EXPECT_EQ(response_verdict(bytes), expected) << head;
  }
}

// RFC 9112 §6.3: a response to HEAD, a 204 and a 304 end with their heads, so framing fields cannot make them
// ambiguous. The server may still send a body, so its connection is not reused.
TEST(ResponseHead, AcceptsAmbiguousFramingIfNoBodyFollows) {
  for (const char* fields :
       {"Transfer-Encoding: chunked\r\nContent-Length: 5", "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Content-Length: 5\r\nContent-Length: 6", "Content-Length: 5, 6", "Content-Length: five",
        "Content-Length:", "Content-Length: 18446744073709551619", "Transfer-Encoding: gzip",
        "Transfer-Encoding: identity", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"}) {
    const auto answer = [&](const char* status, bool to_head = false) {
      return response_verdict(std::string("HTTP/1.1 ") + status + "\r\n" + fields + "\r\n\r\n", to_head);
    };
    EXPECT_EQ(answer("200 OK"), "502") << fields;
    EXPECT_EQ(answer("205 Reset"), "502") << fields;
    EXPECT_EQ(answer("200 OK", true), "200 none close") << fields;
    EXPECT_EQ(answer("500 Oh", true), "500 none close") << fields;
    EXPECT_EQ(answer("204 No Content"), "204 none close") << fields;
    EXPECT_EQ(answer("304 Same"), "304 none close") << fields;
    EXPECT_EQ(answer("100 Continue"), "100 none close") << fields;
    EXPECT_EQ(answer("103 Early Hints"), "103 none close") << fields;
    EXPECT_EQ(answer("101 Switching Protocols"), "101 none close") << fields;
  }
}

TEST(ResponseHead, LengthIsKnownOnlyIfOneContentLengthAppliesToTheBody) {
  const auto known = [](std::string fields) {
    ResponseHead head;
    const auto bytes = "HTTP/1.1 304 Same\r\n" + fields + "\r\n";
    EXPECT_FALSE(parse_response_head(bytes, false, head));
    return head.length_known ? std::to_string(head.content_length) : "unknown";
  };
  EXPECT_EQ(known("Content-Length: 5\r\n"), "5");
  EXPECT_EQ(known("Content-Length: 0\r\n"), "0");
  EXPECT_EQ(known(""), "unknown");
  EXPECT_EQ(known("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), "unknown");
  EXPECT_EQ(known("Content-Length: 5\r\nContent-Length: 6\r\n"), "unknown");
}

TEST(ResponseHead, ResponseToHeadHasNoBody) {
  EXPECT_EQ(response_verdict("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true), "200 none keep");
  EXPECT_EQ(response_verdict("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true), "200 none keep");
  EXPECT_EQ(response_verdict("HTTP/1.1 200 OK\r\n\r\n", true), "200 none keep");
}

// RFC 9112 §2.2: weir accepts a bare LF as a line end in responses. weir rejects a bare LF in requests,
// because two servers could interpret the request differently.
TEST(ResponseHead, AcceptsLinesThatEndInLineFeed) {
  ResponseHead head;
  const std::string bytes = "HTTP/1.1 200 Fine\nX: a \nY:\tb\nContent-Length: 3\n\n";
  ASSERT_FALSE(parse_response_head(bytes, false, head));
  EXPECT_EQ(head.reason, "Fine");
  ASSERT_EQ(head.fields.size(), 3u);
  EXPECT_EQ(head.fields[0].value, "a");
  EXPECT_EQ(head.fields[1].value, "b");
  EXPECT_EQ(head.content_length, 3u);
  for (const char* request : {"GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"}) {
    RequestHead asked;
    EXPECT_TRUE(parse_request_head(request, asked)) << request;
  }
}

TEST(FindAnswerHeadEnd, FindsTheFirstEmptyLineAfterEachKindOfLineEnd) {
  for (const std::string head : {"HTTP/1.1 200 OK\r\nX: a\r\n\r\n", "HTTP/1.1 200 OK\nX: a\n\n",
                                 "HTTP/1.1 200 OK\nX: a\n\r\n", "HTTP/1.1 200 OK\r\nX: a\r\n\n"}) {
    const auto bytes = head + "body\r\n\r\n\n\n";
    EXPECT_EQ(find_answer_head_end(bytes), head.size());
    for (std::size_t seen = 0; seen < head.size(); ++seen) {
      EXPECT_EQ(find_answer_head_end(bytes.substr(0, seen)), 0u) << head << seen;
      EXPECT_EQ(find_answer_head_end(bytes, seen), head.size()) << head << seen;
    }
  }
  EXPECT_EQ(find_answer_head_end("HTTP/1.1 200 OK\r\nX: a\r\n\rY"), 0u);
}

}  // namespace
}  // namespace weir::http
