#include "weir/policy/body.hpp"

#include <algorithm>

namespace weir::policy {

namespace {

char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

}  // namespace

std::string body_word(std::string_view text) {
  std::string word(text);
  std::transform(word.begin(), word.end(), word.begin(), lower);
  return word;
}

bool body_contains(std::string_view body, std::span<const std::string> words) noexcept {
  const auto same = [](char in_body, char in_word) { return lower(in_body) == in_word; };
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return word.empty() ||
           std::search(body.begin(), body.end(), word.begin(), word.end(), same) != body.end();
  });
}

}  // namespace weir::policy
