#include "weir/http/answer.hpp"

#include "weir/http/head_parser.hpp"

#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

using base::Duration;
using std::chrono::microseconds;
using std::chrono::seconds;

std::string written(const Answer& answer) {
  std::string out;
  write_answer(out, answer);
  return out;
}

constexpr std::string_view kDate = "Sun, 06 Nov 1994 08:49:37 GMT";

TEST(WriteAnswer, WritesTheStatusLineTheFieldsAndTheBody) {
  EXPECT_EQ(written({.status = 429, .body = "{}\n", .fields = "Retry-After: 3\r\n", .date = kDate}),
            "HTTP/1.1 429 Too Many Requests\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "Content-Type: application/json\r\nContent-Length: 3\r\nCache-Control: no-store\r\n"
            "Retry-After: 3\r\n\r\n{}\n");
  EXPECT_EQ(written({.status = 200,
                     .content_type = "text/plain",
                     .body = "hello",
                     .date = kDate,
                     .keep_alive = false,
                     .no_store = false}),
            "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain\r\n"
            "Content-Length: 5\r\nConnection: close\r\n\r\nhello");
}

TEST(WriteAnswer, WritesARequestIdFieldOnlyIfTheRequestHasAnId) {
  const auto out = written({.status = 429, .date = kDate, .request_id = "7f-1"});
  EXPECT_NE(out.find("\r\nX-Request-ID: 7f-1\r\n"), std::string::npos) << out;
  EXPECT_EQ(written({.status = 429, .date = kDate}).find("X-Request-ID"), std::string::npos);
}

TEST(WriteAnswer, ResponseToHeadHasTheSameHeadAndNoBody) {
  const auto whole = written({.status = 404, .body = "{}", .date = kDate});
  EXPECT_EQ(written({.status = 404, .body = "{}", .date = kDate, .omit_body = true}) + "{}", whole);
}

TEST(WriteAnswer, SendsKeepAliveToHttp10Clients) {
  EXPECT_NE(written({.client_minor_version = 0}).find("\r\nConnection: keep-alive\r\n"), std::string::npos);
  EXPECT_NE(written({.keep_alive = false, .client_minor_version = 0}).find("\r\nConnection: close\r\n"),
            std::string::npos);
}

// If weir wrote a body after a 204 or a 304, the client would read the body as the next response.
TEST(WriteAnswer, WritesNoBodyWith204And304) {
  for (const unsigned status : {204U, 304U}) {
    const auto out = written({.status = status, .body = "body", .date = kDate});
    EXPECT_TRUE(out.ends_with("\r\n\r\n")) << out;
    EXPECT_EQ(out.find("Content-"), std::string::npos) << out;
  }
}

TEST(WriteAnswer, ParserAcceptsEveryHeadThatWeirWrites) {
  for (unsigned status = 200; status < 600; ++status) {
    const auto out = written({.status = status, .body = "body", .date = kDate});
    const auto size = find_head_end(out);
    ResponseHead head;
    ASSERT_FALSE(parse_response_head(std::string_view(out).substr(0, size), false, head)) << status;
    EXPECT_EQ(head.status, status);
    EXPECT_EQ(out.size() - size, head.content_length) << status;
  }
}

std::string rate_limit(const RateLimitHeaders& at, RateLimitFamilies families = {}) {
  std::string out;
  append_rate_limit_headers(out, at, families);
  return out;
}

const RateLimitHeaders kStanding{.rule = "per-key",
                                 .limit = 100,
                                 .remaining = 42,
                                 .window = seconds(10),
                                 .more_after = microseconds(1),
                                 .reset_at = base::TimePoint(seconds(1'708'425'599) + microseconds(1))};

TEST(AppendRateLimitHeaders, WritesXRateLimitAndRateLimitFields) {
  EXPECT_EQ(rate_limit(kStanding),
            "X-RateLimit-Limit: 100\r\nX-RateLimit-Remaining: 42\r\nX-RateLimit-Reset: 1708425600\r\n"
            "RateLimit-Policy: \"per-key\";q=100;w=10\r\nRateLimit: \"per-key\";r=42;t=1\r\n");
}

TEST(AppendRateLimitHeaders, WritesAFieldThatSaysThatTheSoftLimitIsExceeded) {
  auto at = kStanding;
  at.exceeded = true;
  EXPECT_EQ(rate_limit(at, {.x = true, .ietf = false}),
            "X-RateLimit-Limit: 100\r\nX-RateLimit-Remaining: 42\r\nX-RateLimit-Reset: 1708425600\r\n"
            "X-RateLimit-Exceeded: soft\r\n");
  EXPECT_EQ(rate_limit(at, {.x = false, .ietf = true}), rate_limit(kStanding, {.x = false, .ietf = true}));
}

TEST(AppendRateLimitHeaders, WritesOnlyTheConfiguredFamiliesOfRateLimitFields) {
  EXPECT_EQ(rate_limit(kStanding, {.x = true, .ietf = false}),
            "X-RateLimit-Limit: 100\r\nX-RateLimit-Remaining: 42\r\nX-RateLimit-Reset: 1708425600\r\n");
  EXPECT_EQ(rate_limit(kStanding, {.x = false, .ietf = true}),
            "RateLimit-Policy: \"per-key\";q=100;w=10\r\nRateLimit: \"per-key\";r=42;t=1\r\n");
  EXPECT_EQ(rate_limit(kStanding, {.x = false, .ietf = false}), "");
}

TEST(AppendRateLimitHeaders, InfiniteTimeIsOmittedAndAShortWindowIsRoundedUpToASecond) {
  auto at = kStanding;
  at.more_after = base::kForever;
  at.window = microseconds(1);
  EXPECT_EQ(rate_limit(at, {.x = false}),
            "RateLimit-Policy: \"per-key\";q=100;w=1\r\nRateLimit: \"per-key\";r=42\r\n");
  at.more_after = Duration(0);
  EXPECT_TRUE(rate_limit(at, {.x = false}).ends_with(";t=0\r\n"));
}

TEST(AppendRateLimitHeaders, FieldsOfAConcurrencyLimitHaveNoTimes) {
  auto at = kStanding;
  at.concurrency = true;
  EXPECT_EQ(
      rate_limit(at),
      "X-RateLimit-Limit: 100\r\nX-RateLimit-Remaining: 42\r\n"
      "RateLimit-Policy: \"per-key\";q=100;qu=\"concurrent-requests\"\r\nRateLimit: \"per-key\";r=42\r\n");
}

TEST(RetryAfterSeconds, AreRoundedUpAndAtLeastOne) {
  const std::pair<Duration, std::uint64_t> cases[] = {
      {Duration(0), 1},
      {microseconds(1), 1},
      {seconds(1), 1},
      {seconds(1) + microseconds(1), 2},
      {seconds(3) - microseconds(1), 3},
      {seconds(86'400), 86'400},
      {base::kForever - Duration(1), 9'223'372'036'855},
  };
  for (const auto& [wait, expected] : cases) EXPECT_EQ(retry_after_seconds(wait), expected) << wait.count();
  EXPECT_EQ(retry_after_seconds(base::kForever), std::nullopt);
}

TEST(RetryAfterSeconds, AreAtLeastTheWaitAndExceedItByLessThanASecond) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 100'000; ++i) {
    const Duration wait(1 + static_cast<std::int64_t>(random() >> (1 + random() % 62)) % 1'000'000'000'000);
    const Duration told = seconds(retry_after_seconds(wait).value());
    ASSERT_GE(told, wait);
    ASSERT_LT(told - wait, std::max<Duration>(seconds(1), Duration(0))) << wait.count();
  }
}

TEST(RetryAfterSeconds, JitterLengthensTheWaitByAtMostItsPercentage) {
  const Duration wait = seconds(1'000) - microseconds(1);
  std::set<std::uint64_t> told;
  for (std::uint64_t i = 0; i < 1'010; ++i) {
    const auto chance = static_cast<std::uint32_t>((i << 32U) / 1'010);
    told.insert(retry_after_seconds(wait, {10, chance}).value());
  }
  EXPECT_EQ(told.size(), 101U) << "every second of the range";
  EXPECT_EQ(*told.begin(), 1'000U);
  EXPECT_EQ(*told.rbegin(), 1'100U);
}

TEST(RetryAfterSeconds, JitterAddsWholeSeconds) {
  constexpr std::uint32_t kMost = ~std::uint32_t{0};
  EXPECT_EQ(retry_after_seconds(seconds(9), {10, kMost}), 9U);
  EXPECT_EQ(retry_after_seconds(seconds(10), {10, kMost}), 11U);
  EXPECT_EQ(retry_after_seconds(seconds(1), {100, kMost}), 2U);
  EXPECT_EQ(retry_after_seconds(seconds(1'000), {0, kMost}), 1'000U);
  EXPECT_EQ(retry_after_seconds(base::kForever, {100, kMost}), std::nullopt);
  EXPECT_GT(retry_after_seconds(base::kForever - Duration(1), {100, kMost}), 18'000'000'000'000U);
}

std::string json(const Refusal& refusal) {
  std::string out;
  append_refusal_json(out, refusal);
  return out;
}

TEST(AppendRefusalJson, WritesErrorMessageRuleAndRetryTime) {
  EXPECT_EQ(json({.rule = "per-key", .retry_after_seconds = 3}),
            R"({"error":"rate_limit_exceeded","message":"Too many requests. Please retry after 3 seconds.",)"
            R"("rule":"per-key","retry_after_seconds":3})"
            "\n");
  EXPECT_EQ(json({.rule = "r", .status = 503, .retry_after_seconds = 1}),
            R"({"error":"service_unavailable","message":"Too many requests. Please retry after 1 second.",)"
            R"("rule":"r","retry_after_seconds":1})"
            "\n");
}

TEST(AppendRefusalJson, BodySaysIfTheRequestCostsMoreThanTheLimitEverAdmits) {
  EXPECT_EQ(
      json({.rule = "r", .retry_after_seconds = {}}),
      R"({"error":"rate_limit_exceeded","message":"This request costs more than the limit can ever admit.",)"
      R"("rule":"r"})"
      "\n");
}

TEST(AppendRefusalProblem, WritesTypeDetailPolicyAndRetryTime) {
  std::string out;
  append_refusal_problem(out, {.rule = "per-key", .retry_after_seconds = 3});
  EXPECT_EQ(out, R"({"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",)"
                 R"("title":"Too Many Requests","status":429,)"
                 R"("detail":"Too many requests. Please retry after 3 seconds.",)"
                 R"("violated-policies":["per-key"],"retry_after_seconds":3})"
                 "\n");
}

// The configuration allows only printable ASCII without '"' and '\' in rule names, so refusals write the
// names unescaped.
TEST(AppendRefusal, NameOfTheRuleIsWrittenWithoutEscapes) {
  std::string name;
  for (char c = 0x20; c < 0x7f; ++c)
    if (c != '"' && c != '\\') name += c;
  EXPECT_NE(json({.rule = name, .retry_after_seconds = 1}).find("\"rule\":\"" + name + "\""),
            std::string::npos);
  const auto fields = rate_limit({.rule = name, .limit = 1});
  EXPECT_NE(fields.find("RateLimit: \"" + name + "\";"), std::string::npos);
}

TEST(AppendErrorJson, WritesErrorCodeAndMessage) {
  std::string out;
  append_error_json(out, 404, "no route matches this request");
  append_error_json(out, 499, "odd");
  EXPECT_EQ(out,
            "{\"error\":\"not_found\",\"message\":\"no route matches this request\"}\n"
            "{\"error\":\"error\",\"message\":\"odd\"}\n");
}

TEST(ReasonPhrase, IsUnknownForAnUnregisteredStatus) {
  EXPECT_EQ(reason_phrase(431), "Request Header Fields Too Large");
  EXPECT_EQ(reason_phrase(299), "Unknown");
  EXPECT_EQ(reason_phrase(0), "Unknown");
}

TEST(WantsProblemJson, IsTrueIfTheAcceptFieldAllowsProblemJson) {
  for (const char* accept :
       {"application/problem+json", "text/html, application/problem+json;q=0.5", "Application/Problem+JSON"})
    EXPECT_TRUE(wants_problem_json(accept)) << accept;
  for (const char* accept :
       {"", "application/json", "*/*", "application/problem+xml", "application/problem+json;q=0",
        "application/problem+json ; charset=x ;\tQ=0.000, */*", "text/html, application/problem+json;q=0.0",
        "application/problem+jsonx", "xapplication/problem+json", ", ;q=0"})
    EXPECT_FALSE(wants_problem_json(accept)) << accept;
}

}  // namespace
}  // namespace weir::http
