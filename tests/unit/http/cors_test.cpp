#include "weir/http/cors.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::http {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Lines = std::initializer_list<std::pair<std::string_view, std::string_view>>;

const CorsSettings kApp{.origins = {"https://app.example.com", "http://localhost:3000"}};
const CorsSettings kAll{.origins = {}, .any_origin = true};

RequestHead page_request(Lines lines, std::string_view method = "GET") {
  RequestHead head;
  head.method = method;
  for (const auto& [name, value] : lines) head.fields.push_back({name, value});
  return head;
}

std::string answer_fields(const CorsSettings& cors, const RequestHead& head, std::string lines = {}) {
  append_cors_fields(lines, cors, head.fields);
  return lines;
}

TEST(CorsOrigin, AcceptsEachFormOfOriginThatBrowsersSend) {
  for (const char* origin :
       {"https://app.example.com", "http://localhost:3000", "http://127.0.0.1:8080", "http://[::1]:8080",
        "capacitor://localhost", "https://a.b:65535", "https://xn--caf-dma.example"})
    EXPECT_EQ(parse_origin(origin).value(), origin);
}

TEST(CorsOrigin, ErrorAboutAnOriginShowsTheFormThatBrowsersSend) {
  const std::pair<const char*, const char*> cases[] = {
      {"https://app.example.com/", "\"https://app.example.com\""},
      {"HTTPS://App.Example.com", "\"https://app.example.com\""},
      {"https://app.example.com:443", "\"https://app.example.com\""},
      {"http://app.example.com:80/x?y", "\"http://app.example.com\""},
  };
  for (const auto& [text, better] : cases) {
    const auto parsed = parse_origin(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr(std::string("write ") + better)) << text;
  }
  for (const char* text : {"", "app.example.com", "https://", "https://*.example.com", "https://a b", "null",
                           "https://user@example.com", "https://example.com:0", "https://[::1", "*",
                           "https://a.b:65536", "https://a.b:99999", "https://[]", "https://[::1]:99999",
                           "https://[1.2.3.4]", "https://[:]", "https://[::g]", "https://[[::1]]"})
    EXPECT_FALSE(parse_origin(text)) << text;
}

TEST(CorsFields, LetAPageOfAListedOriginReadTheAnswer) {
  const auto fields = answer_fields(kApp, page_request({{"Origin", "https://app.example.com"}}),
                                    "Retry-After: 3\r\nRateLimit: \"a\";r=0\r\n");
  EXPECT_EQ(fields,
            "Retry-After: 3\r\nRateLimit: \"a\";r=0\r\n"
            "Access-Control-Expose-Headers: X-Request-ID, Retry-After, RateLimit\r\n"
            "Access-Control-Allow-Origin: https://app.example.com\r\nVary: Origin\r\n");
}

TEST(CorsFields, PageOfAnUnlistedOriginGetsNoPermission) {
  for (const char* origin : {"https://evil.example", "https://app.example.com.evil.example", "null", "",
                             "https://APP.example.com", "https://app.example.com:8443", "*"})
    EXPECT_EQ(answer_fields(kApp, page_request({{"Origin", origin}})), "Vary: Origin\r\n") << origin;
  EXPECT_EQ(answer_fields(kApp, page_request({})), "Vary: Origin\r\n")
      << "caches must not serve this answer to a page";
}

TEST(CorsFields, AnswerThatPermitsCredentialsNamesTheOriginOfThePage) {
  auto cors = kApp;
  cors.credentials = true;
  EXPECT_THAT(answer_fields(cors, page_request({{"Origin", "http://localhost:3000"}})),
              HasSubstr("Access-Control-Allow-Origin: http://localhost:3000\r\n"
                        "Access-Control-Allow-Credentials: true\r\n"));
}

TEST(CorsFields, AnswerIsTheSameForEachOriginIfAllOriginsAreAllowed) {
  const auto fields = answer_fields(kAll, page_request({{"Origin", "https://any.example"}}));
  EXPECT_THAT(fields, HasSubstr("Access-Control-Allow-Origin: *\r\n"));
  EXPECT_THAT(fields, Not(HasSubstr("Vary")));
  EXPECT_EQ(answer_fields(kAll, page_request({})), fields) << "a cache may give this answer to a page";
}

TEST(CorsPreflight, OnlyAnOptionsRequestWithAListedOriginAndAMethodIsAPreflight) {
  const Lines asks{{"Origin", "https://app.example.com"}, {"Access-Control-Request-Method", "PUT"}};
  EXPECT_TRUE(is_preflight(kApp, page_request(asks, "OPTIONS")));
  EXPECT_FALSE(is_preflight(kApp, page_request(asks, "GET")));
  EXPECT_FALSE(is_preflight(kApp, page_request({{"Origin", "https://app.example.com"}}, "OPTIONS")));
  EXPECT_FALSE(is_preflight(kApp, page_request({{"Access-Control-Request-Method", "PUT"}}, "OPTIONS")));
  EXPECT_FALSE(is_preflight(
      kApp, page_request({{"Origin", "https://evil.example"}, {"Access-Control-Request-Method", "PUT"}},
                         "OPTIONS")));
}

// Browsers send preflights without a body and without credentials. A request with a body or credentials is an
// ordinary request.
TEST(CorsPreflight, RequestWithABodyOrCredentialsIsNoPreflight) {
  const Lines asks{{"Origin", "https://app.example.com"}, {"Access-Control-Request-Method", "PUT"}};
  auto head = page_request(asks, "OPTIONS");
  head.framing = Framing::Chunked;
  EXPECT_FALSE(is_preflight(kApp, head));
  auto cors = kApp;
  cors.key_field = "X-API-Key";
  for (const auto& field : Lines{{"Authorization", "Bearer x"},
                                 {"Cookie", "session=1"},
                                 {"x-api-key", "k"},
                                 {"X-HTTP-Method-Override", "POST"},
                                 {"X-HTTP-Method", "POST"},
                                 {"X-Method-Override", "POST"}}) {
    Lines more = {asks.begin()[0], asks.begin()[1], field};
    EXPECT_FALSE(is_preflight(cors, page_request(more, "OPTIONS"))) << field.first;
  }
  EXPECT_TRUE(is_preflight(cors, page_request(asks, "OPTIONS")));
}

TEST(CorsPreflight, RequestWithAnInvalidMethodOrFieldNameIsNoPreflight) {
  const auto asks_for = [](std::string_view method, std::string_view fields) {
    return is_preflight(kApp, page_request({{"Origin", "https://app.example.com"},
                                            {"Access-Control-Request-Method", method},
                                            {"Access-Control-Request-Headers", fields}},
                                           "OPTIONS"));
  };
  EXPECT_TRUE(asks_for("patch", ""));
  EXPECT_TRUE(asks_for("X-METHOD", "content-type, x-api-key,,"));
  for (const auto* method : {"PUT, DELETE", "P\"UT", "<b>", "PUT;q=1", "P\xc3\x9cT", "*,"})
    EXPECT_FALSE(asks_for(method, "")) << method;
  for (const auto* fields : {"content type", "x-api-key;", "a,<b>", "a: b"})
    EXPECT_FALSE(asks_for("PUT", fields)) << fields;
}

TEST(CorsPreflight, AnswerPermitsTheMethodAndTheFieldsThatThePageAsksFor) {
  std::string fields;
  append_preflight_fields(fields, kApp,
                          page_request({{"Origin", "https://app.example.com"},
                                        {"Access-Control-Request-Method", "PUT"},
                                        {"Access-Control-Request-Headers", "content-type,x-api-key"}},
                                       "OPTIONS"));
  EXPECT_EQ(fields,
            "Access-Control-Allow-Methods: PUT\r\nAccess-Control-Allow-Headers: content-type,x-api-key\r\n"
            "Access-Control-Max-Age: 600\r\n"
            "Vary: Access-Control-Request-Method, Access-Control-Request-Headers\r\n");
}

TEST(CorsExposedNames, ListTheFieldsThatWeirAddsToAnAnswer) {
  std::string fields = "X-RateLimit-Limit: 5\r\nRateLimit: \"a\";r=4\r\n";
  append_exposed_names(fields, kApp, page_request({{"Origin", "https://app.example.com"}}).fields);
  EXPECT_EQ(fields,
            "X-RateLimit-Limit: 5\r\nRateLimit: \"a\";r=4\r\n"
            "Access-Control-Expose-Headers: X-RateLimit-Limit, RateLimit\r\nVary: Origin\r\n");
}

// `fields` may still contain Access-Control and Vary lines of an earlier answer that was not sent.
TEST(CorsExposedNames, OmitAccessControlAndVaryFields) {
  std::string fields = "RateLimit: \"a\";r=4\r\nAccess-Control-Expose-Headers: RateLimit\r\nVary: Origin\r\n";
  const auto before = fields;
  append_exposed_names(fields, kApp, page_request({{"Origin", "https://app.example.com"}}).fields);
  EXPECT_EQ(fields, before + "Access-Control-Expose-Headers: RateLimit\r\nVary: Origin\r\n");
}

TEST(CorsExposedNames, AreNotWrittenIfThereAreNoFieldsOrTheOriginIsNotListed) {
  std::string fields;
  append_exposed_names(fields, kApp, page_request({{"Origin", "https://app.example.com"}}).fields);
  EXPECT_EQ(fields, "");
  fields = "RateLimit: \"a\";r=4\r\n";
  append_exposed_names(fields, kApp, page_request({{"Origin", "https://evil.example"}}).fields);
  EXPECT_EQ(fields, "RateLimit: \"a\";r=4\r\nVary: Origin\r\n")
      << "a cache must not use this answer for the listed origin";
}

}  // namespace
}  // namespace weir::http
