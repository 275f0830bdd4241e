#include "weir/fetch/fetch.hpp"

#include "unit/fetch/scripted_server.hpp"

#include <chrono>
#include <stop_token>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::fetch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

const std::string kAnswer =
    "HTTP/1.1 200 OK\r\nCache-Control:  max-age=60 \r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";

Request plain(const ScriptedServer& server) {
  return {.url = server.url("127.0.0.1"), .allow_http = true};
}

std::string error_of(const Request& asked) {
  const auto got = request(asked);
  return got ? "status " + std::to_string(got->status) : got.error().message;
}

TEST(Fetch, ReturnsTheStatusTheFieldsAndTheBodyOfTheAnswer) {
  const ScriptedServer server(kAnswer);
  const auto got = request(plain(server));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->status, 200U);
  EXPECT_EQ(got->body, "{}");
  EXPECT_EQ(got->find("cache-control"), "max-age=60");
  EXPECT_EQ(got->find("etag"), "");
  EXPECT_THAT(server.last_request(),
              AllOf(StartsWith("GET /keys HTTP/1.1\r\n"), HasSubstr("User-Agent: weir/")));
}

TEST(Fetch, SendsTheMethodTheFieldsAndTheBodyOfTheRequest) {
  const ScriptedServer server("HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\nHTTP/1.1 404 Not Found\r\n\r\n");
  auto asked = plain(server);
  asked.method = "POST";
  asked.fields = {{"Content-Type", "application/jose+json"}};
  asked.body = "{\"a\":1}";
  const auto got = request(asked);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->status, 404U);
  EXPECT_EQ(got->find("x-early"), "") << "the field is of a 1xx answer";
  EXPECT_THAT(server.last_request(), AllOf(StartsWith("POST /keys HTTP/1.1\r\n"),
                                           HasSubstr("\r\nContent-Type: application/jose+json\r\n"),
                                           HasSubstr("\r\n\r\n{\"a\":1}")));
}

TEST(Fetch, RejectsUntrustedCertificatesAndCertificatesForOtherNames) {
  const Localhost localhost;
  const ScriptedServer server(kAnswer, &localhost);
  Request asked{.url = server.url(), .ca_file = localhost.pem()};
  const auto got = request(asked);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->body, "{}");

  asked.url = server.url("127.0.0.1");
  EXPECT_THAT(error_of(asked), HasSubstr("127.0.0.1")) << "the certificate is for another name";
  EXPECT_THAT(error_of({.url = server.url()}), HasSubstr("certificate"))
      << "no authority of the system signed it";
  EXPECT_EQ(server.requests(), 1);
}

TEST(Fetch, RejectsAUrlWithoutTlsUnlessTheCallerAllowsIt) {
  const ScriptedServer server(kAnswer);
  auto asked = plain(server);
  asked.allow_http = false;
  EXPECT_THAT(error_of(asked), HasSubstr("expected https://"));
  for (const char* url : {"file:///etc/passwd", "ftp://localhost/", "HTTPS://localhost/", "keys.json", ""})
    EXPECT_THAT(fault_in_url(url, true), HasSubstr("https://")) << url;
  for (const char* url : {"https://", "https://a b/", "https://a:99999/"})
    EXPECT_THAT(fault_in_url(url, false), HasSubstr("with a host")) << url;
  EXPECT_THAT(fault_in_url("https://me:word@localhost/", false), HasSubstr("without a user"));
  EXPECT_EQ(fault_in_url("https://localhost/keys?a=b", false), "");
  EXPECT_EQ(server.requests(), 0);
}

TEST(Fetch, ReturnsRedirectsInsteadOfFollowingThem) {
  const ScriptedServer target(kAnswer);
  const ScriptedServer server("HTTP/1.1 302 Found\r\nLocation: " + target.url() +
                              "\r\nContent-Length: 0\r\n\r\n");
  const auto got = request(plain(server));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->status, 302U);
  EXPECT_EQ(got->find("Location"), target.url());
  EXPECT_EQ(target.requests(), 0);
}

TEST(Fetch, ReturnsAnErrorAfterTheTimeout) {
  const ScriptedServer server("");
  auto asked = plain(server);
  asked.timeout = 200ms;
  EXPECT_EQ(error_of(asked), "no whole answer within 200 ms");
}

TEST(Fetch, ReturnsAnErrorAtOnceWhenWeirStops) {
  std::stop_source stop;
  ScriptedServer server("");
  server.on_request = [&] { stop.request_stop(); };
  auto asked = plain(server);
  asked.timeout = 1h;
  const auto got = request(asked, stop.get_token());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message, "weir is stopping");
}

TEST(Fetch, RejectsAnswersWithMoreThanMaxBytes) {
  const std::string head = "HTTP/1.1 200 OK\r\nConnection: close\r\n";
  const ScriptedServer exact(head + "\r\n" + std::string(1000, 'x'));
  auto asked = plain(exact);
  asked.max_bytes = 1000;
  EXPECT_EQ(error_of(asked), "status 200");
  const ScriptedServer larger(head + "\r\n" + std::string(1001, 'x'));
  asked.url = larger.url("127.0.0.1");
  EXPECT_EQ(error_of(asked), "the answer has more than 1000 bytes");
  const ScriptedServer long_head(head + "X: " + std::string(1001, 'x') + "\r\n\r\n");
  asked.url = long_head.url("127.0.0.1");
  EXPECT_EQ(error_of(asked), "the answer has more than 1000 bytes");
}

TEST(Fetch, RejectsAnAnswerShorterThanItsContentLength) {
  const ScriptedServer server("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}");
  EXPECT_THAT(error_of(plain(server)), HasSubstr("8 bytes remaining"));
}

TEST(Fetch, ErrorSaysWhyTheConnectionFailed) {
  Request asked;
  {
    const ScriptedServer server("");
    asked = plain(server);
  }
  EXPECT_THAT(error_of(asked), HasSubstr("onnect"));
}

}  // namespace
}  // namespace weir::fetch
