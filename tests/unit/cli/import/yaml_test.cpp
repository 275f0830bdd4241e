// Tests the tree that weir import builds from YAML, and the bounds of this tree.
#include "cli/import/ingress/yaml.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const std::string& text) {
  const auto parsed = parse_yaml(text, "i.yaml");
  return parsed ? "" : parsed.error().message;
}

TEST(Yaml, ReadsMapsListsAndTextsWithTheirLines) {
  const auto parsed = parse_yaml("a: 1\nb:\n- x\n- {c: 'true', d: ~}\n---\nsecond\n", "i.yaml");
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->size(), 2U);
  const auto& root = parsed->front();
  EXPECT_EQ(root.text_of("a"), "1");
  const auto* list = root.find("b");
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(list->items.size(), 2U);
  EXPECT_EQ(list->items[0].text, "x");
  EXPECT_EQ(list->items[1].line, 4U);
  EXPECT_THAT(list->items[1].keys, ElementsAre("c", "d"));
  EXPECT_EQ(list->items[1].text_of("c"), "true");
  EXPECT_EQ(list->items[1].find("d")->kind, YamlNode::Kind::Null);
  EXPECT_EQ(list->items[1].find("e"), nullptr);
  EXPECT_EQ((*parsed)[1].text, "second");
}

TEST(Yaml, ReadsJsonAsYaml) {
  const auto parsed = parse_yaml("{\"a\": {\"b\": [1, \"x\"]}}", "i.json");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->front().find("a")->find("b")->items[1].text, "x");
}

TEST(Yaml, SyntaxErrorNamesItsLine) {
  EXPECT_THAT(error_of("a: 1\nb: [1\n"), testing::StartsWith("i.yaml:"));
  EXPECT_EQ(error_of("a: 1\na: 2\n"), "i.yaml:2: found the key \"a\" twice; remove one of them");
  EXPECT_EQ(error_of("a: 1\n[x]: 2\n"), "i.yaml:2: found a key that is no text");
}

// Aliases could make a short text huge: a line such as "b: [*x, *x]" multiplies the number of values, and
// nine such lines could stand for a thousand million values.
TEST(Yaml, RejectsAnchorsAndAliases) {
  EXPECT_EQ(error_of("a: &x [1, 1]\nb: [*x, *x]\n"),
            "i.yaml:1: found an anchor; weir import reads YAML without anchors");
  EXPECT_THAT(error_of("a: *x\n"), testing::StartsWith("i.yaml:1: "));
}

TEST(Yaml, RejectsTextsThatAreNestedTooDeeplyOrHaveTooManyKeys) {
  EXPECT_EQ(error_of(std::string(kDeepestYaml, '[') + std::string(kDeepestYaml, ']')), "");
  EXPECT_THAT(error_of(std::string(kDeepestYaml + 1, '[') + std::string(kDeepestYaml + 1, ']')),
              HasSubstr("found more than 64 levels"));
  EXPECT_THAT(error_of(std::string(100'000, '[')), testing::StartsWith("i.yaml:1: found "));
  std::string keys;
  for (int i = 0; i <= 10'000; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(error_of(keys), "i.yaml:10001: found more than 10000 keys in one map");
}

}  // namespace
}  // namespace weir::cli
