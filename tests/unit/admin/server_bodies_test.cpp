// Tests bodies of requests to the admin listener.
#include "unit/admin/served_admin.hpp"

#include <string>

#include <gmock/gmock.h>

namespace weir::admin {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

class BodyTest : public ServerTest {
 protected:
  BodyTest() {
    sources_.explain = [this](policy::ExplainRequest explain_request) {
      return take(std::move(explain_request));
    };
  }
  net::Task<policy::Explanation> take(policy::ExplainRequest explain_request) {
    taken_ = std::move(explain_request);
    co_return policy::Explanation{};
  }
  static std::string post(std::string_view fields, std::string_view body) {
    return "POST /api/explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
           std::string(fields) + "\r\n" + std::string(body);
  }

  // the event loop's thread writes this request; tests may read it after a response
  policy::ExplainRequest taken_;
};

TEST_F(BodyTest, ServerReadsABodyThatArrivesInPiecesOrInChunks) {
  begin();
  auto one = client();
  one.say(post("Content-Length: 13\r\n", "{\"path\":"));
  one.say("\"/a\"}" +
          post("Transfer-Encoding: chunked\r\nConnection: close\r\n", "d\r\n{\"path\":\"/b\"}\r\n0\r\n\r\n"));
  const auto said = one.hear_all();
  EXPECT_THAT(said, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_NE(said.find("200 OK"), said.rfind("200 OK"));
  EXPECT_EQ(taken_.target, "/b");
}

TEST_F(BodyTest, ServerSends100ContinueIfTheClientExpectsIt) {
  begin();
  auto one = client();
  one.say(post("Content-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n", ""));
  EXPECT_THAT(one.hear_until("\r\n\r\n"), StartsWith("HTTP/1.1 100 Continue\r\n"));
  one.say("{}");
  EXPECT_THAT(one.hear_all(), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(BodyTest, BodyAboveTheMaximumSizeGets413) {
  begin();
  EXPECT_THAT(ask(post("Content-Length: 65537\r\n", "")), StartsWith("HTTP/1.1 413 "));
  const std::string large(70'000, ' ');
  EXPECT_THAT(ask(post("Transfer-Encoding: chunked\r\n", "11170\r\n" + large + "\r\n0\r\n\r\n")),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask(kHealth), EndsWith("ok\n"));
}

TEST_F(BodyTest, BodyThatMissesTheDeadlineGets408) {
  ServerOptions options;
  options.head_deadline = std::chrono::hours(1);
  options.deadline = base::Duration{100'000};
  begin(options);
  EXPECT_THAT(ask(post("Content-Length: 10\r\n", "{")), StartsWith("HTTP/1.1 408 "));
}

TEST_F(BodyTest, MalformedBodyIsRejected) {
  begin();
  EXPECT_THAT(ask(post("Transfer-Encoding: chunked\r\n", "x\r\n")), StartsWith("HTTP/1.1 400 "));
}

}  // namespace
}  // namespace weir::admin
