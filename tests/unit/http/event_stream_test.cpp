// Tests how records are taken out of streams of server-sent events and of JSON lines.
#include "weir/http/event_stream.hpp"

#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::http {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Records = std::vector<std::string>;

// Collects complete records. `rest` is the record that has no end yet.
struct Collected {
  Records records;
  std::string rest;
};

void take_records(RecordDecoder& decoder, std::string_view input, Collected& into) {
  for (;;) {
    const auto piece = decoder.next(input);
    ASSERT_LE(piece.used, input.size());
    input.remove_prefix(piece.used);
    if (piece.status == RecordDecoder::Status::NeedMore) {
      EXPECT_TRUE(input.empty());
      return;
    }
    into.rest += piece.data;
    if (piece.status == RecordDecoder::Status::End) into.records.push_back(std::exchange(into.rest, {}));
  }
}

Collected collect(StreamFormat format, std::string_view text) {
  RecordDecoder decoder(format);
  Collected result;
  take_records(decoder, text, result);
  return result;
}

Records events(std::string_view text) {
  return collect(StreamFormat::Events, text).records;
}

TEST(StreamFormat, IsChosenByTheContentType) {
  for (const auto type : {"text/event-stream", "Text/Event-Stream", "text/event-stream; charset=utf-8",
                          "text/event-stream ;charset=utf-8"})
    EXPECT_EQ(stream_format(type), StreamFormat::Events) << type;
  for (const auto type : {"application/x-ndjson", "application/ndjson;charset=utf-8", "application/jsonl"})
    EXPECT_EQ(stream_format(type), StreamFormat::Lines) << type;
  for (const auto type : {"", "application/json", "text/event-streams", "text/plain; text/event-stream"})
    EXPECT_EQ(stream_format(type), std::nullopt) << type;
}

TEST(EventStream, ReturnsTheDataOfEachEvent) {
  EXPECT_THAT(events("data: a\n\ndata:b\n\n"), ElementsAre("a", "b"));
  EXPECT_THAT(events("event: x\nid: 1\ndata: a\nretry: 5\n\n"), ElementsAre("a"));
  EXPECT_THAT(events("data:  a \n\n"), ElementsAre(" a ")) << "only one blank after the colon is dropped";
}

TEST(EventStream, JoinsDataLinesWithALineBreak) {
  EXPECT_THAT(events("data: {\ndata: \"n\": 1\nid: 7\ndata: }\n\n"), ElementsAre("{\n\"n\": 1\n}"));
}

TEST(EventStream, AcceptsEachKindOfLineBreak) {
  EXPECT_THAT(events("data: a\r\rdata: b\r\n\r\ndata: c\n\ndata: d\r\n\n"), ElementsAre("a", "b", "c", "d"));
}

TEST(EventStream, IgnoresCommentsOtherFieldsAndEventsWithoutData) {
  EXPECT_THAT(events(": data: a\n\nevent: ping\n\ndata\n\ndat: b\ndatax: c\nDATA: d\n data: e\n\n"),
              IsEmpty());
}

TEST(EventStream, IgnoresAByteOrderMark) {
  EXPECT_THAT(events("\xef\xbb\xbf"
                     "data: a\n\n"),
              ElementsAre("a"));
  EXPECT_THAT(events("\xef\xbb\xbf\ndata: a\n\n"), ElementsAre("a"));
  EXPECT_THAT(events("\xef\xbb"
                     "data: a\n\ndata: b\n\n"),
              ElementsAre("b"))
      << "half a mark belongs to the name of a field";
}

TEST(EventStream, DataOfALastEventWithoutAnEmptyLineIsReturnedAtTheEnd) {
  const auto found = collect(StreamFormat::Events, "data: a\n\ndata: b\n");
  EXPECT_THAT(found.records, ElementsAre("a"));
  EXPECT_EQ(found.rest, "b");
}

TEST(JsonLines, EachLineIsReturnedAsARecord) {
  const auto found = collect(StreamFormat::Lines, "{\"n\":1}\n\n[2]\r\n3");
  EXPECT_THAT(found.records, ElementsAre("{\"n\":1}", "", "[2]\r"));
  EXPECT_EQ(found.rest, "3");
}

// Reads the events line by line, as the specification describes.
Records events_by_lines(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  Records records;
  std::string data;
  while (!text.empty()) {
    const auto end = text.find_first_of("\r\n");
    if (end == std::string_view::npos) break;
    const auto line = text.substr(0, end);
    text.remove_prefix(end + (text.substr(end).starts_with("\r\n") ? 2 : 1));
    if (line.empty() && !data.empty()) {
      data.pop_back();
      records.push_back(std::exchange(data, {}));
    } else if (line.starts_with("data: ")) {
      (data += line.substr(6)) += '\n';
    } else if (line.starts_with("data:")) {
      (data += line.substr(5)) += '\n';
    }
  }
  return records;
}

// Property: wherever a stream is divided into pieces, the decoder finds the events that the specification
// defines.
TEST(EventStream, SameEventsAreFoundHoweverTheStreamIsDivided) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<std::string> words = {"data:",     "data: ", "data", "d",       "\n",           "\n\n",
                                          "\r",        "\r\n",   ":",    " ",       "\xef\xbb\xbf", "\xef",
                                          "{\"n\":1}", "id: 4",  "x",    "event: a"};
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (auto count = random() % 24; count > 0; --count) text += words[random() % words.size()];
    const auto whole = collect(StreamFormat::Events, text);
    ASSERT_EQ(whole.records, events_by_lines(text)) << text;
    RecordDecoder decoder(StreamFormat::Events);
    Collected divided;
    for (std::string_view rest = text; !rest.empty();) {
      const auto size = std::min<std::size_t>(1 + random() % 5, rest.size());
      take_records(decoder, rest.substr(0, size), divided);
      rest.remove_prefix(size);
    }
    ASSERT_EQ(divided.records, whole.records) << text;
    ASSERT_EQ(divided.rest, whole.rest) << text;
  }
}

}  // namespace
}  // namespace weir::http
