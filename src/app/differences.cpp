#include "app/differences.hpp"

#include <algorithm>
#include <unordered_set>

namespace weir::app {

namespace {

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

void add(std::string_view sign, const Lines& some, const Lines& others, std::vector<std::string>& said) {
  std::unordered_set<std::string_view> known(others.begin(), others.end());
  for (const auto line : some)
    if (known.insert(line).second) said.emplace_back(sign).append(line);
}

}  // namespace

std::vector<std::string> differences(std::string_view before, std::string_view now) {
  const auto old_lines = lines_of(before);
  const auto new_lines = lines_of(now);
  std::vector<std::string> said;
  add("no longer: ", old_lines, new_lines, said);
  add("now: ", new_lines, old_lines, said);
  return said;
}

}  // namespace weir::app
