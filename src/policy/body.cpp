#include "weir/policy/body.hpp"

#include "weir/http/percent.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace weir::policy {

namespace {

char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

bool contains(std::string_view text, std::span<const std::string> words) noexcept {
  const auto same = [](char in_body, char in_word) { return lower(in_body) == in_word; };
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return word.empty() ||
           std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
  });
}

// The number behind "\u" at the front of `text`.
std::optional<char32_t> escaped_unit(std::string_view text) noexcept {
  std::uint32_t unit = 0;
  if (text.size() < 6 || !text.starts_with("\\u")) return std::nullopt;
  const auto parsed = std::from_chars(text.data() + 2, text.data() + 6, unit, 16);
  if (parsed.ptr != text.data() + 6) return std::nullopt;
  return unit;
}

void append_utf8(std::string& out, char32_t point) {
  const auto tail = [&](unsigned shift) { out += static_cast<char>(0x80U | ((point >> shift) & 0x3fU)); };
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0U | (point >> 6));
    tail(0);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xe0U | (point >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0U | (point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

// Takes the escape (RFC 8259 §7) off the front of `rest`, which begins with a backslash.
void take_escape(std::string_view& rest, std::string& out) {
  constexpr std::string_view kLetters = "bfnrt";
  constexpr std::string_view kMeant = "\b\f\n\r\t";
  if (auto unit = escaped_unit(rest)) {
    rest.remove_prefix(6);
    const auto low = escaped_unit(rest);
    if (*unit >= 0xd800 && *unit < 0xdc00 && low && *low >= 0xdc00 && *low < 0xe000) {
      unit = 0x10000 + ((*unit - 0xd800) << 10) + (*low - 0xdc00);
      rest.remove_prefix(6);
    }
    return append_utf8(out, *unit);
  }
  rest.remove_prefix(1);
  if (rest.empty()) return;
  const auto letter = kLetters.find(rest.front());
  out += letter == std::string_view::npos ? rest.front() : kMeant[letter];
  rest.remove_prefix(1);
}

std::string without_json_escapes(std::string_view rest) {
  std::string out;
  out.reserve(rest.size());
  while (!rest.empty()) {
    const auto plain = std::min(rest.find('\\'), rest.size());
    out += rest.substr(0, plain);
    rest.remove_prefix(plain);
    if (!rest.empty()) take_escape(rest, out);
  }
  return out;
}

std::string without_form_escapes(std::string_view text) {
  std::string blanks(text);
  std::replace(blanks.begin(), blanks.end(), '+', ' ');
  std::string scratch;
  return std::string(http::percent_decoded(blanks, scratch));
}

bool contains_in_json(std::string_view text, std::span<const std::string> words) {
  return contains(text, words) ||
         (text.find('\\') != std::string_view::npos && contains(without_json_escapes(text), words));
}

}  // namespace

std::string body_word(std::string_view text) {
  std::string word(text);
  std::transform(word.begin(), word.end(), word.begin(), lower);
  return word;
}

bool body_contains(std::string_view body, std::span<const std::string> words) {
  return contains_in_json(body, words) || (body.find_first_of("%+") != std::string_view::npos &&
                                           contains_in_json(without_form_escapes(body), words));
}

}  // namespace weir::policy
