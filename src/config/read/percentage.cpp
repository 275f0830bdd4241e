#include "config/read/percentage.hpp"

#include <charconv>
#include <string>

namespace weir::config {

namespace {

// Returns the number in a text such as "10%", which is a number and `unit`. Returns nullopt for any other
// text.
std::optional<unsigned> number_before(std::string_view unit, std::string_view text) {
  unsigned number = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool good = error == std::errc{} && std::string_view(stop, end) == unit;
  return good ? std::optional(number) : std::nullopt;
}

bool holds(const PercentageBounds& bounds, unsigned percent) {
  return percent >= bounds.least && percent <= bounds.most && percent % bounds.step == 0;
}

std::string quoted(unsigned percent) {
  return in_quotes(std::to_string(percent) + "%");
}

}  // namespace

std::optional<unsigned> read_percentage(const TableReader& table, std::string_view key,
                                        PercentageBounds bounds) {
  const auto text = table.text(key);
  if (const auto percent = number_before("%", text); percent && holds(bounds, *percent)) return percent;
  auto meant = number_before("", text);
  if (!meant) meant = number_before(" %", text);
  const auto what = bounds.step == 1 ? "a share" : "a multiple of " + std::to_string(bounds.step) + "%";
  table.mistake(
      key,
      "found " + in_quotes(text) + "; expected " + what + " from " + quoted(bounds.least) + " to " +
          quoted(bounds.most) +
          (meant && holds(bounds, *meant) ? ": write " + std::string(key) + " = " + quoted(*meant) : ""));
  return std::nullopt;
}

}  // namespace weir::config
