#include "weir/observe/json_text.hpp"

#include <random>

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace weir::observe {
namespace {

std::string json_of(std::string_view text) {
  std::string out;
  append_json_text(out, text);
  return out;
}

TEST(JsonText, PlainTextIsUnchanged) {
  EXPECT_EQ(json_of(""), R"("")");
  EXPECT_EQ(json_of("/api/items?x=1&y=%20"), R"("/api/items?x=1&y=%20")");
  EXPECT_EQ(json_of("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8a"),
            "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8a\"");
}

TEST(JsonText, EscapesQuotesBackslashesAndControlCharacters) {
  EXPECT_EQ(json_of("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(json_of("a\r\nb\tc"), R"("a\r\nb\tc")");
  EXPECT_EQ(json_of(std::string_view("\0\x01\x1f", 3)), R"("\u0000\u0001\u001f")");
}

TEST(JsonText, EscapesTerminalControls) {
  EXPECT_EQ(json_of("\x1b[31m\x7f"), R"("\u001b[31m\u007f")");
  EXPECT_EQ(json_of("\xc2\x9b"
                    "31m\xc2\x85"),
            R"("\u009b31m\u0085")");  // the C1 controls CSI and NEL
  EXPECT_EQ(json_of("\xe2\x80\xa8\xe2\x80\xa9"), R"("\u2028\u2029")");
}

TEST(JsonText, ReplacesInvalidUtf8) {
  EXPECT_EQ(json_of("\xff"), R"("\ufffd")");
  EXPECT_EQ(json_of("a\x80z"), R"("a\ufffdz")");
  EXPECT_EQ(json_of("\xc0\xaf"), R"("\ufffd\ufffd")");                      // an overlong '/'
  EXPECT_EQ(json_of("\xe0\x80\xaf"), R"("\ufffd\ufffd\ufffd")");            // an overlong '/' of three bytes
  EXPECT_EQ(json_of("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")");            // a surrogate
  EXPECT_EQ(json_of("\xf4\x90\x80\x80"), R"("\ufffd\ufffd\ufffd\ufffd")");  // above U+10FFFF
  EXPECT_EQ(json_of("\xe2\x82"), R"("\ufffd\ufffd")");                      // the last byte is missing
  EXPECT_EQ(json_of("\xe2\x82\""), R"("\ufffd\ufffd\"")");  // the last byte is missing; the quote stays
}

TEST(JsonText, TruncatesLongText) {
  const std::string whole(kMaxJsonText, 'x');
  EXPECT_EQ(json_of(whole), '"' + whole + '"');
  EXPECT_EQ(json_of(whole + 'y'), '"' + whole + "\\u2026\"");
}

TEST(JsonText, AnyBytesBecomeValidJsonOnOnePrintableLine) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 5'000; ++i) {
    std::string text(random() % 64, '\0');
    for (auto& byte : text) byte = static_cast<char>(random() % 4 == 0 ? random() % 0x80 : random());
    const std::string json = json_of(text);
    boost::json::error_code ec;
    EXPECT_TRUE(boost::json::parse(json, ec).is_string()) << json;
    for (const char c : json) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << json;
  }
}

}  // namespace
}  // namespace weir::observe
