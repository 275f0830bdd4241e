#include "admin/pages/admission.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::admin {
namespace {

using ::testing::HasSubstr;

base::Endpoint tcp(std::string host) {
  return {.host = std::move(host), .port = 9900, .unix_path = {}};
}

// Returns the status of the response that refuses the request; 0 if the request is admitted.
unsigned refusal(const Admission& admission, const PageRequest& question) {
  const auto admitted = admit(admission, question);
  const auto* said = std::get_if<Answer>(&admitted);
  return said == nullptr ? 0 : said->status;
}

TEST(AdminPageAdmission, AcceptsAHostThatIsAnAddressOrLocalhostOrTheConfiguredName) {
  for (const char* host : {"127.0.0.1:9900", "127.0.0.1", "[::1]:9900", "[2001:db8::7]", "203.0.113.7:1",
                           "localhost:9900", "LOCALHOST", "Weir.Internal:9900", ""})
    EXPECT_TRUE(is_own_host(host, tcp("weir.internal"))) << host;
}

TEST(AdminPageAdmission, RejectsAHostNameThatAnotherWebSiteCouldUse) {
  for (const char* host :
       {"evil.example", "evil.example:9900", "localhost.evil.example", "127.0.0.1.evil.example",
        "[evil.example]", "[::1", "weir.internal.", ":9900", "127.0.0.1@evil.example", "[::1].evil.example",
        "localhost:80:evil.example", "127.0.0.1:evil.example"})
    EXPECT_FALSE(is_own_host(host, tcp("weir.internal"))) << host;
}

TEST(AdminPageAdmission, AcceptsAnyHostOnAUnixSocket) {
  EXPECT_TRUE(is_own_host("weir", {.host = {}, .port = 0, .unix_path = "/run/weir/admin.sock"}));
}

TEST(AdminPageAdmission, RejectsRequestsForDataWithTheHostOfAnotherSiteIfNoTokenIsConfigured) {
  const Admission admission{Token(""), tcp("127.0.0.1")};
  const auto status = [&](std::string_view target, std::string_view host) {
    return refusal(admission, {.method = "GET", .target = target, .host = host});
  };
  EXPECT_EQ(status("/metrics", "evil.example:9900"), 403U);
  EXPECT_EQ(status("/nothing", "evil.example:9900"), 403U);
  EXPECT_EQ(status("/metrics", "127.0.0.1:9900"), 0U);
  EXPECT_EQ(status("/healthz", "weir.pod.local"), 0U);
}

TEST(AdminPageAdmission, AcceptsAnyHostIfATokenIsConfigured) {
  const Admission admission{Token("s3cret"), tcp("0.0.0.0")};
  PageRequest question{.method = "GET", .target = "/metrics", .host = "weir:9900"};
  EXPECT_EQ(refusal(admission, question), 401U);
  question.authorization = "Bearer s3cret";
  EXPECT_EQ(refusal(admission, question), 0U);
}

PageRequest from(std::string_view origin, std::string_view site = {}) {
  return {.method = "POST", .target = "/", .host = "127.0.0.1:9900", .origin = origin, .fetch_site = site};
}

TEST(AdminPageAdmission, AcceptsRequestsFromTheAdminPageAndFromCommandLineClients) {
  EXPECT_FALSE(is_of_another_site(from("")));
  EXPECT_FALSE(is_of_another_site(from("http://127.0.0.1:9900")));
  EXPECT_FALSE(is_of_another_site(from("https://127.0.0.1:9900", "same-origin")));
  EXPECT_FALSE(is_of_another_site(from("", "none")));
}

TEST(AdminPageAdmission, RejectsRequestsFromThePageOfAnotherWebSite) {
  for (const char* origin :
       {"http://evil.example", "http://127.0.0.1:8080", "http://127.0.0.1", "null", "http://localhost:9900"})
    EXPECT_TRUE(is_of_another_site(from(origin))) << origin;
  EXPECT_TRUE(is_of_another_site(from("", "cross-site")));
  EXPECT_TRUE(is_of_another_site(from("", "same-site")));
  EXPECT_TRUE(is_of_another_site(from("http://127.0.0.1:9900", "cross-site")));
}

TEST(AdminPageAdmission, ResponseFieldsForbidFramesAndContentTypeSniffing) {
  const auto value = [](std::string_view wanted) {
    for (const auto& [name, text] : kGuardingFields)
      if (name == wanted) return text;
    return std::string_view{};
  };
  EXPECT_THAT(value("Content-Security-Policy"), HasSubstr("default-src 'none'"));
  EXPECT_THAT(value("Content-Security-Policy"), HasSubstr("frame-ancestors 'none'"));
  EXPECT_EQ(value("X-Frame-Options"), "DENY");
  EXPECT_EQ(value("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(value("Referrer-Policy"), "no-referrer");
}

TEST(Answer, ClientThatAlreadyHasThisVersionOfThePageGets304) {
  const Answer page{.status = 200, .body = "text", .etag = "\"1a2b\""};
  const auto status = [&](std::string_view known) {
    return unless_known(page, {.method = "GET", .target = "/", .if_none_match = known}).status;
  };
  EXPECT_EQ(status(""), 200U);
  EXPECT_EQ(status("\"1a2b\""), 304U);
  EXPECT_EQ(status("\"0\", W/\"1a2b\""), 304U);
  EXPECT_EQ(status("\"1a2\""), 200U);
  EXPECT_EQ(
      unless_known({.status = 200, .body = "text"}, {.method = "GET", .target = "/", .if_none_match = "\"\""})
          .status,
      200U);
}

}  // namespace
}  // namespace weir::admin
