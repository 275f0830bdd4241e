// Functions for tests that return the warnings of `weir check`.
#pragma once

#include "unit/config/configuration.hpp"

namespace weir::config::test {

inline std::vector<std::string> warnings_of(const std::string& text, const std::string& file = kFile) {
  std::vector<std::string> texts;
  for (const auto& warning : parse_settings(text, file).warnings) texts.push_back(warning.what);
  return texts;
}

// Returns each warning as "FILE:LINE: WHAT".
inline std::vector<std::string> located_warnings_of(const std::string& text) {
  std::vector<std::string> texts;
  for (const auto& [where, what] : parse_settings(text, kFile).warnings) texts.push_back(where + ": " + what);
  return texts;
}

}  // namespace weir::config::test
