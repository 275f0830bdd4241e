#include "weir/base/units.hpp"

#include <gtest/gtest.h>

namespace weir::base {
namespace {

using namespace std::chrono_literals;

TEST(Units, ParseDurations) {
  EXPECT_EQ(parse_duration("7us").value(), 7us);
  EXPECT_EQ(parse_duration("250ms").value(), 250ms);
  EXPECT_EQ(parse_duration("2s").value(), 2s);
  EXPECT_EQ(parse_duration("5min").value(), 5min);
  EXPECT_EQ(parse_duration("5m").value(), 5min);
  EXPECT_EQ(parse_duration("1h").value(), 1h);
  EXPECT_EQ(parse_duration("7days").value(), 7 * 24h);
  EXPECT_EQ(parse_duration("0s").value(), 0s);
  EXPECT_EQ(parse_duration("36525day").value(), 36'525 * 24h);
}

TEST(Units, RejectInvalidDurationsAndQuoteThemInTheError) {
  for (const std::string text : {"", "s", "5", "-1s", "+1s", "1.5s", "1 s", " 1s", "1s ", "1S", "1week",
                                 "36526day", "99999999999999999999s", "9223372036854775807us", "1s1s"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message.find("\"" + text + "\""), std::string::npos);
  }
}

TEST(Units, ParseSizes) {
  EXPECT_EQ(parse_size("65536").value(), 65'536);
  EXPECT_EQ(parse_size("64KiB").value(), 65'536);
  EXPECT_EQ(parse_size("10kB").value(), 10'000);
  EXPECT_EQ(parse_size("5MB").value(), 5'000'000);
  EXPECT_EQ(parse_size("1MiB").value(), 1U << 20);
  EXPECT_EQ(parse_size("2GiB").value(), std::uint64_t{2} << 30);
  EXPECT_EQ(parse_size("0").value(), 0);
  for (const std::string_view text : {"", "KiB", "64kib", "64 KiB", "-1", "1.5MB", "99999999999GiB", "1TiB"})
    EXPECT_FALSE(parse_size(text)) << text;
}

TEST(Units, DurationIsFormattedInTheLargestUnitThatIsExact) {
  EXPECT_EQ(to_string(250ms), "250ms");
  EXPECT_EQ(to_string(2s), "2s");
  EXPECT_EQ(to_string(90s), "90s");
  EXPECT_EQ(to_string(120s), "2min");
  EXPECT_EQ(to_string(48h), "2day");
  EXPECT_EQ(to_string(1'001us), "1001us");
  EXPECT_EQ(to_string(0us), "0us");
}

TEST(Units, ReadableDurationsHaveAtMostTwoUnitsAndAreRoundedUp) {
  EXPECT_EQ(to_readable(0us), "0us");
  EXPECT_EQ(to_readable(1us), "1ms");
  EXPECT_EQ(to_readable(2500ms), "2500ms");
  EXPECT_EQ(to_readable(10s), "10s");
  EXPECT_EQ(to_readable(10'001ms), "11s");
  EXPECT_EQ(to_readable(75s), "75s");
  EXPECT_EQ(to_readable(3'555'126ms), "59min 16s");
  EXPECT_EQ(to_readable(3'599'001ms), "60min");
  EXPECT_EQ(to_readable(1h + 1us), "1h 1min");
  EXPECT_EQ(to_readable(24h), "24h");
  EXPECT_EQ(to_readable(24h + 1us), "1d 1h");
  EXPECT_EQ(to_readable(48h), "2d");
}

TEST(Time, CeilSecondsRoundsUpToWholeSeconds) {
  EXPECT_EQ(ceil_seconds(0us), 0);
  EXPECT_EQ(ceil_seconds(1us), 1);
  EXPECT_EQ(ceil_seconds(1s), 1);
  EXPECT_EQ(ceil_seconds(1s + 1us), 2);
  EXPECT_GT(ceil_seconds(kForever), 9'000'000'000'000);
}

}  // namespace
}  // namespace weir::base
