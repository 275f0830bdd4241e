// Reads YAML into a tree. Pure.
//
// yaml-cpp parses the text, because YAML has too many forms for a parser of weir's own. Only yaml.cpp uses
// it. The tree has at most kMostYamlNodes nodes and kDeepestYaml levels. Anchors and aliases are refused: a
// short text with aliases stands for a tree of any size, and kubectl writes none.
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
  std::string text{};               // of a Text: as written, so "true" and 5 are texts, too
  std::vector<std::string> keys{};  // of a Map: names of the items
  std::vector<YamlNode> items{};    // of a List or a Map

  // Returns the item of this name; null if there is none, or if this is no Map.
  [[nodiscard]] const YamlNode* find(std::string_view key) const noexcept;
  // Returns the text of the item of this name; empty if there is no such text.
  [[nodiscard]] std::string_view text_of(std::string_view key) const noexcept;
};

// Returns the documents of a text; JSON is YAML as well. The error names the line. `file`: its name for
// errors.
[[nodiscard]] base::Result<std::vector<YamlNode>> parse_yaml(std::string_view text, const std::string& file);

}  // namespace weir::cli
