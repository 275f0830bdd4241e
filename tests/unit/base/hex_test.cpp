#include "weir/base/hex.hpp"

#include <gtest/gtest.h>

namespace weir::base {
namespace {

TEST(Hex, ParsesItsOwnFormatAndUpperCaseDigits) {
  const Digest128 digest{.lo = 0x0123'4567'89ab'cdef, .hi = 0x00fe'dcba'9876'5432};
  EXPECT_EQ(in_hex(digest), "00fedcba987654320123456789abcdef");
  EXPECT_EQ(digest_of_hex(in_hex(digest)), digest);
  EXPECT_EQ(digest_of_hex("00FEDCBA987654320123456789ABCDEF"), digest);
}

TEST(Hex, RejectsTextThatIsNot32HexadecimalDigits) {
  for (const auto* text : {"", "00fedcba", "00fedcba987654320123456789abcde",
                           "00fedcba987654320123456789abcdef0", "00fedcba987654320123456789abcdeg",
                           "0x0fedcba98765432-123456789abcdef", "-0fedcba987654320123456789abcdef"})
    EXPECT_EQ(digest_of_hex(text), std::nullopt) << text;
}

}  // namespace
}  // namespace weir::base
