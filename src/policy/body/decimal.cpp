#include "policy/body/decimal.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace weir::policy {

namespace {

// The largest number of zeros that plain_digits() puts before or after the digits. A number with so many
// zeros at its end exceeds every amount that weir accepts.
constexpr std::int64_t kFurthest = 64;

bool is_digits(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Parses the exponent of a number: the text after 'e'. Limits the result to the range from -kMost to kMost.
// Returns nullopt if the text is not an integer.
std::optional<std::int64_t> parse_exponent(std::string_view text) noexcept {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (!is_digits(text)) return std::nullopt;
  constexpr std::int64_t kMost = std::int64_t{1} << 40;  // more than the number of digits in any document
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{}) value = kMost;
  value = std::min(value, kMost);
  return negative ? -value : value;
}

}  // namespace

std::optional<std::string> plain_digits(std::string_view text) {
  const auto e = std::min(text.find_first_of("eE"), text.size());
  const auto exponent = e != text.size() ? parse_exponent(text.substr(e + 1)) : 0;
  const auto mantissa = text.substr(0, e);
  const auto point = std::min(mantissa.find('.'), mantissa.size());
  const auto whole = mantissa.substr(0, point);
  const auto fraction = mantissa.substr(std::min(point + 1, mantissa.size()));
  if (!exponent || !is_digits(whole) || (point != mantissa.size() && !is_digits(fraction)))
    return std::nullopt;
  if (*exponent == 0) return std::string(mantissa);

  std::string digits = std::string(whole) + std::string(fraction);
  auto place = static_cast<std::int64_t>(whole.size()) + *exponent;  // position of the point among the digits
  const auto first = digits.find_first_not_of('0');
  if (first == std::string::npos) return "0";
  digits.erase(0, first);
  place = std::clamp(place - static_cast<std::int64_t>(first), -kFurthest,
                     static_cast<std::int64_t>(digits.size()) + kFurthest);
  if (place <= 0) return "0." + std::string(static_cast<std::size_t>(-place), '0') + digits;
  const auto at = static_cast<std::size_t>(place);
  if (at >= digits.size()) return digits + std::string(at - digits.size(), '0');
  return digits.substr(0, at) + "." + digits.substr(at);
}

}  // namespace weir::policy
