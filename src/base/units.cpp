#include "weir/base/units.hpp"

#include <array>
#include <charconv>
#include <limits>

namespace weir::base {

namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::uint64_t kSecond = 1'000'000;
constexpr std::uint64_t kDay = 86'400 * kSecond;
constexpr std::uint64_t kLongest = 36'525 * kDay;  // 100 years

constexpr std::array kTimeUnits = {
    Unit{"us", 1},
    Unit{"ms", 1'000},
    Unit{"s", kSecond},
    Unit{"sec", kSecond},
    Unit{"m", 60 * kSecond},
    Unit{"min", 60 * kSecond},
    Unit{"h", 3600 * kSecond},
    Unit{"hour", 3600 * kSecond},
    Unit{"d", kDay},
    Unit{"day", kDay},
    Unit{"days", kDay},
};

constexpr std::array kSizeUnits = {
    Unit{"", 1},
    Unit{"B", 1},
    Unit{"kB", 1'000},
    Unit{"MB", 1'000'000},
    Unit{"GB", 1'000'000'000},
    Unit{"KiB", 1ULL << 10},
    Unit{"MiB", 1ULL << 20},
    Unit{"GiB", 1ULL << 30},
};

template <std::size_t N>
Result<std::uint64_t> parse(std::string_view text, const std::array<Unit, N>& units, std::uint64_t most,
                            const char* expected) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const auto wrong = [&] { return Error{"\"" + std::string(text) + "\" is not " + expected}; };
  if (error != std::errc{}) return wrong();
  for (const auto& [name, factor] : units) {
    if (name != unit) continue;
    if (number > most / factor) return Error{"\"" + std::string(text) + "\" is too large"};
    return number * factor;
  }
  return wrong();
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  const auto micros =
      parse(text, kTimeUnits, kLongest,
            "a duration; write a whole number with us, ms, s, min, h or day, such as \"250ms\"");
  if (!micros) return micros.error();
  return Duration(static_cast<std::int64_t>(*micros));
}

Result<std::uint64_t> parse_size(std::string_view text) {
  return parse(text, kSizeUnits, std::uint64_t{1} << 62,
               "a size; write a whole number with B, kB, MB, GB, KiB, MiB or GiB, such as \"64KiB\"");
}

std::string to_string(Duration d) {
  const auto us = static_cast<std::uint64_t>(d.count());
  for (const auto& [name, factor] : {Unit{"day", kDay}, Unit{"h", 3600 * kSecond}, Unit{"min", 60 * kSecond},
                                     Unit{"s", kSecond}, Unit{"ms", 1'000}})
    if (us != 0 && us % factor == 0) return std::to_string(us / factor) + std::string(name);
  return std::to_string(us) + "us";
}

namespace {

template <class Large, class Small>
std::string in_two_units(Duration d, const char* large_name, const char* small_name) {
  const auto whole = std::chrono::ceil<Small>(d);
  const auto rest = whole % Large(1);
  auto words = std::to_string(whole / Large(1)) + large_name;
  if (rest != Small(0)) words += ' ' + std::to_string(rest.count()) + small_name;
  return words;
}

}  // namespace

std::string to_readable(Duration d) {
  using namespace std::chrono;
  if (d <= 10s) return to_string(ceil<milliseconds>(d));
  if (d <= 100s) return std::to_string(ceil<seconds>(d).count()) + "s";
  if (d <= 1h) return in_two_units<minutes, seconds>(d, "min", "s");
  if (d <= days(1)) return in_two_units<hours, minutes>(d, "h", "min");
  return in_two_units<days, hours>(d, "d", "h");
}

}  // namespace weir::base
