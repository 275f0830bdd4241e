#include "weir/policy/cost.hpp"

#include "unit/policy/sample.hpp"

#include <random>

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

using Kind = CostSource::Kind;
constexpr auto kFaulty = std::optional<limit::Cost>{};

TEST(ParseCost, ParsesWholeNumbers) {
  const std::pair<const char*, std::optional<limit::Cost>> cases[] = {
      {"1", 1},
      {"007", 7},
      {"2147483648", 2147483648},
      {"2147483649", kFaulty},
      {"0", kFaulty},
      {"", kFaulty},
      {"-1", kFaulty},
      {"+1", kFaulty},
      {"1.0", 1},
      {"5.000", 5},
      {"5.5", kFaulty},
      {"5.0000000000000000000000000000001", kFaulty},
      {"1e3", 1000},
      {"5e0", 5},
      {"5E+0", 5},
      {"50e-1", 5},
      {"0.5e1", 5},
      {"55e-1", kFaulty},
      {"1e10", kFaulty},
      {"1e400", kFaulty},
      {"1e-400", kFaulty},
      {"0e3", kFaulty},
      {"e3", kFaulty},
      {"1e", kFaulty},
      {"1e+", kFaulty},
      {"1e1e1", kFaulty},
      {"1e0.5", kFaulty},
      {"1.e3", kFaulty},
      {".1e3", kFaulty},
      {"-1e3", kFaulty},
      {"0x10", kFaulty},
      {" 1", kFaulty},
      {"1 ", kFaulty},
      {"1,5", kFaulty},
      {"five", kFaulty},
      {"18446744073709551617", kFaulty},
      {"99999999999999999999999999", kFaulty}};
  for (const auto& [text, cost] : cases) EXPECT_EQ(parse_cost(text, 0), cost) << text;
}

TEST(ParseCost, ScalesDecimalsAndRoundsUp) {
  const std::tuple<const char*, std::uint32_t, std::optional<limit::Cost>> cases[] = {
      {"19.99", 100, 1999},
      {"0.07", 100, 7},
      {"0.29", 100, 29},
      {"1.005", 100, 101},
      {"0.000000000000000001", 100, 1},
      {"0.0000000000000000001", 100, 1},  // 19 decimal places
      {"0.0000000000000000000", 100, kFaulty},
      {"0.010000000000000000000000000000", 100, 1},
      {"0.010000000000000000000000000001", 100, 2},
      {"0.00000000000000000x1", 100, kFaulty},
      {"0.000000000000000000x", 100, kFaulty},
      {"0.0000000000000000000.", 100, kFaulty},
      {"0.9999999999999999999", 1'000'000'000, 1'000'000'000},
      {"0.000", 100, kFaulty},
      {"3", 100, 300},
      {"0.5", 1, 1},
      {"1.0", 1, 1},
      {"1.", 100, kFaulty},
      {".5", 100, kFaulty},
      {"1.2.3", 100, kFaulty},
      {"1.-2", 100, kFaulty},
      {"21474836.48", 100, 2147483648},
      {"21474836.481", 100, kFaulty},
      {"999999999999999999.999999999999999999", 1'000'000'000, kFaulty},
      {"0.999999999999999999", 1'000'000'000, 1'000'000'000},
  };
  for (const auto& [text, scale, cost] : cases)
    EXPECT_EQ(parse_cost(text, scale), cost) << text << " x " << scale;
}

// Programs that compute the cost as a double print up to 17 digits after leading zeros, and weir must accept
// them.
TEST(ParseCost, RoundsUpDecimalsWithMoreThan18Places) {
  EXPECT_EQ(parse_cost("0.00021450000000000002", 1'000'000), 215U);
  EXPECT_EQ(parse_cost("0.00012345678901234567", 1'000'000), 124U);
  EXPECT_EQ(parse_cost("0.000214" + std::string(200, '0'), 1'000'000), 214U);
  const CostSource source{Kind::Json, "/c", 1'000'000};
  EXPECT_EQ(cost_in_body(source, R"({"c": 0.00021450000000000002})", 1), 215U);
}

// Property: an amount of money with two decimals is converted to cents exactly.
TEST(ParseCost, ConvertsDecimalAmountsOfMoneyToCentsExactly) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    const limit::Cost cents = 1 + random() % limit::kMaxCost;
    const auto rest = std::to_string(cents % 100);
    const auto text = std::to_string(cents / 100) + "." + std::string(2 - rest.size(), '0') + rest;
    ASSERT_EQ(parse_cost(text, 100), cents) << text;
    if (cents < limit::kMaxCost) {
      ASSERT_EQ(parse_cost(text + "001", 100), cents + 1) << text;
    }
    const CostSource source{Kind::Json, "/amount", 100};
    ASSERT_EQ(cost_in_body(source, "{\"amount\":" + text + "}", 1), cents) << text;
  }
}

TEST(CostInHead, CostIsReadFromARequestHeader) {
  const CostSource source{Kind::Header, "X-Cost", 0};
  const auto of = [&](Lines lines) { return cost_in_head(source, head_with(lines), 3); };
  EXPECT_EQ(of({}), 3U);
  EXPECT_EQ(of({{"x-cost", "7"}}), 7U);
  EXPECT_EQ(of({{"X-Cost", "7"}, {"X-Cost", "7"}}), 7U);
  EXPECT_EQ(of({{"X-Cost", "7"}, {"X-Cost", "1"}}), kFaulty);
  EXPECT_EQ(of({{"X-Cost", ""}}), kFaulty);
  EXPECT_EQ(of({{"X-Cost", "0"}}), kFaulty);
  EXPECT_EQ(of({{"X_Cost", "7"}}), 3U);
}

TEST(CostInHead, CostIsReadFromAQueryParameter) {
  const CostSource source{Kind::Query, "n", 0};
  const auto of = [&](std::string_view query) { return cost_in_head(source, head_with({}, query), 3); };
  EXPECT_EQ(of(""), 3U);
  EXPECT_EQ(of("a=b&n=12&c"), 12U);
  EXPECT_EQ(of("%6E=%312"), 12U);
  EXPECT_EQ(of("n=3&n=12"), kFaulty);  // servers differ about which value they use
  EXPECT_EQ(of("n=12&n=12"), 12U);
  EXPECT_EQ(of("n="), kFaulty);
  EXPECT_EQ(of("n"), kFaulty);
  EXPECT_EQ(of("N=12"), 3U);
}

TEST(CostInBody, CostIsReadAtAJsonPointer) {
  const auto of = [](const char* pointer, std::string_view body, std::uint32_t scale = 0) {
    return cost_in_body({Kind::Json, pointer, scale}, body, 3);
  };
  EXPECT_EQ(of("/max_tokens", R"({"max_tokens": 500})"), 500U);
  EXPECT_EQ(of("/items/1/n", R"({"items": [{"n": 1}, {"n": 2}]})"), 2U);
  EXPECT_EQ(of("/a~1b/~0c", R"({"a/b": {"~c": 9}})"), 9U);
  EXPECT_EQ(of("", "12"), 12U);
  EXPECT_EQ(of("/n", R"({"n": "12"})"), 12U);
  EXPECT_EQ(of("/amount", R"({"amount": 19.99})", 100), 1999U);
  EXPECT_EQ(of("/amount", R"({"amount": "19.991"})", 100), 2000U);
  EXPECT_EQ(of("/amount", R"({"amount": 2e1})", 100), 2000U);
  EXPECT_EQ(of("/n", ""), 3U);
  EXPECT_EQ(of("/n", "{}"), 3U);
  EXPECT_EQ(of("/n/x", R"({"n": 1})"), 3U);
  EXPECT_EQ(of("/items/7", R"({"items": []})"), 3U);
  for (const auto* body :
       {"{", "n=1", R"({"n": 1} x)", R"({"n": 0})", R"({"n": -1})", R"({"n": 1.5})", R"({"n": null})",
        R"({"n": true})", R"({"n": [1]})", R"({"n": ""})", R"({"n": 1e300})", R"({"n": 4294967296})",
        R"({"n": 18446744073709551615})", R"({"n": {"n": 1}})", "\xef\xbb\xbf{}", "{\"n\": \"\xff\"}"})
    EXPECT_EQ(of("/n", body), kFaulty) << body;
}

TEST(CostInBody, BodyIsAcceptedUpToTheMaximumNestingDepth) {
  const CostSource source{Kind::Json, "/n", 0};
  const auto nested = [](std::size_t deep) {
    return R"({"n": 5, "x": )" + std::string(deep - 1, '[') + std::string(deep - 1, ']') + "}";
  };
  EXPECT_EQ(cost_in_body(source, nested(kDeepestJson), 3), 5U);
  EXPECT_EQ(json_fault(source, nested(kDeepestJson)), JsonFault::None);
  EXPECT_EQ(cost_in_body(source, nested(kDeepestJson + 1), 3), kFaulty);
  EXPECT_EQ(json_fault(source, nested(kDeepestJson + 1)), JsonFault::TooDeep);
}

CostSource reserve(std::vector<CostTerm> terms, limit::Cost most) {
  CostSource source;
  source.kind = Kind::Reserve;
  source.terms = std::move(terms);
  source.most = most;
  return source;
}

TEST(ReservedCost, IsTheAmountInTheRequestUpToTheMaximum) {
  const auto source = reserve({{{"/max_completion_tokens", "/max_tokens"}}}, 1000);
  const auto of = [&](std::string_view body) { return cost_in_body(source, body, 200); };
  EXPECT_EQ(of(R"({"max_tokens": 500})"), 500U);
  EXPECT_EQ(of(R"({"max_tokens": 500, "max_completion_tokens": 7})"), 7U);
  EXPECT_EQ(of(R"({"max_tokens": 1001})"), 1000U);
  EXPECT_EQ(of(R"({"max_tokens": 1e30})"), 1000U);
  EXPECT_EQ(describe(source), "json /max_completion_tokens|/max_tokens up to 1000");
  const auto price = reserve({{{"/in"}}, {{"/out"}, 4 * CostTerm::kOne}}, limit::kMaxCost);
  EXPECT_EQ(cost_in_body(price, R"({"in": 3, "out": 10})", 200), 43U);
  EXPECT_EQ(describe(price), "json /in + 4 x /out");
}

TEST(ReservedCost, IsTheDefaultIfTheRequestNamesNoAmount) {
  const auto source = reserve({{{"/n"}}}, 1000);
  for (const auto* body : {"", "{}", R"({"n": null})", R"({"n": -1})", R"({"n": 0})", R"({"n": "many"})",
                           R"({"n": 1.5})", R"({"n": {}})", "[1]"})
    EXPECT_EQ(cost_in_body(source, body, 200), 200U) << body;
}

TEST(ReservedCost, RejectsABodyThatIsNoJsonOrNamesTheAmountTwice) {
  const auto source = reserve({{{"/n"}}}, 1000);
  EXPECT_EQ(cost_in_body(source, "n=1", 200), kFaulty);
  EXPECT_EQ(json_fault(source, "n=1"), JsonFault::Malformed);
  EXPECT_EQ(cost_in_body(source, R"({"n": 1, "n": 500})", 200), kFaulty);
  EXPECT_EQ(json_fault(source, R"({"n": 1, "n": 500})"), JsonFault::Repeated);
}

// JSON parsers differ: some use the first of two members with the same name, others the last.
TEST(CostInBody, RejectsDuplicateJsonMembers) {
  const auto of = [](const char* pointer, std::string_view body) {
    return cost_in_body({Kind::Json, pointer, 0}, body, 3);
  };
  for (const auto* body : {R"({"n": 1, "n": 500})", R"({"n": 1, "n": 1})", R"({"n": 1, "\u006e": 500})",
                           R"({"n": 1, "n": null})", R"({"n": {}, "n": 1})"})
    EXPECT_EQ(of("/n", body), kFaulty) << body;
  EXPECT_EQ(of("/a/n", R"({"a": {"n": 1}, "a": {"n": 5}})"), kFaulty);
  EXPECT_EQ(of("/a/n", R"({"a": {"n": 1}, "a": {}})"), kFaulty);
  EXPECT_EQ(of("/a/1/n", R"({"a": [{"n": 1}, {"n": 5, "m": 1, "m": 2}, {"n": 7, "n": 8}], "n": 2, "n": 3})"),
            5U);
  EXPECT_EQ(of("/a/n", R"({"b": {"n": 7, "n": 8}, "a": {"b": {"n": 1}, "n": 5}})"), 5U);
  EXPECT_EQ(of("/n", R"({"x": {"n": 9}, "y": [{"n": 8}], "n": 5})"), 5U);
}

TEST(CostInHead, EachStartedUnitOfTheContentLengthCostsOne) {
  http::RequestHead head;
  CostSource source{Kind::Length, {}};
  source.per = 10;
  EXPECT_EQ(cost_in_head(source, head, 1), 1U) << "the request has no body";
  head.framing = http::Framing::Length;
  for (const auto& [length, units] : std::vector<std::pair<std::uint64_t, limit::Cost>>{
           {0, 1}, {1, 1}, {10, 1}, {11, 2}, {std::uint64_t{1} << 60U, limit::kMaxCost}}) {
    head.content_length = length;
    EXPECT_EQ(cost_in_head(source, head, 1), units) << length;
  }
  head.framing = http::Framing::Chunked;
  EXPECT_EQ(cost_in_head(source, head, 1), 1U) << "the length of a chunked body is unknown";
  EXPECT_EQ(describe(source), "Content-Length / 10");
}

TEST(CostInBody, AllDigitsOfANumberCount) {
  const auto of = [](std::string_view body, std::uint32_t scale) {
    return cost_in_body({Kind::Json, "/n", scale}, body, 3);
  };
  EXPECT_EQ(of(R"({"n": 1.00000000000000001})", 100), 101U);  // as a double, the number would be 1
  EXPECT_EQ(of(R"({"n": 1.5e1})", 1), 15U);
  EXPECT_EQ(of(R"({"n": 0.29})", 100), 29U);
  EXPECT_EQ(of(R"({"n": 1e-400})", 100), 1U);  // as a double, the number would be 0
}

TEST(CostInBody, AcceptsWholeNumbersWithPointExponentOrQuotes) {
  const auto of = [](const std::string& number) {
    return cost_in_body({Kind::Json, "/n", 0}, "{\"n\": " + number + "}", 3);
  };
  for (const auto* five :
       {"5", "5.0", "5e0", "5E0", "0.5e1", "50e-1", "5.000e+0", "\"5\"", "\"5.0\"", "\"5e0\""})
    EXPECT_EQ(of(five), 5U) << five;
  EXPECT_EQ(of("\"1e3\""), 1000U);
  for (const auto* faulty :
       {"5.5", "\"5.5\"", "55e-1", "1e-1", "1e400", "\"1e400\"", "-5.0", "\"-5\"", "\"5 \"", "\"e3\""})
    EXPECT_EQ(of(faulty), kFaulty) << faulty;
}

}  // namespace
}  // namespace weir::policy
