// Reads the JSON of /api/explain. explain_test has the page's responses to faulty JSON.
#include "admin/pages/inquiry_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::admin {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

TEST(InquiryReader, GivesMissingMembersTheirDefaults) {
  policy::Inquiry inquiry;
  ASSERT_EQ(read_inquiry("{}", inquiry), std::nullopt);
  EXPECT_EQ(inquiry.method, "GET");
  EXPECT_EQ(inquiry.target, "/");
  EXPECT_EQ(inquiry.host, std::nullopt) << "whichever leads to a route";
  EXPECT_EQ(inquiry.peer, base::IpAddress::parse("127.0.0.1"));
}

TEST(InquiryReader, DistinguishesNoHostFromAnEmptyOne) {
  policy::Inquiry inquiry;
  ASSERT_EQ(read_inquiry(R"({"host":""})", inquiry), std::nullopt);
  EXPECT_EQ(inquiry.host, "");
}

TEST(InquiryReader, RejectsAListOfOtherValuesThanTexts) {
  policy::Inquiry inquiry;
  EXPECT_THAT(read_inquiry(R"({"headers":{"Cookie":["a=1",2]}})", inquiry),
              Optional(HasSubstr("\"Cookie\" is not a string")));
}

TEST(InquiryReader, RejectsTextBehindTheObjectAndEndlessNesting) {
  policy::Inquiry inquiry;
  EXPECT_THAT(read_inquiry("{} x", inquiry), Optional(HasSubstr("is not a JSON object")));
  const std::string deep = R"({"headers":)" + std::string(10'000, '[');
  EXPECT_THAT(read_inquiry(deep, inquiry), Optional(HasSubstr("is not a JSON object")));
}

}  // namespace
}  // namespace weir::admin
