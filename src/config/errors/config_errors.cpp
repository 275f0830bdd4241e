#include "weir/config/config_errors.hpp"

#include <algorithm>
#include <numeric>

namespace weir::config {

namespace {

// Returns the number of edits that turn one word into the other (optimal string alignment distance). An edit
// inserts, deletes or replaces a character, or swaps two neighbours.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before(to.size() + 1), last(to.size() + 1), row(to.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const bool same = from[i - 1] == to[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[to.size()];
}

// Returns the text with control characters replaced, so that a terminal can show it.
std::string printable(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      result.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    else
      result += c;
  }
  return result;
}

}  // namespace

void ConfigErrors::add(std::string_view file, int line, std::string_view key, std::string_view what) {
  auto known = std::find(files_.begin(), files_.end(), file);
  if (known == files_.end()) known = files_.emplace(known, file);
  std::string text;
  if (!key.empty()) text.append(key).append(": ");
  text.append(what);
  found_.push_back({static_cast<std::size_t>(known - files_.begin()), line, printable(text)});
}

std::vector<std::string> ConfigErrors::lines() const {
  auto sorted = found_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Mistake& a, const Mistake& b) {
    return a.file != b.file ? a.file < b.file : a.line < b.line;
  });
  std::vector<std::string> lines;
  lines.reserve(sorted.size());
  for (const auto& mistake : sorted)
    lines.push_back(files_[mistake.file] + ":" + std::to_string(mistake.line) + ": " + mistake.text);
  return lines;
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> names) {
  // A similar name is at most one edit away for every three letters of the word, but one edit is always
  // allowed. A word that needs more edits would be a misleading suggestion.
  std::size_t best = std::min(std::max<std::size_t>(word.size() / 3, 1) + 1, word.size());
  std::string_view found;
  for (const auto name : names) {
    const auto edits = distance(word, name);
    if (edits >= best) continue;
    best = edits;
    found = name;
  }
  return found;
}

std::string suggestion(std::string_view word, std::span<const std::string_view> names) {
  if (const auto near = nearest(word, names); !near.empty()) return "; did you mean " + in_quotes(near) + "?";
  if (names.empty()) return "";
  std::string list = names.size() == 1 ? "; expected " : "; expected one of ";
  for (std::size_t i = 0; i < names.size(); ++i) list += (i == 0 ? "" : ", ") + in_quotes(names[i]);
  return list;
}

std::string in_quotes(std::string_view text) {
  return '"' + std::string(text) + '"';
}

}  // namespace weir::config
