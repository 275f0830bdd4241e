#include "admin/pages/static.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace weir::admin {

namespace {

constexpr std::string_view kHtml = "text/html; charset=utf-8";
constexpr std::string_view kScript = "text/javascript; charset=utf-8";
constexpr std::string_view kStyle = "text/css; charset=utf-8";
constexpr std::string_view kPicture = "image/svg+xml";

// Returns an FNV-1a hash of the content, in quotes. Browsers use it only to check whether their copy is
// current.
constexpr std::array<char, 18> tag_of(std::string_view content) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : content) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::array<char, 18> tag{};
  tag.front() = tag.back() = '"';
  for (std::size_t i = 1; i <= 16; ++i, hash >>= 4) tag[i] = kDigits[hash & 15];
  return tag;
}

constexpr StaticFile file(std::string_view path, std::string_view content_type, std::string_view content) {
  return {path, content_type, content, tag_of(content)};
}

// The string literal of dygraph.js is longer than 65,536 bytes, the length that the C++ standard requires
// compilers to accept. GCC and clang accept longer literals.
#pragma GCC diagnostic ignored "-Woverlength-strings"

// The files, in the order in which the dashboard's page loads them.
constexpr std::array kFiles{
    file("/", kHtml,
#include "admin/web/index.html.inc"
         ),
    file("/web/page.css", kStyle,
#include "admin/web/page.css.inc"
         ),
    file("/web/dygraph.js", kScript,
#include "admin/web/dygraph.js.inc"
         ),
    file("/web/main.js", kScript,
#include "admin/web/main.js.inc"
         ),
    file("/web/api.js", kScript,
#include "admin/web/api.js.inc"
         ),
    file("/web/charts.js", kScript,
#include "admin/web/charts.js.inc"
         ),
    file("/web/dom.js", kScript,
#include "admin/web/dom.js.inc"
         ),
    file("/web/explain.js", kScript,
#include "admin/web/explain.js.inc"
         ),
    file("/web/panels.js", kScript,
#include "admin/web/panels.js.inc"
         ),
    file("/web/rates.js", kScript,
#include "admin/web/rates.js.inc"
         ),
    file("/web/top.js", kScript,
#include "admin/web/top.js.inc"
         ),
    file("/web/verdict.js", kScript,
#include "admin/web/verdict.js.inc"
         ),
    file("/web/words.js", kScript,
#include "admin/web/words.js.inc"
         ),
    file("/web/icon.svg", kPicture,
#include "admin/web/icon.svg.inc"
         ),
};

}  // namespace

const StaticFile* find_static(std::string_view path) noexcept {
  const auto found =
      std::find_if(kFiles.begin(), kFiles.end(), [&](const StaticFile& file) { return file.path == path; });
  return found == kFiles.end() ? nullptr : found;
}

}  // namespace weir::admin
