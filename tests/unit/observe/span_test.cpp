#include "weir/observe/span.hpp"

#include <gtest/gtest.h>

namespace weir::observe {
namespace {

std::string encoded(const AccessRecord& record) {
  const TraceContext trace = join_trace({}, {}, {});
  std::string text;
  append_span(text, {.record = record, .trace = trace, .upstream = {}, .limit = {}});
  return text;
}

TEST(Span, SizeIsBoundedWhateverTheClientSends) {
  AccessRecord record;
  const std::string huge(1 << 20, 'x');
  record.method = record.target = record.host = record.user_agent = record.request_id = huge;
  EXPECT_LT(encoded(record).size(), 6 * kLongestText);
}

TEST(Span, Utf8CharacterThatIsCutInTwoIsReplaced) {
  AccessRecord record;
  const auto agent = std::string(kLongestText - 1, 'x') + "é";
  record.user_agent = agent;
  const auto text = encoded(record);
  EXPECT_NE(text.find("x?"), std::string::npos);
  EXPECT_EQ(text.find("é"), std::string::npos);
}

TEST(Span, AnswersOfTheCollectorTellHowManySpansItRejected) {
  using namespace std::string_literals;
  EXPECT_EQ(rejected_spans(""), 0U);
  EXPECT_EQ(rejected_spans("\x0a\x02\x08\x03"s), 3U);
  EXPECT_EQ(rejected_spans("\x12\x01x\x0a\x05\x12\x01y\x08\x03"s), 3U);  // unknown fields before each
}

TEST(Span, CollectorAnswerThatCannotBeReadCountsAsNoRejection) {
  using namespace std::string_literals;
  for (const auto& answer : {"{}"s, "\x0a"s, "\x0a\xff"s, "\x0a\x02\x08"s, "\x08\x03"s,
                             "\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s})
    EXPECT_EQ(rejected_spans(answer), 0U) << answer;
}

}  // namespace
}  // namespace weir::observe
