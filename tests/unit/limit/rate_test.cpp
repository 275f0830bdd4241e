#include "weir/limit/rate.hpp"

#include "unit/limit/traffic.hpp"

namespace weir::limit {
namespace {

TEST(Rate, ParsesValidRates) {
  EXPECT_EQ(parse_rate("10/s").value(), (Rate{10, 1s}));
  EXPECT_EQ(parse_rate("200/min").value(), (Rate{200, 1min}));
  EXPECT_EQ(parse_rate("20/10s").value(), (Rate{20, 10s}));
  EXPECT_EQ(parse_rate("3/7s").value(), (Rate{3, 7s}));
  EXPECT_EQ(parse_rate("10000/h").value(), (Rate{10'000, 1h}));
  EXPECT_EQ(parse_rate("5/day").value(), (Rate{5, 24h}));
  EXPECT_EQ(parse_rate("1000000000/us").value(), (Rate{1'000'000'000, 1us}));
  EXPECT_EQ(parse_rate("1/36500day").value(), (Rate{1, 24h * 36'500}));
}

TEST(Rate, RejectsInvalidTextAndQuotesItInTheError) {
  for (const std::string text : {"",
                                 "10",
                                 "/s",
                                 "10/",
                                 "0/s",
                                 "-1/s",
                                 "+1/s",
                                 "1.5/s",
                                 " 10/s",
                                 "10 /s",
                                 "10/ s",
                                 "10/s ",
                                 "10/0s",
                                 "10/fortnight",
                                 "10/S",
                                 "1000000001/s",
                                 "99999999999999999999/s",
                                 "10/s/s",
                                 "10/36526day",
                                 "ten/s",
                                 "10/-1s",
                                 "0x10/s",
                                 "10//s",
                                 "10/99999999999999999999s"}) {
    const auto parsed = parse_rate(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message.find("\"" + text + "\""), std::string::npos) << parsed.error().message;
  }
}

TEST(Rate, FormatsRatesAsTheyWereParsed) {
  for (const std::string text :
       {"10/s", "200/min", "20/10s", "3/7s", "10000/h", "5/day", "1/250ms", "1/us", "7/11us"})
    EXPECT_EQ(to_string(parse_rate(text).value()), text);
  EXPECT_EQ(to_string(parse_rate("60/60s").value()), "60/min");
}

}  // namespace
}  // namespace weir::limit
