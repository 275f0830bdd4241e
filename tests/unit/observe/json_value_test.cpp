#include "weir/observe/json_value.hpp"

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace weir::observe {
namespace {

namespace json = boost::json;

TEST(JsonValue, WritesNumbersWithoutAnExponent) {
  EXPECT_EQ(json_text(json::value(28800.0)), "28800");
  EXPECT_EQ(json_text(json::value(0.25)), "0.25");
  EXPECT_EQ(json_text(json::value(std::uint64_t{18'446'744'073'709'551'615u})), "18446744073709551615");
  EXPECT_EQ(json_text(json::value(-3)), "-3");
}

TEST(JsonValue, WritesEveryKindOfValue) {
  const json::object object{{"a\"b", json::array{1, 2.5, "x\n", nullptr, true}},
                            {"empty", json::array{}},
                            {"none", json::object{}}};
  EXPECT_EQ(json_text(object), R"({"a\"b":[1,2.5,"x\n",null,true],"empty":[],"none":{}})");
  EXPECT_EQ(json_text(json::value(object)), json_text(object));
  EXPECT_EQ(json::parse(json_text(object)), json::value(object));
}

}  // namespace
}  // namespace weir::observe
