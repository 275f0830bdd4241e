#include "cli/import/syntax/nginx_values.hpp"

#include "weir/base/utf8.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace weir::cli::nginx {

namespace {

constexpr std::uint64_t kMostMilliseconds = 100ull * 366 * 24 * 3'600 * 1'000;

struct TimeUnit {
  std::string_view name;
  std::uint64_t milliseconds;
};
constexpr std::array kTimeUnits = std::to_array<TimeUnit>({{"ms", 1},
                                                           {"s", 1'000},
                                                           {"m", 60'000},
                                                           {"h", 3'600'000},
                                                           {"d", 86'400'000},
                                                           {"w", 604'800'000},
                                                           {"M", 2'592'000'000},
                                                           {"y", 31'536'000'000}});

bool is_decimal(char c) noexcept {
  return c >= '0' && c <= '9';
}

// Returns the length of a unit of time in milliseconds; 0 if there is no such unit.
std::uint64_t unit_of_time(std::string_view name) noexcept {
  for (const auto& unit : kTimeUnits)
    if (unit.name == name) return unit.milliseconds;
  return name.empty() ? 1'000 : 0;
}

// Returns a byte as TOML writes it between quotes. A byte that is not valid UTF-8 becomes '?'.
std::string escaped(char c) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  const auto octet = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') return {'\\', c};
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  if (octet >= 0x80) return "?";
  if (octet < 0x20 || octet == 0x7f) return {'\\', 'u', '0', '0', kHex[octet >> 4], kHex[octet & 15]};
  return {c};
}

}  // namespace

std::optional<std::uint64_t> parse_number(std::string_view text) noexcept {
  std::uint64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || !is_decimal(text.front()) || fault != std::errc{} || end != text.data() + text.size())
    return std::nullopt;
  return number;
}

std::optional<std::uint64_t> parse_size(std::string_view text) noexcept {
  unsigned shift = 0;
  if (text.ends_with('k') || text.ends_with('K')) shift = 10;
  if (text.ends_with('m') || text.ends_with('M')) shift = 20;
  if (text.ends_with('g') || text.ends_with('G')) shift = 30;
  if (shift != 0) text.remove_suffix(1);
  const auto number = parse_number(text);
  if (!number || *number > (std::numeric_limits<std::uint64_t>::max() >> (shift + 1))) return std::nullopt;
  return *number << shift;
}

std::optional<std::chrono::milliseconds> parse_time(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::uint64_t sum = 0;
  while (!text.empty()) {
    std::size_t digits = 0;
    while (digits < text.size() && is_decimal(text[digits])) ++digits;
    std::size_t end = digits;
    while (end < text.size() && !is_decimal(text[end]) && text[end] != ' ') ++end;
    const auto number = parse_number(text.substr(0, digits));
    const auto unit = unit_of_time(text.substr(digits, end - digits));
    if (!number || unit == 0 || *number > kMostMilliseconds / unit) return std::nullopt;
    sum += *number * unit;
    if (sum > kMostMilliseconds) return std::nullopt;
    text.remove_prefix(end);
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  return std::chrono::milliseconds(sum);
}

std::optional<std::string> after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return std::string(text.substr(prefix.size()));
}

std::string toml_string(std::string_view text) {
  std::string written = "\"";
  while (!text.empty()) {
    const auto length = base::first_utf8(text).length;
    written += length > 1 ? std::string(text.substr(0, length)) : escaped(text.front());
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return written + '"';
}

std::string printable(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string written;
  for (const char c : text) {
    const auto octet = static_cast<unsigned char>(c);
    if (octet < 0x20 || octet == 0x7f)
      written += {'\\', 'x', kHex[octet >> 4], kHex[octet & 15]};
    else
      written += c;
  }
  return written;
}

std::string toml_time(std::chrono::milliseconds time) {
  const auto count = static_cast<std::uint64_t>(time.count());
  if (count == 0 || count % 1'000 != 0) return toml_string(std::to_string(count) + "ms");
  if (count % 3'600'000 == 0) return toml_string(std::to_string(count / 3'600'000) + "h");
  if (count % 60'000 == 0) return toml_string(std::to_string(count / 60'000) + "min");
  return toml_string(std::to_string(count / 1'000) + "s");
}

std::string toml_size(std::uint64_t bytes) {
  constexpr std::array<std::pair<unsigned, const char*>, 3> kUnits{{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}}};
  for (const auto& [shift, name] : kUnits)
    if (bytes != 0 && bytes % (std::uint64_t{1} << shift) == 0)
      return toml_string(std::to_string(bytes >> shift) + name);
  return toml_string(std::to_string(bytes) + "B");
}

std::string re2_notation(std::string_view pcre) {
  std::string written;
  for (std::size_t at = 0; at < pcre.size(); ++at) {
    if (pcre[at] == '\\' && at + 1 < pcre.size()) {
      written += pcre[at++];
      written += pcre[at];
      continue;
    }
    written += pcre[at];
    const auto rest = pcre.substr(at);
    if (rest.starts_with("(?<") && rest.size() > 3 && rest[3] != '=' && rest[3] != '!') {
      written += "?P";
      ++at;
    }
  }
  return written;
}

std::string literal_pattern(std::string_view text) {
  std::string written;
  for (const char c : text) {
    if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) written += '\\';
    written += c;
  }
  return written;
}

}  // namespace weir::cli::nginx
