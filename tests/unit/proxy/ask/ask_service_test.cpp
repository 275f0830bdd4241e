// Asks real sessions on a listener that answers questions.
#include "unit/proxy/ask/asker.hpp"

#include "weir/policy/key_values.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using std::chrono::hours;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

policy::Rule rule_of(const char* name, const limit::Limiter& limiter) {
  policy::Rule rule{.name = name, .limiter = limiter};
  rule.key = {*policy::parse_key_part("ip")};
  return rule;
}

limit::Limiter per_day(std::uint64_t most) {
  return limit::TokenBucket::make({most, hours(24)}, most).value();
}

Configuration with(policy::Rule rule) {
  Configuration config;
  config.rules.push_back(std::move(rule));
  return config;
}

constexpr std::string_view kAda = R"({"ip": "203.0.113.7"})";
constexpr std::string_view kBob = R"({"ip": "203.0.113.8"})";

std::string permit_in(const std::string& answer) {
  constexpr std::string_view kMember = R"("permit":")";
  const auto at = answer.find(kMember) + kMember.size();
  return answer.substr(at, answer.find('"', at) - at);
}

std::string settle(Asker& asker, const std::string& permit, const std::string& rest) {
  return asker.post("/v1/settle", R"({"permit": ")" + permit + "\", " + rest + "}");
}

TEST(AskService, DecidesAndChargesTheClientThatTheQuestionNames) {
  Asker asker(with(rule_of("per-ip", per_day(2))));
  const auto first = asker.decide(kAda);
  EXPECT_THAT(first, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(first, HasSubstr(R"({"allowed":true,"status":200,"rule":"per-ip","limit":2,"remaining":1,)"));
  EXPECT_THAT(asker.decide(kAda), HasSubstr(R"("remaining":0)"));
  const auto refused = asker.decide(kAda);
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(
      refused,
      HasSubstr(
          R"({"allowed":false,"status":429,"rule":"per-ip","limit":2,"remaining":0,"retry_after_seconds":43200,)"));
  EXPECT_THAT(asker.decide(kBob), HasSubstr(R"("allowed":true)"));
  EXPECT_EQ(asker.counters.ask.questions(observe::AskApi::Decide, observe::AskResult::Allowed).value(), 3U);
  EXPECT_EQ(asker.counters.ask.questions(observe::AskApi::Decide, observe::AskResult::Refused).value(), 1U);
}

TEST(AskService, ChargesTheCostOfTheQuestion) {
  Asker asker(with(rule_of("per-ip", per_day(10))));
  EXPECT_THAT(asker.decide(R"({"ip": "203.0.113.7", "cost": 7})"), HasSubstr(R"("remaining":3)"));
  EXPECT_THAT(asker.decide(R"({"ip": "203.0.113.7", "cost": 4})"), HasSubstr(R"("allowed":false)"));
  EXPECT_THAT(asker.decide(R"({"ip": "203.0.113.7", "cost": 3})"), HasSubstr(R"("remaining":0)"));
}

TEST(AskService, DecidesTheQuestionsOfABatchInTheirOrder) {
  Asker asker(with(rule_of("per-ip", per_day(2))));
  const std::string ada(kAda), bob(kBob);
  const auto answers = asker.decide("[" + ada + "," + ada + "," + ada + "," + bob + "]");
  EXPECT_THAT(answers.substr(answers.find("\r\n\r\n")),
              testing::ContainsRegex(R"("remaining":1,.*"remaining":0,.*"allowed":false.*"remaining":1,)"));
}

TEST(AskService, ChargesNothingIfOneQuestionOfABatchIsInvalid) {
  Asker asker(with(rule_of("per-ip", per_day(2))));
  const auto answer = asker.decide("[" + std::string(kAda) + R"(, {"ip": "nobody"}])");
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("question 2: ")));
  EXPECT_THAT(asker.decide(kAda), HasSubstr(R"("remaining":1)"));
}

TEST(AskService, AdmitsAQuestionThatNoRuleLimits) {
  Asker asker({});
  EXPECT_THAT(asker.decide("{}"),
              HasSubstr(R"({"allowed":true,"status":200,"wait_seconds":0,"headers":{}})"));
}

TEST(AskService, TellsHowLongTheRequestMustWaitForItsDeparture) {
  Asker asker(with(rule_of("queue", limit::LeakyBucket::make({1, hours(1)}, 1, base::kForever).value())));
  EXPECT_THAT(asker.decide(kAda), HasSubstr(R"("wait_seconds":0,)"));
  const auto second = asker.decide(kAda);
  EXPECT_THAT(second, AllOf(HasSubstr(R"("allowed":true)"), HasSubstr(R"("wait_seconds":3599.)")));
  EXPECT_THAT(asker.decide(kAda), HasSubstr(R"("allowed":false)"));
}

TEST(AskService, RefusesAQuestionWhoseRequestIsMalformed) {
  Asker asker(with(rule_of("per-ip", per_day(2))));
  const auto answer = asker.decide(R"({"ip": "203.0.113.7", "path": "no path"})");
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr(R"({"allowed":false,"status":400,)")));
  EXPECT_THAT(asker.decide(R"({"headers": {"A": "b\r\nX-Admin: 1"}})"), HasSubstr(R"("status":400,)"));
  EXPECT_THAT(asker.decide(kAda), HasSubstr(R"("remaining":1)"));
}

TEST(AskService, NamesTheRightPathsAndMethodsInErrors) {
  Asker asker({});
  EXPECT_THAT(asker.post("/v1/nothing", "{}"),
              AllOf(StartsWith("HTTP/1.1 404 "), HasSubstr("/v1/forward-auth")));
  EXPECT_THAT(asker.send("GET /v1/decide HTTP/1.1\r\nHost: weir\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("\r\nAllow: POST\r\n")));
}

TEST(AskService, RequiresTheTokenOfTheListener) {
  Asker asker({}, {.token = "secret"});
  for (const auto* wrong : {"", "Authorization: Bearer secrex\r\n", "Authorization: Bearer secret2\r\n",
                            "Authorization: secret\r\n", "X-Weir-Token: no\r\n"})
    EXPECT_THAT(asker.post("/v1/decide", "{}", wrong),
                AllOf(StartsWith("HTTP/1.1 401 "), HasSubstr("\r\nWWW-Authenticate: Bearer\r\n")))
        << wrong;
  EXPECT_EQ(asker.counters.ask.denied.value(), 5U);
  for (const auto* right :
       {"Authorization: Bearer secret\r\n", "authorization: bearer secret\r\n", "X-Weir-Token: secret\r\n"})
    EXPECT_THAT(asker.post("/v1/decide", "{}", right), StartsWith("HTTP/1.1 200 ")) << right;
}

TEST(AskService, AnswersInJsonWhateverTheContentTypeOfTheCall) {
  Asker asker({});
  constexpr std::string_view kGrpc = "Content-Type: application/grpc\r\n";
  EXPECT_THAT(asker.post("/v1/decide", "{}", kGrpc), HasSubstr(R"("allowed":true)"));
  EXPECT_THAT(
      asker.post("/v1/decide", "[]", kGrpc),
      AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("the array has 0 questions"), Not(HasSubstr("grpc"))));
}

TEST(AskService, RejectsACallWithTooLargeABody) {
  Asker asker({});
  EXPECT_THAT(asker.send("POST /v1/decide HTTP/1.1\r\nHost: weir\r\nContent-Length: 1048577\r\n\r\n" +
                         std::string(30000, ' ')),
              StartsWith("HTTP/1.1 413 "));
}

TEST(AskService, ReadsABodyThatComesInPieces) {
  Asker asker({});
  EXPECT_EQ(
      asker.send("POST /v1/decide HTTP/1.1\r\nHost: weir\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"),
      "");
  EXPECT_THAT(asker.send("1\r\n}\r\n0\r\n\r\n"), HasSubstr(R"("allowed":true)"));
}

TEST(Permits, SettlementCorrectsTheChargeToTheStatedCost) {
  Asker asker(with(rule_of("per-ip", per_day(10))));
  const auto permit = permit_in(asker.decide(R"({"ip": "203.0.113.7", "cost": 5, "permit": true})"));
  EXPECT_EQ(asker.counters.ask.permits.value(), 1);
  EXPECT_THAT(settle(asker, permit, "\"cost\": 2"),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr(R"({"settled":true})")));
  EXPECT_EQ(asker.counters.ask.permits.value(), 0);
  EXPECT_EQ(asker.counters.ask.permits_ended(observe::PermitEnd::Settled).value(), 1U);
  EXPECT_THAT(asker.decide(kAda), HasSubstr(R"("remaining":7)"));
}

TEST(Permits, SettlementMayChargeMoreThanWasReserved) {
  Asker asker(with(rule_of("per-ip", per_day(10))));
  const auto permit = permit_in(asker.decide(R"({"ip": "203.0.113.7", "permit": true})"));
  EXPECT_THAT(settle(asker, permit, "\"cost\": 9"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(asker.decide(kAda), HasSubstr(R"("remaining":0)"));
}

TEST(Permits, SettlementMayRefundTheCharge) {
  Asker asker(with(rule_of("per-ip", per_day(10))));
  const auto permit = permit_in(asker.decide(R"({"ip": "203.0.113.7", "cost": 5, "permit": true})"));
  EXPECT_THAT(settle(asker, permit, "\"refund\": true"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(asker.counters.ask.permits_ended(observe::PermitEnd::Refunded).value(), 1U);
  EXPECT_THAT(asker.decide(kAda), HasSubstr(R"("remaining":9)"));
}

TEST(Permits, PermitIsSettledOnlyOnce) {
  Asker asker(with(rule_of("per-ip", per_day(10))));
  const auto permit = permit_in(asker.decide(R"({"ip": "203.0.113.7", "permit": true})"));
  EXPECT_THAT(settle(asker, permit, "\"refund\": true"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(settle(asker, permit, "\"refund\": true"), StartsWith("HTTP/1.1 404 "));
  for (const auto* unknown : {"x", "0-", "0-00000000000000000000000000000000", "7-00", "4294967296-00", "-"})
    EXPECT_THAT(settle(asker, unknown, "\"refund\": true"), StartsWith("HTTP/1.1 404 ")) << unknown;
  EXPECT_THAT(asker.decide(kAda), HasSubstr(R"("remaining":9)"));
}

TEST(Permits, ConcurrencyIsHeldUntilThePermitIsSettled) {
  Asker asker(with(rule_of("at-once", limit::Concurrency::make(1).value())));
  const auto first = asker.decide(kAda);
  EXPECT_THAT(first, AllOf(HasSubstr(R"("allowed":true)"), HasSubstr(R"("permit":")")));
  EXPECT_THAT(asker.decide(kAda), AllOf(HasSubstr(R"("allowed":false)"), Not(HasSubstr("permit"))));
  EXPECT_THAT(settle(asker, permit_in(first), "\"status\": 200"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(asker.decide(kAda), HasSubstr(R"("allowed":true)"));
}

TEST(Permits, QuestionIsRefundedIfTooManyPermitsAreOpen) {
  Asker asker(with(rule_of("per-ip", per_day(10))), {.max_permits = 1});
  const auto first = asker.decide(R"({"ip": "203.0.113.7", "permit": true})");
  const auto second = asker.decide(R"({"ip": "203.0.113.7", "permit": true})");
  EXPECT_THAT(second, AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr(R"("error":"too many permits are open)")));
  EXPECT_EQ(asker.counters.ask.permits_full.value(), 1U);
  EXPECT_THAT(settle(asker, permit_in(first), "\"refund\": true"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(asker.decide(kAda), HasSubstr(R"("remaining":9)"));
}

TEST(Permits, PermitIsRefundedIfItsAnswerCannotBeSent) {
  Asker asker(with(rule_of("per-ip", per_day(10))));
  EXPECT_THAT(asker.decide(R"({"ip": "203.0.113.7", "permit": true})"), HasSubstr(R"("remaining":9)"));
  asker.stop_receiving();
  const std::string question = R"({"ip": "203.0.113.7", "cost": 2, "permit": true})";
  EXPECT_EQ(asker.decide("[" + question + "," + question + "]"), "");
  EXPECT_EQ(asker.counters.ask.permits_ended(observe::PermitEnd::Refunded).value(), 2U);
  EXPECT_EQ(asker.counters.ask.permits.value(), 1) << "the permit of the first answer is still open";
  asker.connect();
  EXPECT_THAT(asker.decide(kAda), HasSubstr(R"("remaining":8)"));
}

TEST(Permits, PermitRemainsOpenIfTheReportedHeadersAreInvalid) {
  Asker asker(with(rule_of("per-ip", per_day(10))));
  const auto permit = permit_in(asker.decide(R"({"ip": "203.0.113.7", "permit": true})"));
  EXPECT_THAT(settle(asker, permit, R"("status": 200, "headers": {"A\r\nB": "c"})"),
              StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(settle(asker, permit, R"("status": 200, "headers": {"Content-Length": "x"})"),
              StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(settle(asker, permit, R"("status": 200)"), StartsWith("HTTP/1.1 200 "));
}

// If weir refused the call with a gRPC status, the HTTP status would be 200. The asking proxy would then
// admit the request.
TEST(ForwardAuth, RefusalOfAGrpcCallHasAnHttpStatus) {
  Asker asker(with(rule_of("per-ip", per_day(1))));
  const auto ask = [&] {
    return asker.send(
        "GET /v1/forward-auth HTTP/1.1\r\nHost: weir\r\nContent-Type: application/grpc\r\n"
        "X-Forwarded-Uri: /a\r\nX-Forwarded-For: 203.0.113.7\r\n\r\n");
  };
  EXPECT_THAT(ask(), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask(), StartsWith("HTTP/1.1 429 "));
}

// weir answers 500. The asking proxy would pass a 401 on to its client, who can do nothing about the token of
// the proxy.
TEST(ForwardAuth, MissingTokenIsReportedAsAnErrorOfTheAskingProxy) {
  Asker asker({}, {.token = "secret"});
  const auto ask = [&](const std::string& lines) {
    return asker.send(
        "GET /v1/forward-auth HTTP/1.1\r\nHost: weir\r\nX-Forwarded-Uri: /a\r\n"
        "X-Forwarded-For: 203.0.113.7\r\n" +
        lines + "\r\n");
  };
  for (const auto* wrong : {"", "X-Weir-Token: no\r\n"})
    EXPECT_THAT(ask(wrong), AllOf(StartsWith("HTTP/1.1 500 "), HasSubstr("X-Weir-Token"),
                                  Not(HasSubstr("WWW-Authenticate"))));
  EXPECT_EQ(asker.counters.ask.denied.value(), 2U);
  EXPECT_THAT(ask("X-Weir-Token: secret\r\n"), StartsWith("HTTP/1.1 200 "));
}

TEST(ForwardAuth, AnswerIsTheRefusalThatTheClientMustGet) {
  Asker asker(with(rule_of("per-ip", per_day(1))));
  const std::string lines =
      "X-Forwarded-Uri: /a\r\nX-Forwarded-Host: a\r\nX-Forwarded-For: 203.0.113.7\r\n\r\n";
  const auto ask = [&](const std::string& query) {
    return asker.send("GET /v1/forward-auth" + query + " HTTP/1.1\r\nHost: weir\r\n" + lines);
  };
  EXPECT_THAT(ask(""), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("X-RateLimit-Remaining: 0\r\n")));
  EXPECT_THAT(ask(""), AllOf(StartsWith("HTTP/1.1 429 "), HasSubstr("Retry-After: 86400\r\n"),
                             HasSubstr("rate_limit_exceeded")));
  EXPECT_THAT(ask("?refuse=403"), AllOf(StartsWith("HTTP/1.1 403 "), HasSubstr("Retry-After: 86400\r\n")));
  EXPECT_THAT(ask("?refuse=99"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(asker.send("GET /v1/forward-auth HTTP/1.1\r\nHost: weir\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("X-Forwarded-Uri is missing")));
}

}  // namespace
}  // namespace weir::proxy
