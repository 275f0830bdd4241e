#include "weir/base/utf8.hpp"

#include <gtest/gtest.h>

namespace weir::base {
namespace {

TEST(Utf8, DecodesCharactersOfEveryLength) {
  const std::pair<std::string_view, char32_t> characters[] = {{"a", 'a'},
                                                              {"\x7f", 0x7f},
                                                              {"\xc2\x80", 0x80},
                                                              {"\xc3\xa9", 0xe9},
                                                              {"\xe0\xa0\x80", 0x800},
                                                              {"\xed\x9f\xbf", 0xd7ff},
                                                              {"\xef\xbf\xbf", 0xffff},
                                                              {"\xf0\x90\x80\x80", 0x10000},
                                                              {"\xf4\x8f\xbf\xbf", 0x10ffff}};
  for (const auto& [text, code] : characters) {
    const auto found = first_utf8(std::string(text) + "z");
    EXPECT_EQ(found.code, code);
    EXPECT_EQ(found.length, text.size());
  }
}

TEST(Utf8, InvalidOctetsGiveACharacterOfLengthZero) {
  for (const std::string_view text :
       {"", "\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xff", "\xc3", "\xe2\x82", "\xe2\x82z", "\xc3(", "\xf0\x9f\x8c"}) {
    EXPECT_EQ(first_utf8(text).length, 0U);
    EXPECT_EQ(first_utf8(text).code, U'\xfffd');
  }
}

}  // namespace
}  // namespace weir::base
