// The dashboard's files, which the build embeds.
#pragma once

#include <array>
#include <string_view>

namespace weir::admin {

struct StaticFile {
  std::string_view path;
  std::string_view content_type;
  std::string_view content;
  std::array<char, 18> tag;  // hash of the content

  [[nodiscard]] std::string_view etag() const noexcept { return {tag.data(), tag.size()}; }
};

// Returns a file that lives as long as the process; null if there is no such file.
[[nodiscard]] const StaticFile* find_static(std::string_view path) noexcept;

}  // namespace weir::admin
