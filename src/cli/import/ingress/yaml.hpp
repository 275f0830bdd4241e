// Reads YAML into a tree. Pure.
//
// yaml-cpp parses the text, because YAML has too many forms for a parser of weir's own. Only yaml.cpp uses
// yaml-cpp. The tree has at most kMostYamlNodes nodes and kDeepestYaml levels. Anchors and aliases are
// refused, because a short text with aliases can stand for a tree of any size. The output of kubectl has
// none.
#pragma once

#include "weir/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::cli {

inline constexpr std::size_t kMostYamlNodes = 1'000'000;
inline constexpr std::size_t kDeepestYaml = 64;

struct YamlNode {
  enum class Kind : std::uint8_t { Null, Text, List, Map };
  Kind kind = Kind::Null;
  unsigned line = 0;                // from 1
  std::string text{};               // set if the kind is Text; as written, so "true" and 5 are texts, too
  std::vector<std::string> keys{};  // set if the kind is Map: the key of each item
  std::vector<YamlNode> items{};    // set if the kind is List or Map

  // Returns the item with this key. Returns null if there is no such item, or if this node is no Map.
  [[nodiscard]] const YamlNode* find(std::string_view key) const noexcept;
  // Returns the text of the item with this key. Returns an empty text if there is no such item, or if it is
  // no Text.
  [[nodiscard]] std::string_view text_of(std::string_view key) const noexcept;
};

// Parses YAML or JSON, which is a subset of YAML. Returns the documents of the text. The error names the
// line. `file`: the name of the file for error messages.
[[nodiscard]] base::Result<std::vector<YamlNode>> parse_yaml(std::string_view text, const std::string& file);

}  // namespace weir::cli
