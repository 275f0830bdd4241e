// A set of header field names. weir looks up every field of every forwarded request in such a set. The
// configuration owns the set, which does not change while requests use it, so all workers share it.
//
// Names are compared as CGI compares them: case is ignored, and every character that is not a letter or a
// digit counts as '-'. So "x_real_ip" and "X.Real.IP" equal "X-Real-IP".
#pragma once

#include "weir/http/head.hpp"

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

// Returns true if the two names are equal by the comparison described above.
[[nodiscard]] inline bool is_same_name(std::string_view one, std::string_view other) noexcept {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](char a, char b) { return detail::folded(a) == detail::folded(b); });
}

class FieldNames {
 public:
  FieldNames() = default;
  FieldNames(std::initializer_list<std::string_view> patterns) {
    for (const auto pattern : patterns) add(pattern);
  }

  // Adds a name ("X-Real-IP") or a prefix ("X-SSL-*"). The pattern must not be empty.
  void add(std::string_view pattern);
  void clear() noexcept { *this = {}; }

  // Returns true if the field's name is in the set. A field with a FieldId of its own costs one bit test.
  // Most other fields cost one table lookup by the name's first character, third character and length.
  [[nodiscard]] bool contains(const Field& field) const noexcept {
    if (field.id != FieldId::Other) return (known_ >> static_cast<unsigned>(field.id) & 1U) != 0;
    return contains(field.name);
  }
  // Returns true if the name is in the set. The name must not be empty.
  [[nodiscard]] bool contains(std::string_view name) const noexcept {
    const auto row = row_of(name);
    return (lengths_[row] >> std::min(name.size(), kLongest) & 1U) != 0 && is_listed(row, name);
  }
  [[nodiscard]] bool empty() const noexcept { return names_.empty(); }

 private:
  struct Name {
    std::string text;  // the name with its characters mapped by kFoldedNameChars
    bool prefix;

    [[nodiscard]] bool matches(std::string_view name) const noexcept;
  };
  static constexpr std::size_t kRows = 64;
  // bit 63 of an element of lengths_ stands for every length of 63 or more
  static constexpr std::size_t kLongest = 63;

  [[nodiscard]] static std::size_t row_of(std::string_view name) noexcept {
    const auto first = static_cast<unsigned char>(detail::folded(name.front()));
    const auto third = static_cast<unsigned char>(name.size() > 2 ? detail::folded(name[2]) : '-');
    return (5U * first + third) % kRows;  // names with a common prefix get different rows of the hash table
  }
  [[nodiscard]] bool is_listed(std::size_t row, std::string_view name) const noexcept;
  void add_to(std::size_t row, const Name& name);

  // for each row of the hash table; bit n: the row has a name of n characters
  std::array<std::uint64_t, kRows> lengths_{};
  // the index in names_ at which each row of the hash table begins
  std::array<std::uint16_t, kRows + 1> begins_{};
  std::vector<Name> names_;  // the names of all rows, row after row
  std::uint32_t known_ = 0;  // bit n: the set has the field with FieldId n
};

// Returns the fields that tell a server who its client is. Only trusted peers may send these fields, because
// a client that sends them could impersonate somebody else. docs/security.md lists them.
[[nodiscard]] FieldNames usual_trusted_fields();

}  // namespace weir::http
