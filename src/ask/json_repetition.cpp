#include "ask/json_repetition.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_set>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>

namespace weir::ask {

namespace {

namespace json = boost::json;

// The handler for the events of the JSON parser. Stops the parser at the first repeated name.
class NameCheck {
 public:
  using Text = json::string_view;
  using Fault = json::error_code;

  static constexpr auto max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr auto max_object_size = max_array_size;
  static constexpr auto max_string_size = max_array_size;
  static constexpr auto max_key_size = max_array_size;

  [[nodiscard]] std::optional<std::string> take_repeated() noexcept { return std::move(repeated_); }

  bool on_object_begin(Fault&) {
    open_.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t, Fault&) {
    open_.pop_back();
    return true;
  }
  bool on_key_part(Text part, std::size_t, Fault&) {
    name_.append(part.data(), part.size());
    return true;
  }
  bool on_key(Text part, std::size_t, Fault& fault) {
    name_.append(part.data(), part.size());
    const auto [known, is_new] = open_.back().insert(std::exchange(name_, {}));
    if (is_new) return true;
    repeated_ = *known;
    fault = json::make_error_code(json::error::syntax);  // any error stops the parser
    return false;
  }

  bool on_document_begin(Fault&) { return true; }
  bool on_document_end(Fault&) { return true; }
  bool on_array_begin(Fault&) { return true; }
  bool on_array_end(std::size_t, Fault&) { return true; }
  bool on_string_part(Text, std::size_t, Fault&) { return true; }
  bool on_string(Text, std::size_t, Fault&) { return true; }
  bool on_number_part(Text, Fault&) { return true; }
  bool on_int64(std::int64_t, Text, Fault&) { return true; }
  bool on_uint64(std::uint64_t, Text, Fault&) { return true; }
  bool on_double(double, Text, Fault&) { return true; }
  bool on_bool(bool, Fault&) { return true; }
  bool on_null(Fault&) { return true; }
  bool on_comment_part(Text, Fault&) { return true; }
  bool on_comment(Text, Fault&) { return true; }

 private:
  std::vector<std::unordered_set<std::string>> open_;  // the names in each open object
  std::string name_;                                   // the part of a name that the parser has read
  std::optional<std::string> repeated_;
};

// Returns the number of colons outside of strings. A JSON text has one for each member.
std::size_t count_colons(std::string_view text) noexcept {
  std::size_t colons = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_string = !in_string;
    if (text[i] == '\\')
      ++i;  // the next character is part of the escape
    else if (text[i] == ':' && !in_string)
      ++colons;
  }
  return colons;
}

std::size_t count_members(const json::value& value) noexcept {
  std::size_t members = 0;
  if (const auto* array = value.if_array())
    for (const auto& element : *array) members += count_members(element);
  if (const auto* object = value.if_object())
    for (const auto& member : *object) members += 1 + count_members(member.value());
  return members;
}

}  // namespace

bool may_repeat_members(std::string_view text, const json::value& parsed) noexcept {
  return count_colons(text) != count_members(parsed);
}

std::optional<std::string> repeated_member(std::string_view text) {
  json::basic_parser<NameCheck> parser{json::parse_options{}};
  json::error_code ec;
  (void)parser.write_some(false, text.data(), text.size(), ec);
  return parser.handler().take_repeated();
}

}  // namespace weir::ask
