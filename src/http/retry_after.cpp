#include "weir/http/answer.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>

namespace weir::http {

namespace {

// Returns the number if the whole text is a number, otherwise nullopt.
std::optional<std::int64_t> whole(std::string_view digits) noexcept {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool all = end == digits.data() + digits.size() && !digits.empty() && digits.front() != '-';
  if (error == std::errc::result_out_of_range && all) return std::numeric_limits<std::int64_t>::max();
  return error == std::errc{} && all ? std::optional(number) : std::nullopt;
}

// The parts of a date as text.
struct DateText {
  std::string_view day, month, year, clock;  // clock: "08:49:37"
};

// Splits a date such as "Sun, 06 Nov 1994 08:49:37 GMT".
std::optional<DateText> imf_fixdate(std::string_view text) noexcept {
  const bool formed = text.size() == 29 && text.substr(3, 2) == ", " && text[7] == ' ' && text[11] == ' ' &&
                      text[16] == ' ' && text.substr(25) == " GMT";
  if (!formed) return std::nullopt;
  return DateText{text.substr(5, 2), text.substr(8, 3), text.substr(12, 4), text.substr(17, 8)};
}

// Splits a date such as "Sunday, 06-Nov-94 08:49:37 GMT".
std::optional<DateText> rfc850_date(std::string_view text) noexcept {
  const auto comma = text.find(',');
  if (comma < 6 || comma > 9) return std::nullopt;  // the shortest day is "Monday", the longest "Wednesday"
  const auto rest = text.substr(comma);
  const bool formed = rest.size() == 24 && rest.substr(0, 2) == ", " && rest[4] == '-' && rest[8] == '-' &&
                      rest[11] == ' ' && rest.substr(20) == " GMT";
  if (!formed) return std::nullopt;
  return DateText{rest.substr(2, 2), rest.substr(5, 3), rest.substr(9, 2), rest.substr(12, 8)};
}

// Splits a date such as "Sun Nov  6 08:49:37 1994".
std::optional<DateText> asctime_date(std::string_view text) noexcept {
  const bool formed =
      text.size() == 24 && text[3] == ' ' && text[7] == ' ' && text[10] == ' ' && text[19] == ' ';
  if (!formed) return std::nullopt;
  const auto day = text[8] == ' ' ? text.substr(9, 1) : text.substr(8, 2);
  return DateText{day, text.substr(4, 3), text.substr(20, 4), text.substr(11, 8)};
}

std::optional<std::chrono::seconds> time_of_day(std::string_view clock) noexcept {
  if (clock[2] != ':' || clock[5] != ':') return std::nullopt;
  const auto hour = whole(clock.substr(0, 2));
  const auto minute = whole(clock.substr(3, 2));
  const auto second = whole(clock.substr(6, 2));
  if (!hour || !minute || !second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  return std::chrono::hours{*hour} + std::chrono::minutes{*minute} + std::chrono::seconds{*second};
}

std::optional<base::TimePoint> instant_of(const DateText& text, std::int64_t year) noexcept {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const auto month = kMonths.find(text.month);
  const auto day = whole(text.day);
  const auto time = time_of_day(text.clock);
  if (month == std::string_view::npos || month % 3 != 0 || !day || !time) return std::nullopt;
  const auto date = std::chrono::year{static_cast<int>(year)} /
                    std::chrono::month{static_cast<unsigned>(month / 3 + 1)} /
                    std::chrono::day{static_cast<unsigned>(*day)};
  if (!date.ok()) return std::nullopt;
  return base::TimePoint{std::chrono::sys_days{date} + *time};
}

// Returns the instant of a date whose year has two digits. Chooses the latest century in which the date is at
// most 50 years after `now` (RFC 9110 §5.6.7).
std::optional<base::TimePoint> in_nearest_century(const DateText& text, std::int64_t year,
                                                  base::TimePoint now) noexcept {
  const std::chrono::year_month_day today{std::chrono::floor<std::chrono::days>(now)};
  const auto time = now - std::chrono::floor<std::chrono::days>(now);
  const auto latest = std::chrono::sys_days{today + std::chrono::years{50}} + time;
  const auto century = std::int64_t{static_cast<int>(today.year())} / 100 * 100;
  for (const auto each : {century + 100, century, century - 100}) {
    const auto instant = instant_of(text, each + year);
    if (instant && *instant <= latest) return instant;
  }
  return std::nullopt;
}

// Returns the instant of a date in any of the three forms that a recipient must accept (RFC 9110 §5.6.7).
// Does not check that the day of the week is right.
std::optional<base::TimePoint> parse_http_date(std::string_view value, base::TimePoint now) noexcept {
  const auto short_year = rfc850_date(value);
  const auto fixdate = imf_fixdate(value);
  const auto text = short_year ? short_year : fixdate ? fixdate : asctime_date(value);
  if (!text) return std::nullopt;
  const auto year = whole(text->year);
  if (!year) return std::nullopt;
  return short_year ? in_nearest_century(*text, *year, now) : instant_of(*text, *year);
}

}  // namespace

std::optional<base::Duration> parse_retry_after(std::string_view value, base::TimePoint now) noexcept {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;  // seconds; larger values are treated as this value
  if (const auto seconds = whole(value)) return std::chrono::seconds{std::min(*seconds, kMost)};
  const auto date = parse_http_date(value, now);
  if (!date) return std::nullopt;
  return std::max(base::Duration{0}, *date - now);
}

}  // namespace weir::http
