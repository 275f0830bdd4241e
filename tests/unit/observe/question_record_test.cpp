#include "weir/observe/question_record.hpp"

#include "weir/policy/identity.hpp"
#include "weir/policy/key_values.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::observe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const policy::NamingKeys kNames{.table = {1, 2}, .shared = {3, 4}};

policy::Redaction redaction_of(const char* key) {
  policy::Redaction redaction{policy::ClientSettings{}};
  redaction.hide({*policy::parse_key_part(key)});
  return redaction;
}

std::string text_of(const QuestionRecord& question, const policy::Redaction& redaction = {}) {
  std::string text;
  append_question(text, question, redaction, kNames);
  return text;
}

TEST(QuestionRecord, WritesAllValues) {
  const std::vector<policy::Descriptor> descriptors{
      {.entries = {{"path", "/\"login\""}, {"empty", ""}}, .cost = 3, .exact = true},
      {.entries = {{"a", "b"}}}};
  EXPECT_EQ(text_of({"edge", 2, descriptors}),
            R"({"domain":"edge","cost":2,"descriptors":[{"exact":true,"cost":3,"entries":[)"
            R"({"key":"path","value":"/\"login\""},{"key":"empty","value":""}]},)"
            R"({"entries":[{"key":"a","value":"b"}]}]})");
  EXPECT_EQ(text_of({}), "{}");
}

TEST(QuestionRecord, WritesValuesOfKeysAsDigests) {
  const auto redaction = redaction_of("descriptor:api_key|ip");
  const auto of = [&](const char* key, const char* value) {
    const std::vector<policy::Descriptor> descriptors{{.entries = {{key, value}}}};
    return text_of({{}, {}, descriptors}, redaction);
  };
  EXPECT_THAT(of("api_key", "s3cret"),
              AllOf(HasSubstr(R"("key":"api_key","digest":")"), Not(HasSubstr("s3cret"))));
  EXPECT_EQ(of("api_key", "s3cret"), of("api_key", "s3cret"));
  EXPECT_NE(of("api_key", "s3cret"), of("api_key", "s3crer"));
  EXPECT_THAT(of("path", "/a"), HasSubstr(R"("value":"/a")"));
}

TEST(QuestionRecord, LeavesOutDescriptorsThatDoNotFit) {
  const std::string value(4000, 'x');
  const std::vector<policy::Descriptor> few{{.entries = {{"a", value}, {"b", value}, {"c", value}}}};
  EXPECT_THAT(text_of({"edge", {}, few}), HasSubstr(R"("key":"c")"));
  const std::vector<policy::Descriptor> many(32, few.front());
  EXPECT_EQ(text_of({"edge", 2, many}), R"({"domain":"edge","cost":2,"cut":true})");
}

}  // namespace
}  // namespace weir::observe
