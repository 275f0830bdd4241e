#include "weir/ask/question_json.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::ask {
namespace {

using namespace std::chrono_literals;

Question read_one(std::string_view text) {
  auto list = read_questions(text);
  if (!list) {
    ADD_FAILURE() << list.error().message;
    return {};
  }
  EXPECT_FALSE(list->is_batch);
  return std::move(list->questions.front());
}

std::string fault_in(std::string_view text) {
  const auto list = read_questions(text);
  return list ? "no error" : list.error().message;
}

std::string settle_fault_in(std::string_view text) {
  const auto request = read_settle_request(text);
  return request ? "no error" : request.error().message;
}

TEST(QuestionJson, ReadsEveryMember) {
  const auto question = read_one(R"({"method": "POST", "host": "api.example.com", "path": "/a?b=c",
      "scheme": "http", "ip": "203.0.113.7", "headers": {"X-Tenant": "acme", "Cookie": ["a=1", "b=2"]},
      "cost": 5, "domain": "edge", "attributes": {"customer": "acme", "plan": "gold"}, "permit": true,
      "timeout_seconds": 0.25})");
  EXPECT_EQ(question.method, "POST");
  EXPECT_EQ(question.host, "api.example.com");
  EXPECT_EQ(question.target, "/a?b=c");
  EXPECT_FALSE(question.secure);
  EXPECT_EQ(question.ip, base::IpAddress::parse("203.0.113.7"));
  const std::vector<std::pair<std::string, std::string>> headers{
      {"X-Tenant", "acme"}, {"Cookie", "a=1"}, {"Cookie", "b=2"}};
  EXPECT_EQ(question.headers, headers);
  EXPECT_EQ(question.cost, 5U);
  EXPECT_EQ(question.domain, "edge");
  ASSERT_EQ(question.descriptors.size(), 1U);
  EXPECT_FALSE(question.descriptors[0].exact);
  ASSERT_EQ(question.descriptors[0].entries.size(), 2U);
  EXPECT_EQ(question.descriptors[0].entries[0].key, "customer");
  EXPECT_EQ(question.descriptors[0].entries[1].value, "gold");
  EXPECT_TRUE(question.wants_permit);
  EXPECT_GE(question.timeout, 250ms);
  EXPECT_LT(question.timeout, 251ms);
}

TEST(QuestionJson, RejectsRepeatedMembers) {
  EXPECT_EQ(fault_in(R"({"cost": 1, "ip": "203.0.113.7", "cost": 1})"),
            R"(an object has the member "cost" more than once; write it once)");
  EXPECT_THAT(fault_in(R"({"attributes": {"plan": "a", "pl\u0061n": "b"}})"),
              testing::HasSubstr(R"("plan")"));
  EXPECT_THAT(fault_in(R"([{}, {"headers": {"A": "1", "A": "1"}}])"), testing::HasSubstr(R"("A")"));
  EXPECT_THAT(settle_fault_in(R"({"permit": "1-a", "cost": 5, "cost": 0})"), testing::HasSubstr(R"("cost")"));
  EXPECT_THAT(fault_in(R"({"path": "/a\\", "domain": "\":", "path": "/"})"), testing::HasSubstr(R"("path")"));
}

TEST(QuestionJson, AcceptsTheSameNameInDifferentObjects) {
  const auto list = read_questions(R"([{"ip": "203.0.113.7", "attributes": {"ip": "a", "IP": "b"}},
                                       {"ip": "203.0.113.8", "headers": {"ip": "c"}}])");
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(list->questions.size(), 2U);
}

TEST(QuestionJson, EmptyObjectIsAGetOfTheRoot) {
  const auto question = read_one("{}");
  EXPECT_EQ(question.method, "GET");
  EXPECT_EQ(question.target, "/");
  EXPECT_TRUE(question.secure);
  EXPECT_FALSE(question.ip);
  EXPECT_FALSE(question.cost);
  EXPECT_TRUE(question.descriptors.empty());
  EXPECT_EQ(question.timeout, 0ms);
}

TEST(QuestionJson, ReadsTheQuestionsOfABatchInTheirOrder) {
  const auto list =
      read_questions(R"([{"path": "/1"}, {"path": "/2", "attributes": {"a": "b"}}, {"path": "/3"}])");
  ASSERT_TRUE(list);
  EXPECT_TRUE(list->is_batch);
  ASSERT_EQ(list->questions.size(), 3U);
  EXPECT_EQ(list->questions[0].target, "/1");
  EXPECT_EQ(list->questions[1].descriptors[0].entries[0].value, "b");
  EXPECT_EQ(list->questions[2].target, "/3");
}

TEST(QuestionJson, RejectsMoreThan100QuestionsInABatch) {
  std::string text = "[{}";
  for (std::size_t i = 1; i < kMostQuestions; ++i) text += ",{}";
  EXPECT_EQ(fault_in(text + "]"), "no error");
  EXPECT_EQ(fault_in(text + ",{}]"), "the array has 101 questions; write 1 to 100");
  EXPECT_EQ(fault_in("[]"), "the array has 0 questions; write 1 to 100");
}

TEST(QuestionJson, RejectsMoreThan64Attributes) {
  std::string members = R"("0": "")";
  for (int i = 1; i < 64; ++i) members += ",\"" + std::to_string(i) + R"(": "")";
  EXPECT_EQ(read_one(R"({"attributes": {)" + members + "}}").descriptors.at(0).entries.size(), 64U);
  EXPECT_EQ(fault_in(R"({"attributes": {)" + members + R"(, "x": ""}})"),
            "\"attributes\" has 65 members; write at most 64");
}

TEST(QuestionJson, ErrorNamesTheWrongMember) {
  EXPECT_EQ(fault_in(R"({"path": 7})"), "\"path\" is not a string");
  EXPECT_EQ(fault_in(R"({"ip": "203.0.113.7:80"})"),
            R"("ip" is not an IP address such as "203.0.113.7", without a port)");
  EXPECT_EQ(fault_in(R"({"scheme": "ftp"})"), R"("scheme" is neither "http" nor "https")");
  EXPECT_EQ(fault_in(R"({"permit": "yes"})"), "\"permit\" is neither true nor false");
  EXPECT_EQ(fault_in(R"({"headers": ["a"]})"), R"("headers" is not an object such as {"X-Tenant": "acme"})");
  EXPECT_EQ(fault_in(R"({"headers": {"A": ["x", 1]}})"), R"("headers": "A" is not a string)");
  EXPECT_EQ(fault_in(R"({"attributes": {"": "a"}})"), R"("attributes" has a member without a name)");
  EXPECT_EQ(fault_in(R"({"attributes": {"a": 7}})"),
            R"("attributes": "a" is not a string; write numbers in quotes, such as "7")");
  EXPECT_EQ(fault_in(R"({"timeout_seconds": 0})"),
            "\"timeout_seconds\" is not a number above 0, and at most 3600");
  EXPECT_EQ(fault_in(R"({"timeout_seconds": 3601})"),
            "\"timeout_seconds\" is not a number above 0, and at most 3600");
  EXPECT_EQ(fault_in(R"([{}, {"path": 7}])"), "question 2: \"path\" is not a string");
  EXPECT_EQ(fault_in("[1]"),
            R"(question 1: the question is not an object such as {"path": "/", "ip": "203.0.113.7"})");
  EXPECT_THAT(fault_in("{"), testing::StartsWith("the body is not valid JSON: "));
}

TEST(QuestionJson, AcceptsWholeCostsWithinTheBound) {
  const std::string fault = "\"cost\" is not a whole number from 0 to 2147483648";
  EXPECT_EQ(read_one(R"({"cost": 2147483648})").cost, 2147483648U);
  EXPECT_EQ(read_one(R"({"cost": 5.0})").cost, 5U);
  EXPECT_EQ(read_one(R"({"cost": 0})").cost, 0U);
  for (const auto* wrong : {"-1", "2147483649", "1.5", "\"5\"", "null", "1e300", "-0.5"})
    EXPECT_EQ(fault_in(R"({"cost": )" + std::string(wrong) + "}"), fault) << wrong;
}

TEST(QuestionJson, RejectsAPermitForAQuestionThatChargesNothing) {
  const std::string fault =
      R"("permit" is true and "cost" is 0, which charges nothing; leave one of them out)";
  EXPECT_EQ(fault_in(R"({"cost": 0, "permit": true})"), fault);
  EXPECT_EQ(fault_in(R"({"permit": true, "cost": 0})"), fault);
  EXPECT_EQ(read_one(R"({"cost": 0, "permit": false})").cost, 0U);
}

TEST(QuestionJson, SuggestsTheMemberThatAnUnknownNameProbablyMeans) {
  EXPECT_EQ(fault_in(R"({"url": "/"})"), R"(there is no member "url"; write "path")");
  EXPECT_EQ(fault_in(R"({"hits_addend": 2})"), R"(there is no member "hits_addend"; write "cost")");
  EXPECT_EQ(fault_in(R"({"metod": "GET"})"), R"(there is no member "metod"; write "method")");
  EXPECT_EQ(fault_in(R"({"Method": "GET"})"), R"(there is no member "Method"; write "method")");
  EXPECT_EQ(
      fault_in(R"({"colour": "red"})"),
      "there is no member \"colour\"; expected one of method, host, path, scheme, ip, headers, cost, domain, "
      "attributes, permit and timeout_seconds");
}

TEST(QuestionJson, ErrorShowsOnlyTheBeginningOfALongName) {
  EXPECT_THAT(fault_in(R"({")" + std::string(5000, 'x') + R"(": 1})"),
              testing::StartsWith("there is no member \"" + std::string(40, 'x') + "\"; expected"));
  for (const auto* member : {"attributes", "headers"})
    EXPECT_THAT(fault_in("{\"" + std::string(member) + R"(": {")" + std::string(5000, 'x') + R"(": 1}})"),
                testing::StartsWith("\"" + std::string(member) + "\": \"" + std::string(40, 'x') +
                                    "\" is not a string"));
}

TEST(QuestionJson, RejectsDeepNesting) {
  EXPECT_THAT(fault_in(std::string(100, '[')), testing::StartsWith("the body is not valid JSON: "));
}

TEST(SettleJson, ReadsACost) {
  const auto request = read_settle_request(R"({"permit": "0-ab", "cost": 0})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->permit, "0-ab");
  EXPECT_EQ(request->cost, 0U);
  EXPECT_FALSE(request->refund);
}

TEST(SettleJson, ReadsStatusFieldsAndBodyOfTheServersAnswer) {
  const auto request =
      read_settle_request(R"({"permit": "0-ab", "status": 200, "headers": {"X-Cost": "7"}, "body": "{}"})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->status, 200U);
  EXPECT_EQ(request->headers.front().second, "7");
  EXPECT_EQ(request->body, "{}");
}

TEST(SettleJson, ReadsARefund) {
  const auto request = read_settle_request(R"({"permit": "0-ab", "refund": true})");
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->refund);
}

TEST(SettleJson, ErrorNamesTheWrongMember) {
  const std::string one_of = R"(write one of "cost", "status" and "refund": true)";
  EXPECT_EQ(settle_fault_in(R"({"cost": 1})"), "\"permit\" is missing; write the permit of the answer");
  EXPECT_EQ(settle_fault_in(R"({"permit": "a"})"), one_of);
  EXPECT_EQ(settle_fault_in(R"({"permit": "a", "refund": false})"), one_of);
  EXPECT_EQ(settle_fault_in(R"({"permit": "a", "cost": 1, "status": 200})"), one_of);
  EXPECT_EQ(settle_fault_in(R"({"permit": "a", "cost": 1, "body": ""})"),
            R"("headers" and "body" need "status")");
  for (const auto* wrong : {"100", "101", "199", "600", "\"200\""})
    EXPECT_EQ(settle_fault_in(R"({"permit": "a", "status": )" + std::string(wrong) + "}"),
              "\"status\" is not the status of a final answer such as 200, from 200 to 599")
        << wrong;
  EXPECT_EQ(settle_fault_in(R"({"permit": "a", "cost": -1})"),
            "\"cost\" is not a whole number from 0 to 2147483648");
  EXPECT_EQ(settle_fault_in(R"({"id": "a"})"), R"(there is no member "id"; write "permit")");
  EXPECT_EQ(settle_fault_in("[]"), R"(the body is not an object such as {"permit": "…", "cost": 5})");
}

}  // namespace
}  // namespace weir::ask
