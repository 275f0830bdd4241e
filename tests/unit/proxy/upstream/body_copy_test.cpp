#include "proxy/upstream/body_copy.hpp"

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

TEST(BodyCopy, SentPartOfABodyIsRepeatedInTheFramingOfTheRequest) {
  BodyCopy copy;
  copy.begin();
  copy.see("hello");
  copy.see("");
  copy.see(" world");
  ASSERT_TRUE(copy.is_whole());
  std::string text = "head;";
  copy.append_to(text, http::Framing::Length);
  EXPECT_EQ(text, "head;hello world");
  text.clear();
  copy.append_to(text, http::Framing::Chunked);
  EXPECT_EQ(text, "b\r\nhello world\r\n");
}

TEST(BodyCopy, EmptyCopyAppendsNoChunk) {
  BodyCopy copy;
  copy.begin();
  std::string text;
  copy.append_to(text, http::Framing::Chunked);
  EXPECT_EQ(text, "");
}

TEST(BodyCopy, BodyAboveTheBoundIsNotKept) {
  BodyCopy copy;
  copy.begin();
  copy.see(std::string(BodyCopy::kMost, 'x'));
  EXPECT_TRUE(copy.is_whole());
  copy.see("x");
  EXPECT_FALSE(copy.is_whole());
  copy.see("x");
  EXPECT_FALSE(copy.is_whole()) << "the beginning is missing for good";
}

TEST(BodyCopy, BodyIsNotCopiedBeforeTheCopyBeginsOrAfterTheCopyIsDropped) {
  BodyCopy copy;
  copy.see("x");
  EXPECT_FALSE(copy.is_whole());
  copy.begin();
  copy.drop();
  copy.see("x");
  EXPECT_FALSE(copy.is_whole());
}

}  // namespace
}  // namespace weir::proxy
