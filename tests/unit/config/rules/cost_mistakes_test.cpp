// Tests the exact messages about mistakes in costs that the answer reports.
#include "unit/config/wrong_configuration.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

// Returns `count` alternatives, which a test appends to a JSON pointer.
std::string alternatives(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += "|/a";
  return text;
}

const WrongConfiguration kWrongCosts[] = {
    {"AlternativeThatIsNoPointer",
     with_rule("cost = { response_json = \"/a | /b\", reserve = 5 }\n"),
     {"weir.toml:14: rule[x].cost.response_json: found \"/a | /b\"; expected a JSON pointer such as "
      "\"/usage/total_tokens\""}},
    {"SumOfNothing",
     with_rule("cost = { response_json = [], reserve = 5 }\n"),
     {"weir.toml:14: rule[x].cost.response_json: found none; expected a JSON pointer such as "
      "\"/usage/total_tokens\""}},
    {"SumOfNumbers",
     with_rule("cost = { response_json = [\"/a\", 2], reserve = 5 }\n"),
     {"weir.toml:14: rule[x].cost.response_json: found a list with a whole number in it; expected a JSON "
      "pointer such as \"/usage/total_tokens\", a list of pointers, or a table of pointers with weights"}},
    {"OfTooManyPointers",
     with_rule("cost = { response_json = \"/a" + alternatives(32) + "\", reserve = 5 }\n"),
     {"weir.toml:14: rule[x].cost.response_json: found 33 pointers; expected at most 32"}},
    {"WeightsThatAreNoFactors",
     with_rule(
         "cost = { response_json = { \"/a\" = 0, \"/b\" = 0.0000001, \"/c\" = 1000001, \"/d\" = \"4\" }, "
         "reserve = 5 }\n"),
     {"weir.toml:14: rule[x].cost.response_json: the weight of \"/a\" is not a number that weir can use; "
      "expected a number above 0, at most 1000000, with at most six decimal places",
      "weir.toml:14: rule[x].cost.response_json: the weight of \"/b\" is not a number that weir can use; "
      "expected a number above 0, at most 1000000, with at most six decimal places",
      "weir.toml:14: rule[x].cost.response_json: the weight of \"/c\" is not a number that weir can use; "
      "expected a number above 0, at most 1000000, with at most six decimal places",
      "weir.toml:14: rule[x].cost.response_json: the weight of \"/d\" is not a number that weir can use; "
      "expected a number above 0, at most 1000000, with at most six decimal places"}},
    {"ReserveThatIsNoNumber",
     with_rule("cost = { response_json = \"/a\", reserve = \"5\" }\n"),
     {"weir.toml:14: rule[x].cost.reserve: found a string; expected a whole number from 1 to 2147483648, or "
      "{ json = \"/max_tokens\", default = n, most = n }"}},
    {"ReserveWithoutDefault",
     with_rule("cost = { response_json = \"/a\", reserve = { json = \"/n\" } }\n"),
     {"weir.toml:14: rule[x].cost.reserve.default: missing; expected a whole number from 1 to 2147483648: "
      "reserve of a "
      "request that asks for nothing"}},
    {"ReserveAboveTheMost",
     with_rule("cost = { response_json = \"/a\", reserve = { json = \"n\", default = 6, most = 5 } }\n"),
     {"weir.toml:14: rule[x].cost.reserve.json: found \"n\"; expected a JSON pointer such as \"/max_tokens\"",
      "weir.toml:14: rule[x].cost.reserve.default: found 6, which is above most, 5; expected at most that"}},
    {"ReserveBoundTooLarge",
     with_rule(
         "cost = { response_json = \"/a\", max_body = \"17MiB\", reserve = { json = \"/n\", default = 6 } "
         "}\n"),
     {"weir.toml:14: rule[x].cost.max_body: found 17825792 bytes; expected 1 byte to 16MiB, because weir "
      "holds such bodies in memory"}},
    {"CostStreamOfAHeader",
     with_rule("cost = { response_header = \"X-Cost\", reserve = 5, stream = { cut = true } }\n"),
     {"weir.toml:14: rule[x].cost.stream: found with response_header; only response_json reads streams"}},
    {"CostStreamOfARequest",
     with_rule("cost = { json = \"/a\", stream = { cut = true } }\n"),
     {"weir.toml:14: rule[x].cost: found no place of the cost in the answer; expected one: { response_header "
      "= \"…\", reserve = n } or "
      "{ "
      "response_json = \"…\", reserve = n }"}},
    {"CostStreamFreeEvents",
     with_rule("cost = { response_json = \"/a\", reserve = 5, stream = { per_event = 0 } }\n"),
     {"weir.toml:14: rule[x].cost.stream.per_event: found 0; expected a whole number from 1 to 2147483648"}},
    {"BytesWithoutTheBodiesThatCount",
     with_rule("cost = { per = \"1KiB\" }\n"),
     {"weir.toml:14: rule[x].cost.bytes: missing; expected bytes = \"response\", \"request\" or \"both\""}},
    {"BytesBesideAnotherPlace",
     with_rule("cost = { bytes = \"both\", header = \"X-Cost\", default = 2 }\n"),
     {"weir.toml:14: rule[x].cost.header: found beside bytes; expected only per and reserve beside it",
      "weir.toml:14: rule[x].cost.default: found beside bytes; expected only per and reserve beside it"}},
    {"BytesPerNothing",
     with_rule("cost = { bytes = \"both\", per = 0 }\n"),
     {"weir.toml:14: rule[x].cost.per: found 0 bytes; expected 1 byte to 1024GiB"}},
    {"BytesWithAReserveFromTheRequest",
     with_rule("cost = { bytes = \"both\", reserve = { json = \"/n\", default = 1 } }\n"),
     {"weir.toml:14: rule[x].cost.reserve: found a table beside bytes; expected a whole number, or no "
      "reserve: "
      "a request then reserves its Content-Length"}},
    {"BytesBesideAQueue",
     with_rule("algorithm = \"leaky_bucket\"\ncost = { bytes = \"response\" }\n"),
     {"weir.toml:15: rule[x].cost: found beside leaky_bucket, which cannot correct a charge after the "
      "response; "
      "expected another algorithm, in a separate rule"}},
};

class CostMistakes : public ::testing::TestWithParam<WrongConfiguration> {};

TEST_P(CostMistakes, ErrorNamesTheLineOfTheMistake) {
  EXPECT_THAT(mistakes_in(GetParam().text), ::testing::ElementsAreArray(GetParam().mistakes));
}

INSTANTIATE_TEST_SUITE_P(InvalidConfigurations, CostMistakes, ::testing::ValuesIn(kWrongCosts),
                         [](const auto& wrong) { return wrong.param.name; });

}  // namespace
}  // namespace weir::config::test
