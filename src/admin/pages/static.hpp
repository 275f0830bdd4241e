// The dashboard's files, embedded when weir was built.
#pragma once

#include <array>
#include <string_view>

namespace weir::admin {

struct StaticFile {
  std::string_view path;
  std::string_view content_type;
  std::string_view content;
  std::array<char, 18> tag;  // of the content

  [[nodiscard]] std::string_view etag() const noexcept { return {tag.data(), tag.size()}; }
};

// For as long as the process lives; null where there is none.
[[nodiscard]] const StaticFile* find_static(std::string_view path) noexcept;

}  // namespace weir::admin
