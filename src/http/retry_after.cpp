#include "weir/http/answer.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>

namespace weir::http {

namespace {

// The number that all of the text is; absent: it is none.
std::optional<std::int64_t> whole(std::string_view digits) noexcept {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool all = end == digits.data() + digits.size() && !digits.empty() && digits.front() != '-';
  if (error == std::errc::result_out_of_range && all) return std::numeric_limits<std::int64_t>::max();
  return error == std::errc{} && all ? std::optional(number) : std::nullopt;
}

// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110 §5.6.7). The obsolete forms are not taken.
std::optional<std::chrono::sys_seconds> fixdate(std::string_view text) noexcept {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (text.size() != 29 || text.substr(3, 2) != ", " || text.substr(25) != " GMT" || text[7] != ' ' ||
      text[11] != ' ' || text[16] != ' ' || text[19] != ':' || text[22] != ':')
    return std::nullopt;
  const auto month = kMonths.find(text.substr(8, 3));
  const auto day = whole(text.substr(5, 2));
  const auto year = whole(text.substr(12, 4));
  const auto hour = whole(text.substr(17, 2));
  const auto minute = whole(text.substr(20, 2));
  const auto second = whole(text.substr(23, 2));
  if (month == std::string_view::npos || month % 3 != 0 || !day || !year || !hour || !minute || !second)
    return std::nullopt;
  const auto date = std::chrono::year{static_cast<int>(*year)} /
                    std::chrono::month{static_cast<unsigned>(month / 3 + 1)} /
                    std::chrono::day{static_cast<unsigned>(*day)};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  return std::chrono::sys_days{date} + std::chrono::hours{*hour} + std::chrono::minutes{*minute} +
         std::chrono::seconds{*second};
}

}  // namespace

std::optional<base::Duration> parse_retry_after(std::string_view value, base::TimePoint now) noexcept {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;  // seconds; more is not told apart
  if (const auto seconds = whole(value)) return std::chrono::seconds{std::min(*seconds, kMost)};
  const auto date = fixdate(value);
  if (!date) return std::nullopt;
  return std::max(base::Duration{0}, base::TimePoint{*date} - now);
}

}  // namespace weir::http
