#include "weir/base/plain_number.hpp"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace weir::base {
namespace {

TEST(PlainNumber, IsWrittenWithoutAnExponent) {
  EXPECT_EQ(plain_number(28800), "28800");
  EXPECT_EQ(plain_number(86400.5), "86400.5");
  EXPECT_EQ(plain_number(0.1), "0.1");
  EXPECT_EQ(plain_number(0.000001), "0.000001");
  EXPECT_EQ(plain_number(0), "0");
  EXPECT_EQ(plain_number(-1.5), "-1.5");
  EXPECT_EQ(plain_number(1e21), "1000000000000000000000");
}

TEST(PlainNumber, InfinityAndNanAreWrittenAsNull) {
  EXPECT_EQ(plain_number(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(plain_number(std::numeric_limits<double>::quiet_NaN()), "null");
}

TEST(PlainNumber, WrittenNumberParsesBackToTheSameValue) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const auto reads_back = [](double number) {
    const auto text = plain_number(number);
    double read = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), read);
    EXPECT_EQ(parsed.ptr, text.data() + text.size()) << text;
    EXPECT_EQ(read, number) << text;
    EXPECT_EQ(text.find_first_not_of("-0123456789."), std::string::npos) << text;
  };
  for (const double extreme : {std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest(),
                               std::numeric_limits<double>::min(), std::numeric_limits<double>::denorm_min()})
    reads_back(extreme);
  for (int i = 0; i < 10'000; ++i) {
    const auto number = std::bit_cast<double>(random());
    if (std::isfinite(number)) reads_back(number);
  }
}

}  // namespace
}  // namespace weir::base
