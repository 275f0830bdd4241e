#include "weir/ask/answer_json.hpp"

#include <array>

#include <gtest/gtest.h>

namespace weir::ask {
namespace {

using namespace std::chrono_literals;

std::string json_of(const Answer& answer) {
  std::string text;
  append_answer_json(text, answer);
  return text;
}

TEST(AnswerJson, WritesAnAdmission) {
  EXPECT_EQ(
      json_of({.allowed = true,
               .status = 200,
               .rule = "per-client",
               .limit = 10,
               .remaining = 9,
               .reset_after = 1500ms,
               .wait = 250ms,
               .fields = "X-RateLimit-Limit: 10\r\nX-RateLimit-Remaining: 9\r\n",
               .permit = "0-ab"}),
      R"({"allowed":true,"status":200,"rule":"per-client","limit":10,"remaining":9,"reset_after_seconds":2,)"
      R"("wait_seconds":0.25,"headers":{"X-RateLimit-Limit":"10","X-RateLimit-Remaining":"9"},)"
      R"("permit":"0-ab"})");
}

TEST(AnswerJson, WritesARefusalWithItsBody) {
  EXPECT_EQ(
      json_of({.allowed = false,
               .status = 429,
               .rule = "per-client",
               .limit = 10,
               .remaining = 0,
               .retry_after_seconds = 7,
               .fields = "Retry-After: 7\r\n",
               .content_type = "application/json",
               .body = "{\"error\":1}\n"}),
      R"({"allowed":false,"status":429,"rule":"per-client","limit":10,"remaining":0,"retry_after_seconds":7,)"
      R"("headers":{"Retry-After":"7"},"content_type":"application/json","body":"{\"error\":1}\n"})");
}

TEST(AnswerJson, OmitsTheMembersAboutARuleIfNoRuleApplied) {
  EXPECT_EQ(json_of({.allowed = true, .status = 200}),
            R"({"allowed":true,"status":200,"wait_seconds":0,"headers":{}})");
}

TEST(AnswerJson, WritesWhyWeirCouldNotDecide) {
  EXPECT_EQ(json_of({.status = 504, .error = "too \"slow\""}),
            R"({"allowed":false,"status":504,"error":"too \"slow\"","headers":{}})");
}

TEST(AnswerJson, WritesSeveralLinesOfOneFieldAsAnArray) {
  EXPECT_EQ(json_of({.allowed = false,
                     .status = 401,
                     .fields = "WWW-Authenticate: A\r\nB: c\r\nWWW-Authenticate: D\r\n"}),
            R"({"allowed":false,"status":401,"headers":{"WWW-Authenticate":["A","D"],"B":"c"}})");
}

TEST(AnswerJson, WritesABatchAsAnArray) {
  std::string text;
  append_answers_json(text, std::array{Answer{.allowed = true, .status = 200}, Answer{.status = 429}});
  EXPECT_EQ(text, R"([{"allowed":true,"status":200,"wait_seconds":0,"headers":{}},)"
                  R"({"allowed":false,"status":429,"headers":{}}])");
}

}  // namespace
}  // namespace weir::ask
