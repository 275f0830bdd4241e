#include "weir/ask/forwarded_question.hpp"

#include "weir/http/head_parser.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::ask {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

// The subrequest of a proxy, with these lines.
struct Subrequest {
  explicit Subrequest(const std::string& lines)
      : text("GET /v1/forward-auth HTTP/1.1\r\nHost: weir:9000\r\n" + lines + "\r\n") {
    EXPECT_FALSE(http::parse_request_head(text, head));
  }
  [[nodiscard]] base::Result<Question> question(bool authorization_is_token = false) const {
    return forwarded_question(head, authorization_is_token);
  }

  std::string text;
  http::RequestHead head;
};

// A proxy may add these fields and also forward the fields of the same names that its client has sent. The
// client could then describe another request.
TEST(ForwardedQuestion, RejectsARepeatedXForwardedMethodProtoHostOrUriField) {
  const std::string lines =
      "X-Forwarded-Method: GET\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a\r\nX-Forwarded-Uri: "
      "/ten\r\nX-Forwarded-For: 203.0.113.7\r\n";
  EXPECT_TRUE(Subrequest(lines).question());
  for (const std::string name : {"Uri: /free", "Method: PUT", "Host: b", "Proto: https"}) {
    const auto question = Subrequest("x-forwarded-" + name + "\r\n" + lines).question();
    ASSERT_FALSE(question) << name;
    EXPECT_EQ(question.error().message, "X-Forwarded-" + name.substr(0, name.find(':')) +
                                            " appears more than once; the asking proxy must replace what "
                                            "its client has sent");
  }
}

TEST(ForwardedQuestion, IsTheRequestThatTheXForwardedFieldsDescribe) {
  const Subrequest subrequest(
      "X-Forwarded-Method: POST\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: api.example.com\r\n"
      "X-Forwarded-Uri: /v1/chat?x=1\r\nX-Forwarded-For: 203.0.113.7\r\nX-Api-Key: secret\r\nContent-Length: "
      "5\r\n"
      "Connection: close\r\nX-Weir-Token: t\r\nAuthorization: Bearer user\r\n");
  const auto question = subrequest.question();
  ASSERT_TRUE(question);
  EXPECT_EQ(question->method, "POST");
  EXPECT_EQ(question->host, "api.example.com");
  EXPECT_EQ(question->target, "/v1/chat?x=1");
  EXPECT_TRUE(question->secure);
  EXPECT_EQ(question->ip, base::IpAddress::parse("203.0.113.7"));
  EXPECT_EQ(question->headers, (Headers{{"X-Api-Key", "secret"}, {"Authorization", "Bearer user"}}));
}

TEST(ForwardedQuestion, UsesTheMethodOfTheSubrequestIfTheProxyNamesNone) {
  const auto question = Subrequest("X-Forwarded-Uri: /\r\nX-Forwarded-For: 203.0.113.7\r\n").question();
  ASSERT_TRUE(question);
  EXPECT_EQ(question->method, "GET");
  EXPECT_FALSE(question->secure);
}

TEST(ForwardedQuestion, TakesTheAddressThatTheAskingProxyAdded) {
  const auto question = Subrequest(
                            "X-Forwarded-Uri: /\r\nX-Forwarded-For: 198.51.100.1, 10.0.0.1\r\n"
                            "X-Forwarded-For: [2001:db8::7]:4711\r\n")
                            .question();
  ASSERT_TRUE(question);
  EXPECT_EQ(question->ip, base::IpAddress::parse("2001:db8::7"));
  EXPECT_EQ(question->headers, (Headers{{"X-Forwarded-For", "198.51.100.1, 10.0.0.1"}}));
}

TEST(ForwardedQuestion, RejectsAProxyThatNamesNoClient) {
  for (const auto* lines :
       {"", "X-Forwarded-For: unknown\r\n", "X-Forwarded-For: 203.0.113.7, unknown\r\n"}) {
    const auto question = Subrequest("X-Forwarded-Uri: /\r\n" + std::string(lines)).question();
    ASSERT_FALSE(question) << lines;
    EXPECT_THAT(question.error().message, testing::StartsWith("X-Forwarded-For has no address at its end"))
        << lines;
  }
}

TEST(ForwardedQuestion, RejectsAProxyThatNamesNoPath) {
  const auto question = Subrequest("X-Forwarded-For: 203.0.113.7\r\n").question();
  ASSERT_FALSE(question);
  EXPECT_THAT(question.error().message, testing::StartsWith("X-Forwarded-Uri is missing"));
}

TEST(ForwardedQuestion, OmitsTheAuthorizationFieldIfItHasTheTokenOfTheListener) {
  const Subrequest subrequest(
      "X-Forwarded-Uri: /\r\nX-Forwarded-For: 203.0.113.7\r\nAuthorization: Bearer listener\r\n");
  const auto question = subrequest.question(true);
  ASSERT_TRUE(question);
  EXPECT_TRUE(question->headers.empty());
}

TEST(RefusalStatus, IsReadFromTheRefuseParameterOfTheQuery) {
  EXPECT_EQ(*refusal_status(""), 0U);
  EXPECT_EQ(*refusal_status("refuse=403"), 403U);
  for (const auto* wrong :
       {"refuse=", "refuse=200", "refuse=600", "refuse=403x", "refuse=403&a=b", "status=403"})
    EXPECT_FALSE(refusal_status(wrong)) << wrong;
}

}  // namespace
}  // namespace weir::ask
