// Tests the reader of the JSON of /api/explain. explain_test.cpp tests the page's responses to faulty JSON.
#include "admin/pages/explain_request_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::admin {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

TEST(ExplainRequestReader, MissingJsonMembersGetTheirDefaults) {
  policy::ExplainRequest explain_request;
  ASSERT_EQ(read_explain_request("{}", explain_request), std::nullopt);
  EXPECT_EQ(explain_request.method, "GET");
  EXPECT_EQ(explain_request.target, "/");
  EXPECT_EQ(explain_request.host, std::nullopt) << "the first host that has a route is used";
  EXPECT_EQ(explain_request.peer, base::IpAddress::parse("127.0.0.1"));
}

TEST(ExplainRequestReader, EmptyHostIsNotReplacedByTheDefaultHost) {
  policy::ExplainRequest explain_request;
  ASSERT_EQ(read_explain_request(R"({"host":""})", explain_request), std::nullopt);
  EXPECT_EQ(explain_request.host, "");
}

TEST(ExplainRequestReader, RejectsAHeaderListWithValuesThatAreNotStrings) {
  policy::ExplainRequest explain_request;
  EXPECT_THAT(read_explain_request(R"({"headers":{"Cookie":["a=1",2]}})", explain_request),
              Optional(HasSubstr("\"Cookie\" is not a string")));
}

TEST(ExplainRequestReader, RejectsTextAfterTheJsonObjectAndDeepNesting) {
  policy::ExplainRequest explain_request;
  EXPECT_THAT(read_explain_request("{} x", explain_request), Optional(HasSubstr("is not a JSON object")));
  const std::string deep = R"({"headers":)" + std::string(10'000, '[');
  EXPECT_THAT(read_explain_request(deep, explain_request), Optional(HasSubstr("is not a JSON object")));
}

TEST(ExplainRequestReader, ReadsAQuestionWithoutAHost) {
  policy::ExplainRequest explain_request;
  ASSERT_EQ(read_explain_request(R"({"domain":"edge","descriptor":{"a":"1","b":"2"},"exact":true,"cost":7})",
                                 explain_request),
            std::nullopt);
  ASSERT_TRUE(explain_request.question);
  const auto& question = *explain_request.question;
  EXPECT_EQ(question.domain, "edge");
  EXPECT_EQ(question.descriptor, (std::vector<std::pair<std::string, std::string>>{{"a", "1"}, {"b", "2"}}));
  EXPECT_TRUE(question.exact);
  EXPECT_EQ(question.cost, 7U);
  EXPECT_EQ(explain_request.host, "") << "a question needs no route";
}

TEST(ExplainRequestReader, RejectsWrongMembersOfAQuestion) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"domain":1})", "\"domain\" is not a string"},
      {R"({"descriptor":["a"]})", "\"descriptor\" is not an object"},
      {R"({"descriptor":{"a":1}})", "\"a\" is not a string"},
      {R"({"exact":1})", "\"exact\" is neither true nor false"},
      {R"({"cost":-1})", "\"cost\" is not a whole number from 0 to 2147483648"},
      {R"({"cost":"1"})", "\"cost\" is not a whole number"}};
  for (const auto& [text, fault] : cases) {
    policy::ExplainRequest explain_request;
    EXPECT_THAT(read_explain_request(text, explain_request), Optional(HasSubstr(fault))) << text;
  }
}

}  // namespace
}  // namespace weir::admin
