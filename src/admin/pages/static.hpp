// The dashboard's files, which are embedded in the binary.
#pragma once

#include <array>
#include <string_view>

namespace weir::admin {

struct StaticFile {
  std::string_view path;
  std::string_view content_type;
  std::string_view content;
  std::array<char, 18> tag;  // hash of the content, in quotes

  [[nodiscard]] std::string_view etag() const noexcept { return {tag.data(), tag.size()}; }
};

// Returns the file with this path; null if there is none. The file lives as long as the process.
[[nodiscard]] const StaticFile* find_static(std::string_view path) noexcept;

}  // namespace weir::admin
