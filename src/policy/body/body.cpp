#include "weir/policy/body.hpp"

#include "weir/http/percent.hpp"

#include <algorithm>
#include <bit>
#include <bitset>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>

namespace weir::policy {

namespace {

char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

// Searches a body for all words in one pass. Hashes the first octets of each word: as many octets as the
// shortest word has, at most four. `begins_` has one bit for each possible hash, and the constructor sets the
// bits of the words' hashes. At each position of the body, weir compares the words only if the bit for the
// octets at this position is set. Each body gets a new object, because setting the bits takes less time than
// reading a body.
class Words {
 public:
  explicit Words(std::span<const std::string> words) : words_(words) {
    for (const auto& word : words) width_ = std::min(width_, word.size());
    mask_ = width_ == kWidest ? ~std::uint32_t{0} : (std::uint32_t{1} << 8 * width_) - 1;
    for (const auto& word : words) {
      char beginning[kWidest] = {};
      word.copy(beginning, width_);
      begins_.set(place(beginning));
    }
  }

  [[nodiscard]] bool occur_in(std::string_view text) const noexcept {
    if (width_ == 0) return true;
    for (; text.size() >= kWidest; text.remove_prefix(1))
      if (begins_[place(text.data())] && is_any_at(text)) return true;
    for (; !text.empty(); text.remove_prefix(1))
      if (is_any_at(text)) return true;
    return false;
  }

 private:
  static constexpr std::size_t kWidest = 4;  // maximum of width_, in octets

  // Returns the hash of the first `width_` octets at `four`, an index into `begins_`. REQUIRES: four octets
  // at `four`. The hash ignores the bit that distinguishes upper and lower case, so some other octets also
  // have equal hashes. The multiplier is 2^32 divided by the golden ratio.
  [[nodiscard]] std::size_t place(const char* four) const noexcept {
    static_assert(std::endian::native == std::endian::little);
    std::uint32_t octets = 0;
    std::memcpy(&octets, four, sizeof octets);
    return ((octets | 0x2020'2020U) & mask_) * 0x9E37'79B1U >> 16;
  }

  [[nodiscard]] bool is_any_at(std::string_view text) const noexcept {
    const auto same = [](char in_word, char in_body) { return lower(in_body) == in_word; };
    return std::any_of(words_.begin(), words_.end(), [&](const std::string& word) {
      return word.size() <= text.size() && std::equal(word.begin(), word.end(), text.begin(), same);
    });
  }

  std::span<const std::string> words_;  // the words in lower case
  std::size_t width_ = kWidest;         // size of the shortest word, at most kWidest
  std::uint32_t mask_ = 0;
  std::bitset<65536> begins_;
};

// Returns the number in the escape "\uXXXX" at the front of `text`; nullopt if there is none.
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

// Removes an escape (RFC 8259 §7) from the front of `rest` and appends the decoded character to `out`.
// REQUIRES: `rest` begins with a backslash.
void take_escape(std::string_view& rest, std::string& out) {
  constexpr std::string_view kEscapes = "bfnrt";
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
  const auto letter = kEscapes.find(rest.front());
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
  std::string scratch;
  return std::string(http::percent_decoded(text, scratch, http::Plus::Blank));
}

bool holds(std::string_view text, char octet) noexcept {
  return text.find(octet) != std::string_view::npos;
}

bool contains_in_json(std::string_view text, const Words& words) {
  return words.occur_in(text) || (holds(text, '\\') && words.occur_in(without_json_escapes(text)));
}

}  // namespace

std::string body_word(std::string_view text) {
  std::string word(text);
  std::transform(word.begin(), word.end(), word.begin(), lower);
  return word;
}

bool body_contains(std::string_view body, std::span<const std::string> texts) {
  const Words words(texts);
  return contains_in_json(body, words) ||
         ((holds(body, '%') || holds(body, '+')) && contains_in_json(without_form_escapes(body), words));
}

}  // namespace weir::policy
