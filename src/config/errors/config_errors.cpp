#include "weir/config/config_errors.hpp"

#include "weir/base/edit_distance.hpp"

#include <algorithm>

namespace weir::config {

namespace {

// Returns the text without its middle if it is long, because a mistake repeats what the file says. Keeps
// whole characters of UTF-8.
std::string shortened(std::string_view text) {
  constexpr std::size_t kMost = 4096;
  constexpr std::size_t kKept = 1024;  // at each end
  if (text.size() <= kMost) return std::string(text);
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U;
  };
  auto begin = kKept;
  auto end = text.size() - kKept;
  while (begin > 0 && continues(begin)) --begin;
  while (end < text.size() && continues(end)) ++end;
  return std::string(text.substr(0, begin)) + " … " + std::string(text.substr(end));
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
  found_.push_back({static_cast<std::size_t>(known - files_.begin()), line, printable(shortened(text))});
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
  // Allows one edit for every three letters of `word`, at least one, but always fewer edits than `word` has
  // letters. A name with more edits would be a misleading suggestion. `best` is the lowest number of edits
  // that is not allowed.
  std::size_t best = std::min(std::max<std::size_t>(word.size() / 3, 1) + 1, word.size());
  std::string_view found;
  for (const auto name : names) {
    const auto edits = base::edit_distance(word, name);
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
