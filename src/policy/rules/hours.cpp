#include "weir/policy/hours.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace weir::policy {

namespace {

using std::chrono::minutes;

constexpr minutes kDay{24 * 60};
constexpr std::array<std::string_view, 7> kDays = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

std::optional<int> two_digits(std::string_view text) noexcept {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() != 2 || !digit(text[0]) || !digit(text[1])) return std::nullopt;
  return (text[0] - '0') * 10 + (text[1] - '0');
}

// Parses a time of day from "00:00" to "24:00".
std::optional<minutes> parse_clock(std::string_view text) noexcept {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  const auto hour = two_digits(text.substr(0, 2));
  const auto minute = two_digits(text.substr(3));
  if (!hour || !minute || *minute > 59) return std::nullopt;
  const minutes time(*hour * 60 + *minute);
  return time <= kDay ? std::optional(time) : std::nullopt;
}

std::string clock(minutes time) {
  std::string text = "00:00";
  const auto put = [&](std::size_t at, long number) {
    text[at] = static_cast<char>('0' + number / 10);
    text[at + 1] = static_cast<char>('0' + number % 10);
  };
  put(0, time.count() / 60);
  put(3, time.count() % 60);
  return text;
}

}  // namespace

bool Hours::hold(base::TimePoint instant) const noexcept {
  const auto local = zone.local(instant);
  const auto on = [&](std::chrono::weekday day) { return (days >> day.c_encoding() & 1U) != 0; };
  const auto time = local.since_midnight;
  if (begin < end) return time >= begin && time < end && on(local.day);
  return time >= begin ? on(local.day) : time < end && on(local.day - std::chrono::days(1));
}

// Returns the end of the hours that hold at `instant`. The hours end when the local clock shows `end`, or
// when a clock change moves the clock out of them. Returns `instant` if the hours do not hold then. Returns
// nullopt if the hours do not end within about 10 days.
std::optional<base::TimePoint> Hours::end_from(base::TimePoint instant) const noexcept {
  auto at = instant;
  auto change = zone.change_after(at);
  while (hold(at)) {
    if (at - instant > std::chrono::days(10)) return std::nullopt;
    const auto shown = zone.local(at).since_midnight;
    at = std::chrono::floor<std::chrono::seconds>(at) + (end - shown) + (shown < end ? minutes(0) : kDay);
    if (!change || *change > at) continue;
    at = *change;
    change = zone.change_after(at);
  }
  return at;
}

std::string Hours::clock_at(base::TimePoint instant) const {
  const auto local = zone.local(instant);
  return std::string(kDays[local.day.c_encoding()]) + " " +
         clock(std::chrono::floor<minutes>(local.since_midnight));
}

std::string Hours::describe() const {
  auto text = "hours " + clock(begin) + "-" + clock(end);
  if (days != 0x7f) {
    text += " on";
    for (unsigned i = 1; i <= kDays.size(); ++i)  // from Monday to Sunday
      if ((days >> i % 7 & 1U) != 0) text.append(" ").append(kDays[i % 7]);
  }
  return text + " in " + zone.name();
}

base::Result<Hours> parse_hours(std::string_view text) {
  const auto dash = std::min(text.find('-'), text.size());
  const auto begin = parse_clock(text.substr(0, dash));
  const auto end = parse_clock(text.substr(std::min(dash + 1, text.size())));
  const auto wrong = [&](const char* why) { return base::Error{"\"" + std::string(text) + "\" " + why}; };
  if (!begin || !end || *begin == kDay)
    return wrong("is not a time range; write HH:MM-HH:MM from 00:00 to 24:00, such as \"22:00-06:00\"");
  if (*begin == *end) return wrong("ends when it begins; write \"00:00-24:00\" for the whole day");
  Hours hours;
  hours.begin = *begin;
  hours.end = *end == minutes(0) ? kDay : *end;
  return hours;
}

base::Result<std::uint8_t> parse_days(std::span<const std::string> names) {
  unsigned days = 0;
  for (const auto& name : names) {
    const auto found = std::find(kDays.begin(), kDays.end(), name);
    if (found == kDays.end())
      return base::Error{"\"" + name + "\" is not a day; write mon, tue, wed, thu, fri, sat or sun"};
    days |= 1U << (found - kDays.begin());
  }
  return static_cast<std::uint8_t>(days);
}

}  // namespace weir::policy
