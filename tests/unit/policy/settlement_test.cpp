// Tests how weir reads the cost in a response, and whether it charges the request for the response.
#include "weir/policy/settlement.hpp"

#include "unit/policy/reported_cost.hpp"
#include "unit/policy/sample.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weir::policy {

namespace {

Settlement charged_on(std::initializer_list<std::string_view> texts) {
  Settlement settlement;
  for (const auto text : texts) settlement.charged.push_back(parse_statuses(text).value());
  return settlement;
}

Settlement in_json(std::vector<CostTerm> terms) {
  return {.kind = Settlement::Kind::Json, .terms = std::move(terms)};
}

TEST(Settlement, ChargesOnlyTheConfiguredStatuses) {
  const auto settlement = charged_on({"401", "5xx", "300-303"});
  for (const unsigned status : {401U, 500U, 599U, 300U, 303U}) EXPECT_TRUE(is_charged(settlement, status));
  for (const unsigned status : {200U, 400U, 402U, 499U, 299U, 304U, 600U, 0U, 999U})
    EXPECT_FALSE(is_charged(settlement, status)) << status;
  EXPECT_TRUE(is_charged(charged_on({}), 200)) << "without a list every response is charged";
  EXPECT_EQ(describe_charge(settlement), "charged on 401, 5xx, 300-303");
  EXPECT_EQ(describe_charge(charged_on({"400-499", "100-100"})), "charged on 4xx, 100");
}

TEST(Settlement, ChargesOnlyGrpcCallsWithTheConfiguredStatuses) {
  const Settlement settlement{.charged_calls = 1U << 0U | 1U << 16U};
  for (unsigned status = 0; status <= 16; ++status)
    EXPECT_EQ(is_call_charged(settlement, status), status == 0 || status == 16) << status;
  EXPECT_FALSE(is_charged(settlement, 200)) << "requests that are no gRPC calls are not charged";
  EXPECT_EQ(describe_charge(settlement), "charged on OK, UNAUTHENTICATED");
  auto both = charged_on({"401"});
  both.charged_calls = 1U << 7U;
  EXPECT_TRUE(is_charged(both, 401));
  EXPECT_EQ(describe_charge(both), "charged on 401, PERMISSION_DENIED");
}

TEST(Settlement, ParsesStatusesClassesAndRanges) {
  EXPECT_EQ(parse_statuses("500-504").value(), (StatusRange{500, 504}));
  EXPECT_EQ(parse_statuses("1xx").value(), (StatusRange{100, 199}));
  for (const auto text :
       {"",     "x",    "40",      "4011",    "099",         "600",  "0xx",  "6xx",  "xx",  "5XX", "5x",
        "500-", "-504", "504-500", "5xx-599", "500-504-505", " 401", "+401", "401 ", "1:0", "2/9"})
    EXPECT_FALSE(parse_statuses(text)) << text;
}

ReportedCost in_header(Lines lines, std::uint32_t scale = 0) {
  const auto head = head_with(lines);
  return reported_cost_in_head({.kind = Settlement::Kind::Header, .name = "X-Tokens", .scale = scale},
                               head.fields);
}

TEST(Settlement, AmountIsReadFromAResponseHeader) {
  EXPECT_EQ(in_header({{"x-tokens", "250"}}), amount(250));
  EXPECT_EQ(in_header({{"X-Tokens", "0"}}), amount(0));
  EXPECT_EQ(in_header({{"X-Tokens", "000"}}), amount(0));
  EXPECT_EQ(in_header({{"X-Tokens", "2147483648"}}), amount(limit::kMaxCost));
  EXPECT_EQ(in_header({{"X-Token", "250"}}), kNothing);
  EXPECT_EQ(in_header({{"X-Tokens", "7"}, {"X-Tokens", "7"}}), amount(7));
  EXPECT_EQ(in_header({{"X-Tokens", "7"}, {"X-Tokens", "8"}}), kUnreadable);
  EXPECT_EQ(in_header({{"X-Tokens", "00000000000000000000000000000250"}}), amount(250));
  for (const auto text : {"", "-1", "+1", "0x10", "5.5", "5.", "7, 7", ".", "e3", "1e", "55e-1"})
    EXPECT_EQ(in_header({{"X-Tokens", text}}), kUnreadable) << text;
}

// If weir ignored an amount above the maximum, it would charge only the reserved cost. The most expensive
// responses would then be the cheapest.
TEST(Settlement, AmountAboveTheMaximumCountsAsTheMaximum) {
  for (const auto text : {"2147483649", "99999999999", "123456789012345678901234567890"})
    EXPECT_EQ(in_header({{"X-Tokens", text}}), amount(limit::kMaxCost)) << text;
  for (const auto text : {"21474836.49", "2147483649", "123456789012345678901234567890.5"})
    EXPECT_EQ(in_header({{"X-Tokens", text}}, 100), amount(limit::kMaxCost)) << text;
}

TEST(Settlement, AcceptsWholeNumbersWithPointOrExponent) {
  for (const auto text : {"5", "5.0", "5e0", "5E0", "0.5e1", "50e-1", "005.000"})
    EXPECT_EQ(in_header({{"X-Tokens", text}}), amount(5)) << text;
  for (const auto text : {"0.0", "0e3", "0.00e-1"})
    EXPECT_EQ(in_header({{"X-Tokens", text}}), amount(0)) << text;
  EXPECT_EQ(in_header({{"X-Tokens", "1e3"}}), amount(1000));
  EXPECT_EQ(in_header({{"X-Tokens", "1e-400"}}, 100), amount(1));
}

// All amounts exceed the maximum. Most of them also exceed the range of a double.
TEST(Settlement, AmountLargerThanADoubleCountsAsTheMaximum) {
  const auto settlement = in_json({{{"/n"}}});
  for (const std::string text : {"1e10", "1e308", "1e309", "1e400", "1.5E+99999", "0.001e400", "\"1e400\""}) {
    EXPECT_EQ(reported_cost_in_body(settlement, "{\"n\":" + text + "}"), amount(limit::kMaxCost)) << text;
  }
  EXPECT_EQ(in_header({{"X-Tokens", "1e400"}}), amount(limit::kMaxCost));
  EXPECT_EQ(in_header({{"X-Tokens", "1e400"}}, 100), amount(limit::kMaxCost));
}

TEST(Settlement, ScalesDecimalsAndRoundsUp) {
  EXPECT_EQ(in_header({{"X-Tokens", "0.125"}}, 100), amount(13));
  EXPECT_EQ(in_header({{"X-Tokens", "0.00"}}, 100), amount(0));
  EXPECT_EQ(in_header({{"X-Tokens", "0.001"}}, 100), amount(1));
  for (const auto text : {".0", "0.", "0.0.0", "-0"})
    EXPECT_EQ(in_header({{"X-Tokens", text}}, 100), kUnreadable);
}

TEST(Settlement, AmountIsReadAtAJsonPointerInTheBody) {
  const auto settlement = in_json({{{"/usage/total_tokens"}}});
  const auto in = [&](std::string_view body) { return reported_cost_in_body(settlement, body); };
  EXPECT_EQ(in(R"({"usage":{"prompt":3,"total_tokens":41}})"), amount(41));
  EXPECT_EQ(in(R"({"usage":{"total_tokens":"41"}})"), amount(41));
  EXPECT_EQ(in(R"({"usage":{"total_tokens":0}})"), amount(0));
  EXPECT_EQ(in(R"({"usage":{"total_tokens":1.2e3}})"), amount(1200));
  for (const auto* body : {R"({"usage":{"total_tokens":41.0}})", R"({"usage":{"total_tokens":41e0}})",
                           R"({"usage":{"total_tokens":"41.0"}})", R"({"usage":{"total_tokens":"4.1e1"}})"})
    EXPECT_EQ(in(body), amount(41)) << body;
  EXPECT_EQ(in(R"({"usage":{}})"), kNothing);
  EXPECT_EQ(in(R"({"usage":{"total_tokens":null}})"), kNothing);
  EXPECT_EQ(in(""), kNothing);
  for (const auto body :
       {R"({"usage":{"total_tokens":41)", R"({"usage":{"total_tokens":-1}})", "data: {}",
        R"({"usage":{"total_tokens":true}})", R"({"usage":{"total_tokens":4.5}})", "<html>"})
    EXPECT_EQ(in(body), kUnreadable) << body;
}

TEST(Settlement, AmountIsTheFirstAlternativeThatIsPresent) {
  const auto settlement = in_json({{{"/a", "/b/c", "/d"}}});
  const auto in = [&](std::string_view body) { return reported_cost_in_body(settlement, body); };
  EXPECT_EQ(in(R"({"d":3,"b":{"c":2},"a":1})"), amount(1));
  EXPECT_EQ(in(R"({"d":3,"b":{"c":2},"a":null})"), amount(2));
  EXPECT_EQ(in(R"({"d":3,"b":7})"), amount(3));
  EXPECT_EQ(in(R"({"d":"x","b":{"c":2}})"), amount(2)) << "only the first one has to be a number";
  EXPECT_EQ(in(R"({"d":3,"b":{"c":"x"}})"), kUnreadable);
  EXPECT_EQ(in(R"({"e":3})"), kNothing);
}

TEST(Settlement, CostIsTheSumOfTheTermsThatArePresent) {
  const auto settlement = in_json({{{"/in"}}, {{"/out"}}, {{"/cached"}}});
  const auto in = [&](std::string_view body) { return reported_cost_in_body(settlement, body); };
  EXPECT_EQ(in(R"({"in":3,"out":4,"cached":5})"), amount(12));
  EXPECT_EQ(in(R"({"in":3,"out":4,"cached":null})"), amount(7));
  EXPECT_EQ(in(R"({"cached":0})"), amount(0));
  EXPECT_EQ(in(R"({"in":3,"out":"x"})"), kUnreadable);
  EXPECT_EQ(in(R"({"in":3,"out":4,"in":3})"), kUnreadable);
  EXPECT_EQ(in(R"({"total":3})"), kNothing);
  EXPECT_EQ(in(R"({"in":2147483648,"out":1})"), amount(limit::kMaxCost));
}

TEST(Settlement, SumOfWeightedTermsIsRoundedUpOnlyOnce) {
  const auto settlement = in_json({{{"/in"}, 150'000}, {{"/out"}, 4 * CostTerm::kOne}, {{"/x"}, 1}});
  const auto in = [&](std::string_view body) { return reported_cost_in_body(settlement, body); };
  EXPECT_EQ(in(R"({"in":20})"), amount(3)) << "0.15 x 20 is exactly 3";
  EXPECT_EQ(in(R"({"in":21})"), amount(4));
  EXPECT_EQ(in(R"({"in":20,"out":5})"), amount(23));
  EXPECT_EQ(in(R"({"in":20,"out":5,"x":1})"), amount(24));
  EXPECT_EQ(in(R"({"in":0})"), amount(0));
  EXPECT_EQ(in(R"({"out":2147483647})"), amount(limit::kMaxCost));
  EXPECT_EQ(describe_cost(settlement), "json 0.15 x /in + 4 x /out + 0.000001 x /x of the answer");
}

// If weir read the string as 0, it would refund the reserved cost.
TEST(Settlement, RejectsAStringThatIsNotANumber) {
  const auto settlement = in_json({{{"/n"}}});
  for (const std::string text : {"none", "unavailable", "e", "1e", "e3", "12e2x", "-1e3", ""})
    EXPECT_EQ(reported_cost_in_body(settlement, R"({"n":")" + text + "\"}"), kUnreadable) << text;
}

TEST(Settlement, OnlyOctetsOfTheConfiguredBodiesCount) {
  Settlement settlement{.kind = Settlement::Kind::Bytes, .per = 1000};
  EXPECT_EQ(cost_of_bytes(settlement, 5000, 0), 0U);
  EXPECT_EQ(cost_of_bytes(settlement, 5000, 2000), 2U);
  EXPECT_EQ(cost_of_bytes(settlement, 5000, 2001), 3U);
  EXPECT_EQ(describe_cost(settlement), "bytes of the answer / 1000");
  settlement.bodies = Bodies::Request;
  EXPECT_EQ(cost_of_bytes(settlement, 5000, 2001), 5U);
  EXPECT_EQ(describe_cost(settlement), "bytes of the request / 1000");
  settlement.bodies = Bodies::Both;
  EXPECT_EQ(cost_of_bytes(settlement, 5500, 2500), 8U) << "the sum is rounded up once";
  EXPECT_EQ(describe_cost(settlement), "bytes of the request and the answer / 1000");
  settlement.per = 1;
  EXPECT_EQ(cost_of_bytes(settlement, 0, std::uint64_t{1} << 40U), limit::kMaxCost);
}

TEST(Settlement, DescriptionShowsTheSourceOfTheCost) {
  EXPECT_EQ(describe_cost({.kind = Settlement::Kind::Header, .name = "X-Tokens"}),
            "header X-Tokens of the answer");
  EXPECT_EQ(describe_cost(in_json({{{"/a"}}})), "json /a of the answer");
  EXPECT_EQ(describe_cost(in_json({{{"/a", "/b"}}, {{"/c"}, 2'500'000}})),
            "json /a|/b + 2.5 x /c of the answer");
}

}  // namespace
}  // namespace weir::policy
