#include "weir/policy/routing/text_template.hpp"

#include "unit/policy/sample.hpp"

#include <gmock/gmock.h>

namespace weir::policy {
namespace {

using ::testing::HasSubstr;

class TextTemplateTest : public testing::Test {
 protected:
  TextTemplateTest() {
    head_.path = "/a/b;v=1";
    head_.query = "q=1";
    request_.path = "/a/b";
    request_.client.user = "ada";
  }
  [[nodiscard]] std::string write(std::string_view text, Purpose purpose) const {
    const auto parsed = TextTemplate::parse(text);
    EXPECT_TRUE(parsed) << text << ": " << parsed.error().message;
    std::string out;
    parsed->append(out, {request_, "0a1b"}, purpose);
    return out;
  }
  [[nodiscard]] std::string field(std::string_view text) const { return write(text, Purpose::Field); }
  [[nodiscard]] std::string url(std::string_view text) const { return write(text, Purpose::Url); }

  http::RequestHead head_ = head_with({});
  Request request_ = request_of(head_);
};

TEST_F(TextTemplateTest, WritesEveryPlaceholder) {
  request_.client.org = "acme";
  request_.client.tier = "pro";
  request_.client.service = "billing";
  request_.client.certificate_subject = "CN=a";
  request_.client.certificate = ":MIIB+/8=:";
  EXPECT_EQ(field("{host} {uri} {path} {query} {method} {client_ip}"),
            "example.com /a/b;v=1?q=1 /a/b q=1 GET 203.0.113.7");
  EXPECT_EQ(field("{user} {org} {tier} {service} {request_id} {cert_subject}"),
            "ada acme pro billing 0a1b CN=a");
  EXPECT_EQ(field("{cert_der}"), ":MIIB+/8=:");
  EXPECT_EQ(field("no placeholder"), "no placeholder");
  EXPECT_EQ(field("{{{user}}} {{}}"), "{ada} {}");
}

TEST_F(TextTemplateTest, PlaceholdersForUnknownClientsAreEmpty) {
  EXPECT_EQ(field("<{org}{tier}{service}{cert_subject}{cert_der}>"), "<>");
}

TEST_F(TextTemplateTest, RejectsUnknownPlaceholdersAndLoneBraces) {
  const auto message = [](std::string_view text) {
    const auto parsed = TextTemplate::parse(text);
    EXPECT_FALSE(parsed) << text;
    return parsed ? "" : parsed.error().message;
  };
  EXPECT_THAT(message("a {hots}"), HasSubstr("{hots} is no placeholder; expected one of {host} {uri}"));
  EXPECT_THAT(message("a{host"), HasSubstr("or {{ for the character itself"));
  EXPECT_THAT(message("a}b"), HasSubstr("or }} for the character itself"));
  EXPECT_THAT(message("{a{host}}"), HasSubstr("a brace has no partner"));
  EXPECT_THAT(message("{}"), HasSubstr("{} has no name"));
}

// Clients choose these values. No value may end the line of a field or begin another element of a list.
TEST_F(TextTemplateTest, ControlCharactersAndSeparatorsInValuesFromTheClientAreEncoded) {
  std::string every;
  for (int c = 0; c < 256; ++c) every += static_cast<char>(c);
  request_.client.user = every;
  head_.query = every;
  for (const char* text : {"{user}", "{query}"}) {
    for (const auto& written : {field(text), url(text)}) {
      for (const unsigned char c : written) ASSERT_TRUE(c > 0x20 && c < 0x7f) << static_cast<int>(c);
      EXPECT_EQ(written.find_first_of("\"\\"), std::string::npos);
    }
    EXPECT_EQ(field(text).find(','), std::string::npos);
  }
  EXPECT_EQ(field("{user}").find(';'), std::string::npos);
  EXPECT_EQ(url("{user}").find_first_of("/?#:@&=+;,"), std::string::npos);
}

TEST_F(TextTemplateTest, CommaInTheHostIsEncodedInAField) {
  request_.host = "a,b;c=1.example.com";
  EXPECT_EQ(field("{host}"), "a%2Cb%3Bc=1.example.com");
  EXPECT_EQ(url("https://{host}/"), "https://a,b;c=1.example.com/");
  request_.host = "[2001:db8::1]";
  EXPECT_EQ(field("{host}"), "[2001:db8::1]");
}

TEST_F(TextTemplateTest, UserIsEncodedSoThatTwoUsersNeverGiveTheSameText) {
  const auto of = [&](std::string_view user) {
    request_.client.user = user;
    return field("{user}");
  };
  EXPECT_EQ(of("ada, root"), "ada%2C%20root");
  EXPECT_EQ(of("ada\r\nX-Role: root"), "ada%0D%0AX-Role:%20root");
  EXPECT_EQ(of(" ada"), "%20ada");
  EXPECT_EQ(of("ada%20"), "ada%2520");
  EXPECT_EQ(of("\xc3\xa4"), "%C3%A4");
  EXPECT_EQ(of("ada@example.com"), "ada@example.com");
}

// The target is percent-encoded already, so its octets stay as they are.
TEST_F(TextTemplateTest, PercentEncodedTargetIsNotEncodedAgain) {
  head_.path = "/a%2Fb%20c";
  head_.query = "x=%0d%0a&y=a,b";
  EXPECT_EQ(url("{uri}"), "/a%2Fb%20c?x=%0d%0a&y=a,b");
  EXPECT_EQ(field("{uri}"), "/a%2Fb%20c?x=%0d%0a&y=a%2Cb");
}

TEST_F(TextTemplateTest, UriPlaceholderBeginsWithExactlyOneSlash) {
  for (const auto& [path, uri] :
       std::initializer_list<std::pair<const char*, const char*>>{{"//evil.example/x", "/evil.example/x"},
                                                                  {"////", "/"},
                                                                  {"/", "/"},
                                                                  {"*", "/"},
                                                                  {"/a//b", "/a//b"}}) {
    head_.path = path;
    head_.query = {};
    EXPECT_EQ(url("{uri}"), uri) << path;
  }
}

std::string fault(std::string_view location) {
  return fault_of_location(TextTemplate::parse(location).value());
}

TEST(Location, AcceptsUrlsAndPaths) {
  for (const char* location :
       {"https://{host}{uri}", "https://{host}:8443{uri}", "https://www.{host}/new", "http://example.com",
        "https://example.com/?next={uri}", "https://example.com{path}?{query}", "{uri}", "{path}", "/",
        "/new/{user}", "/?from={uri}", "https://[::1]:8443/"})
    EXPECT_EQ(fault(location), "") << location;
}

// With any of these targets, a client could make a link to weir that redirects other people to a host of the
// client's choice.
TEST(Location, RejectsRedirectsWhoseHostAClientCouldChoose) {
  for (const char* location : {"{query}",
                               "{user}",
                               "https://{query}",
                               "https://{user}/x",
                               "https://example.com{query}",
                               "https://example.com{user}/",
                               "https://{host}{query}",
                               "https://{host}.{org}/",
                               "//example.com",
                               "/{uri}",
                               "/{query}",
                               "/\\example.com",
                               "https://a@{host}/",
                               "ftp://example.com/",
                               "example.com",
                               "https://",
                               "https:///x",
                               "https://{uri}",
                               "javascript:alert(1)",
                               "https:/{uri}"})
    EXPECT_NE(fault(location), "") << location;
}

}  // namespace
}  // namespace weir::policy
