#include "weir/ask/question.hpp"

#include "weir/http/head_parser.hpp"

#include <gtest/gtest.h>

namespace weir::ask {
namespace {

TEST(Question, IsAGetOfTheRootByDefault) {
  EXPECT_EQ(request_head({}), "GET / HTTP/1.0\r\n\r\n");
}

TEST(Question, WritesTheHeadOfTheRequest) {
  Question question;
  question.method = "POST";
  question.host = "api.example.com";
  question.target = "/v1/chat?x=1";
  question.headers = {{"X-Tenant", "acme"}, {"Cookie", "a=1"}};
  EXPECT_EQ(request_head(question),
            "POST /v1/chat?x=1 HTTP/1.1\r\nHost: api.example.com\r\nX-Tenant: acme\r\nCookie: a=1\r\n\r\n");
}

TEST(Question, NeedsNoHostIfItHasAHostField) {
  Question question;
  question.headers = {{"host", "api.example.com"}};
  EXPECT_EQ(request_head(question), "GET / HTTP/1.1\r\nhost: api.example.com\r\n\r\n");
}

TEST(Question, RejectsPartsWithALineBreakOrANulByte) {
  const auto broken = [](auto change) {
    Question question;
    change(question);
    return !request_head(question).has_value();
  };
  EXPECT_TRUE(broken([](Question& q) { q.method = "GET\r"; }));
  EXPECT_TRUE(broken([](Question& q) { q.target = "/\nX: y"; }));
  EXPECT_TRUE(broken([](Question& q) { q.host = std::string("a\0b", 3); }));
  EXPECT_TRUE(broken([](Question& q) { q.headers = {{"A\r\nB", "c"}}; }));
  EXPECT_TRUE(broken([](Question& q) { q.headers = {{"A", "c\r\nX-Admin: 1"}}; }));
}

TEST(Question, HeadIsParsedLikeTheHeadOfAClient) {
  Question question;
  question.host = "api.example.com";
  question.target = "/a?b=c";
  const auto text = request_head(question);
  http::RequestHead head;
  ASSERT_FALSE(http::parse_request_head(*text, head));
  EXPECT_EQ(head.path, "/a");
  EXPECT_EQ(head.authority, "api.example.com");
}

TEST(Question, MovedQuestionKeepsTheTextsOfItsDescriptors) {
  Question question;
  const auto key = question.keep("a");  // a short text, which std::string stores in the object itself
  question.descriptors.push_back({.entries = {{key, question.keep("b")}}});
  const auto moved = std::move(question);
  EXPECT_EQ(moved.descriptors[0].entries[0].key, "a");
  EXPECT_EQ(moved.descriptors[0].entries[0].value, "b");
}

}  // namespace
}  // namespace weir::ask
