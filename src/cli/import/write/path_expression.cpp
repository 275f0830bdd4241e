#include "cli/import/write/path_expression.hpp"

#include "cli/import/syntax/nginx_values.hpp"

#include <algorithm>
#include <cstddef>

namespace weir::cli::nginx {

namespace {

constexpr std::string_view kPunctuation = "-._~!$&'()*+,=:@/";  // characters that weir's normal form keeps

bool is_word(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_plain(char c) noexcept {
  return is_word(c) || kPunctuation.find(c) != std::string_view::npos;
}

// Returns the character as weir's normal form of paths writes it.
std::string spelled(char c) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  const auto octet = static_cast<unsigned char>(c);
  if (is_plain(c)) return {c};
  return {'%', kHex[octet >> 4], kHex[octet & 15]};
}

// Returns true if weir's normal form writes all characters from `first` to `last` as themselves.
bool is_plain_range(char first, char last) noexcept {
  for (int octet = static_cast<unsigned char>(first); octet <= static_cast<unsigned char>(last); ++octet)
    if (!is_plain(static_cast<char>(octet))) return false;
  return true;
}

class Translator {
 public:
  explicit Translator(std::string_view pcre) noexcept : rest_(pcre) {}

  PathExpression translate() {
    in_start_ = rest_.starts_with('^');
    while (!rest_.empty()) step();
    if (alternatives_) result_.start.clear();
    return std::move(result_);
  }

 private:
  void step() {
    const char c = rest_.front();
    if (c == '\\' && rest_.size() > 1) return escape();
    if (c == '[') return set();
    if (c == '(') return group();
    if (c == '.') return any(1);
    if (c == '$') {  // PCRE's $ also matches before a final newline
      result_.pattern += "(?:%0A)?$";
      return skip(1);
    }
    const auto repetition = length_of_repetition();
    if (repetition != 0) return copy(repetition);
    if (c == '^' && result_.pattern.empty()) {
      result_.pattern = "^";
      rest_.remove_prefix(1);
      return;
    }
    if (c == '|') alternatives_ |= depth_ == 0;
    if (c == ')') --depth_;
    if (std::string_view("^|)").find(c) != std::string_view::npos) return copy(1);
    literal(c, 1);
  }

  // Translates a character `c` that matches only itself. `length`: how many characters of the expression
  // stand for `c`.
  void literal(char c, std::size_t length) {
    if (c == ';') result_.exact = false;  // weir removes path parameters before it compares
    const auto text = spelled(c);
    rest_.remove_prefix(length);
    result_.pattern += text.size() > 1 ? "(?:" + text + ")" : literal_pattern(text);
    if (!in_start_ || length_of_repetition() != 0 || c == ';')
      in_start_ = false;
    else
      result_.start += text;
  }

  void escape() {
    const char c = rest_[1];
    if (!is_word(c)) return literal(c, 2);
    constexpr std::string_view kOneOfMany = "DSW";
    constexpr std::string_view kSame = "dwAz";
    if (kOneOfMany.find(c) != std::string_view::npos) return any(2);
    if (kSame.find(c) == std::string_view::npos) result_.exact = false;
    copy(2);
  }

  // Translates a part of the expression that matches one of many characters. In weir's normal form, this
  // character may be written as %XX.
  void any(std::size_t length) {
    const auto text = std::string(rest_.substr(0, length));
    const bool repeats =
        length < rest_.size() && std::string_view("*+").find(rest_[length]) != std::string_view::npos;
    result_.pattern += repeats ? text : "(?:%..|" + text + ")";
    skip(length);
  }

  void set() {
    const bool negated = rest_.starts_with("[^");
    std::size_t at = negated ? 2 : 1;
    const auto first = at;
    while (at < rest_.size() && (rest_[at] != ']' || at == first)) at += member_at(at);
    const auto length = std::min(at + 1, rest_.size());
    if (negated) return any(length);
    copy(length);
  }

  // Returns the length of one member of a set such as [a-z]. Clears `exact` if weir writes a matching
  // character as %XX.
  std::size_t member_at(std::size_t at) {
    const auto rest = rest_.substr(at);
    if (rest.starts_with("[:")) {
      result_.exact = result_.exact && (rest.starts_with("[:al") || rest.starts_with("[:digit:]"));
      const auto end = rest.find(":]");
      return end == std::string_view::npos ? rest.size() : end + 2;
    }
    const bool escaped = rest.front() == '\\' && rest.size() > 1;
    const char c = escaped ? rest[1] : rest.front();
    const std::size_t length = escaped ? 2 : 1;
    const bool is_kind = escaped && is_word(c);
    const bool ranges = rest.size() > length + 1 && rest[length] == '-' && rest[length + 1] != ']';
    if (is_kind)
      result_.exact = result_.exact && (c == 'd' || c == 'w');
    else if (!is_plain_range(c, ranges ? rest[length + 1] : c))
      result_.exact = false;
    return ranges && !is_kind ? length + 2 : length;
  }

  void group() {
    ++depth_;
    const bool named = rest_.starts_with("(?<") && rest_.size() > 3 && rest_[3] != '=' && rest_[3] != '!';
    if (!named && !rest_.starts_with("(?P<")) return copy(rest_.starts_with("(?") ? 2 : 1);
    const auto begin = rest_.find('<');
    const auto end = std::min(rest_.find('>'), rest_.size() - 1);
    result_.pattern += "(?P" + std::string(rest_.substr(begin, end + 1 - begin));
    skip(end + 1);
  }

  // Returns the length of a repetition at the front of the rest: "*", "+", "?", "{2}", "{2,}" or "{2,3}".
  // Returns 0 if there is no repetition.
  [[nodiscard]] std::size_t length_of_repetition() const {
    if (rest_.empty()) return 0;
    if (std::string_view("*+?").find(rest_.front()) != std::string_view::npos) return 1;
    const auto end = rest_.front() == '{' ? rest_.find('}') : std::string_view::npos;
    if (end == std::string_view::npos) return 0;
    const auto inner = rest_.substr(1, end - 1);
    const auto comma = std::min(inner.find(','), inner.size());
    const bool counts = parse_number(inner.substr(0, comma)).has_value() &&
                        (comma + 1 >= inner.size() || parse_number(inner.substr(comma + 1)));
    return counts ? end + 1 : 0;
  }

  void copy(std::size_t length) {
    result_.pattern += rest_.substr(0, length);
    skip(length);
  }

  void skip(std::size_t length) {
    rest_.remove_prefix(length);
    in_start_ = false;
  }

  std::string_view rest_;
  PathExpression result_;
  int depth_ = 0;
  bool in_start_ = false;
  bool alternatives_ = false;
};

}  // namespace

PathExpression path_expression(std::string_view pcre) {
  return Translator(pcre).translate();
}

}  // namespace weir::cli::nginx
