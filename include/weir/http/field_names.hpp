// A set of header field names, asked once for each field of each forwarded request.
//
// Names are compared as CGI and its heirs compare them: without case, and with every character that is no
// letter or digit taken for '-'. So "x_real_ip" and "X.Real.IP" are "X-Real-IP".
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::http {

namespace detail {

// Maps letters to lower case, and all other characters but digits to '-'.
inline constexpr std::array<char, 256> kFoldedNameChars = [] {
  std::array<char, 256> folded{};
  for (auto& c : folded) c = '-';
  for (unsigned c = '0'; c <= '9'; ++c) folded[c] = static_cast<char>(c);
  for (unsigned c = 'a'; c <= 'z'; ++c) folded[c] = folded[c - 'a' + 'A'] = static_cast<char>(c);
  return folded;
}();

inline char folded(char c) noexcept {
  return kFoldedNameChars[static_cast<unsigned char>(c)];
}

}  // namespace detail

class FieldNames {
 public:
  FieldNames() = default;
  FieldNames(std::initializer_list<std::string_view> patterns) {
    for (const auto pattern : patterns) add(pattern);
  }

  // "X-Real-IP" adds one name, "X-SSL-*" every name that begins with "X-SSL-". The pattern must not be empty.
  void add(std::string_view pattern);
  void clear() noexcept { *this = {}; }

  // Returns true if the name is in the set. Most names that are not cost one look into a table, by their
  // first character and their length. The name must not be empty.
  [[nodiscard]] bool contains(std::string_view name) const noexcept {
    const auto lengths = lengths_[row(name.front())];
    return (lengths >> std::min(name.size(), kLongest) & 1U) != 0 && is_listed(name);
  }
  [[nodiscard]] bool empty() const noexcept { return names_.empty(); }

 private:
  struct Name {
    std::string text;  // folded
    bool prefix;
  };
  static constexpr std::size_t kLongest = 63;  // stands for all lengths from here on

  [[nodiscard]] static std::size_t row(char first) noexcept {
    return static_cast<unsigned char>(detail::folded(first)) % 32;
  }
  [[nodiscard]] bool is_listed(std::string_view name) const noexcept;

  std::array<std::uint64_t, 32> lengths_{};  // by first character; bit n: names of n characters
  std::vector<Name> names_;
};

// Returns the fields by which servers learn who their client is, and that only trusted peers may send. A
// client that sends them itself would pass for somebody else. docs/security.md lists them.
[[nodiscard]] FieldNames usual_trusted_fields();

}  // namespace weir::http
