#include "config/errors/fitting_value.hpp"

#include "config/errors/migration_advice.hpp"
#include "config/errors/other_spellings.hpp"
#include "config/schema/schema_patterns.hpp"

#include "weir/base/endpoint.hpp"
#include "weir/base/units.hpp"
#include "weir/config/config_errors.hpp"
#include "weir/limit/rate.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <regex>
#include <utility>

namespace weir::config {

namespace {

std::string small(std::string_view text) {
  std::string letters(text);
  for (char& c : letters)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  return letters;
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string quoted_if(bool good, const std::string& text) {
  return good ? in_quotes(text) : std::string();
}

std::string_view boolean_for(const std::string& word) {
  constexpr std::array<std::string_view, 5> kTrue{"true", "yes", "on", "1", "enabled"};
  constexpr std::array<std::string_view, 5> kFalse{"false", "no", "off", "0", "disabled"};
  if (std::find(kTrue.begin(), kTrue.end(), word) != kTrue.end()) return "true";
  return std::find(kFalse.begin(), kFalse.end(), word) != kFalse.end() ? "false" : std::string_view{};
}

// Returns a whole number that the key's range permits: "4" for the text "4", "10000" for the text "10k".
// Returns an empty text if `text` is no such number.
std::string whole_for(const KeySpec& spec, std::string text) {
  if (text.ends_with('k')) text.replace(text.size() - 1, 1, "000");
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool good =
      is_digits(text) && error == std::errc{} && stop == end && number >= spec.least && number <= spec.most;
  return good ? std::to_string(number) : std::string();
}

std::string choice_for(const KeySpec& spec, const std::string& word) {
  for (const auto& choice : spec.choices)
    if (choice.word == word || choice.word == word_for(spec.name, word)) return in_quotes(choice.word);
  return {};
}

std::string rate_for(const std::string& text) {
  const auto rate = is_digits(text) ? text + "/s" : text;
  return quoted_if(limit::parse_rate(rate).has_value(), rate);
}

std::string address_for(const std::string& text) {
  const auto address = is_digits(text) ? "127.0.0.1:" + text : text;
  if (base::parse_endpoint(address)) return in_quotes(address);
  return quoted_if(base::parse_endpoint(address + ":8080").has_value(), address + ":8080");
}

// Returns true if the setting accepts this string.
bool matches(const KeySpec& spec, const std::string& text) {
  constexpr std::size_t kLongest = 200;  // std::regex uses stack in proportion to the length
  return spec.pattern.empty() ||
         (text.size() <= kLongest && std::regex_match(text, std::regex(std::string(spec.pattern))));
}

// Returns `text` if the setting accepts it. Otherwise returns an accepted text that the user probably meant,
// such as "10%" for "10". Returns an empty text if there is none.
std::string spelled_for(const KeySpec& spec, const std::string& text) {
  for (const auto& spelling : {text, text + "%", text + "/s", attribute_for(text)})
    if (!spelling.empty() && matches(spec, spelling)) return spelling;
  return {};
}

// Returns an example value for a string setting with this name.
std::string text_called(std::string_view name) {
  if (name == "origins") return in_quotes("https://app.example.com");
  if (name == "path") return in_quotes("/healthz");
  if (name == "header") return in_quotes("X-API-Key");
  return name == "url" ? in_quotes("redis://localhost:6379") : in_quotes("NAME");
}

std::string each_quoted(const KeySpec& spec, const Node& list) {
  std::string texts;
  for (const auto& element : *list.array()) {
    const auto one = spelled_for(spec, as_plain_text(element));
    if (one.empty()) return {};
    texts += (texts.empty() ? "" : ", ") + in_quotes(one);
  }
  return texts.empty() ? "" : "[" + texts + "]";
}

bool is_list(Kind kind) {
  return kind == Kind::Texts || kind == Kind::OneOrMore;
}

}  // namespace

std::string as_toml(const Node& node) {
  if (const auto* text = node.text()) return in_quotes(*text);
  if (const auto* whole = std::get_if<std::int64_t>(&node.value)) return std::to_string(*whole);
  if (const auto* flag = std::get_if<bool>(&node.value)) return *flag ? "true" : "false";
  const auto* array = node.array();
  if (array == nullptr) return {};
  std::string list;
  for (const auto& element : *array) {
    const auto one = as_toml(element);
    if (one.empty()) return {};
    list += (list.empty() ? "" : ", ") + one;
  }
  return "[" + list + "]";
}

std::string as_plain_text(const Node& node) {
  if (const auto* text = node.text()) return *text;
  const auto value = as_toml(node);
  return is_digits(value) ? value : std::string();
}

std::string fitting_text(const KeySpec& spec, std::string_view text) {
  const std::string plain(text);
  const auto listed = [&](const std::string& one) { return one.empty() ? one : "[" + in_quotes(one) + "]"; };
  switch (spec.kind) {
    case Kind::Bool:
      return std::string(boolean_for(small(text)));
    case Kind::Whole:
      return whole_for(spec, small(text));
    case Kind::Choice:
      return choice_for(spec, small(text));
    case Kind::Duration:
      if (base::parse_duration(plain)) return in_quotes(plain);
      return quoted_if(nearest_duration(text).has_value(), nearest_duration(text).value_or(""));
    case Kind::Size:
      if (base::parse_size(plain)) return in_quotes(plain);
      return quoted_if(nearest_size(text).has_value(), nearest_size(text).value_or(""));
    case Kind::Rate:
    case Kind::Limit:
      return rate_for(nearest_rate(text).value_or(plain));
    case Kind::Address:
      return address_for(plain);
    case Kind::Text:
    case Kind::OneOrMore:
      return quoted_if(!spelled_for(spec, plain).empty(), spelled_for(spec, plain));
    case Kind::Texts:
      return listed(spelled_for(spec, plain));
    default:
      return {};
  }
}

std::string fitting_value(const KeySpec& spec, const Node& entry) {
  if (const auto* array = entry.array()) {
    if (is_list(spec.kind)) return each_quoted(spec, entry);
    return array->empty() ? "" : fitting_value(spec, array->front());
  }
  if (spec.kind == Kind::Bool && std::holds_alternative<bool>(entry.value)) return as_toml(entry);
  const auto text = as_plain_text(entry);
  return text.empty() ? text : fitting_text(spec, text);
}

std::string example_value(const KeySpec& spec) {
  const std::string usual(spec.fallback);
  switch (spec.kind) {
    case Kind::Bool:
      return usual.empty() ? "true" : usual;
    case Kind::Whole:
      return usual.empty() ? std::to_string(spec.least) : usual;
    case Kind::Choice:
      return in_quotes(usual.empty() ? spec.choices.front().word : std::string_view(usual));
    case Kind::Duration:
      return in_quotes(usual.empty() ? "30s" : usual);
    case Kind::Size:
      return in_quotes(usual.empty() ? "64KiB" : usual);
    case Kind::Rate:
    case Kind::Limit:
      return in_quotes("10/s");
    case Kind::Address:
      return in_quotes("127.0.0.1:8080");
    case Kind::Text:
    case Kind::OneOrMore:
      return usual.empty() ? text_called(spec.name) : in_quotes(usual);
    case Kind::Texts:
      return "[" + text_called(spec.name) + "]";
    default:
      return {};
  }
}

std::string_view noun_of_text(const KeySpec& spec) {
  if (spec.pattern == pattern::kBandwidth) return "a size and a period such as \"1MiB/s\"";
  return spec.pattern.ends_with('%') ? "a share such as \"5%\"" : "a string";
}

std::string_view noun_of(Kind kind) {
  switch (kind) {
    case Kind::Whole:
      return "whole number";
    case Kind::Duration:
      return "duration";
    case Kind::Size:
      return "size";
    case Kind::Rate:
    case Kind::Limit:
      return "rate";
    case Kind::Address:
      return "address";
    default:
      return "value";
  }
}

namespace {

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Reads lines of TOML character by character. Collects the keys whose values have begun but not ended.
class OpenKeys {
 public:
  void take(std::string_view line, std::size_t at) {
    const char c = line[at];
    if (quote_ != 0) {
      const bool escaped = std::exchange(is_escape_open_, !is_escape_open_ && c == '\\' && quote_ == '"');
      if (c == quote_ && !escaped) quote_ = 0;
      return;
    }
    if (c == '"' || c == '\'') quote_ = c;
    if (c == '[' || c == '{') open_.push_back(c);
    if (c == '{') is_value_open_ = false;
    if (c == '=') begin_value(trim(line.substr(begin_, at - begin_)));
    if (c == '}') end_value(), end_table();
    if ((c == ']' || c == '}') && !open_.empty()) open_.pop_back();
    if (c == ',' && !open_.ends_with('[')) end_value();
    if (c == '=' || c == '{' || c == ',') begin_ = at + 1;
  }
  [[nodiscard]] std::vector<std::string> keys() { return std::move(keys_); }

 private:
  void begin_value(std::string_view key) {
    keys_.emplace_back(key);
    is_value_open_ = true;
  }
  void end_value() {
    if (is_value_open_) keys_.pop_back();
    is_value_open_ = false;
  }
  void end_table() {
    if (!keys_.empty()) keys_.pop_back();
  }

  std::vector<std::string> keys_;
  std::string open_;  // brackets that were opened and not closed yet
  std::size_t begin_ = 0;
  char quote_ = 0;
  bool is_escape_open_ = false;  // true: the next character in quotes is escaped
  // True from the "=" of the last key in keys_ to the end of the key's value. Within an inline table, false
  // before the first entry and between entries.
  bool is_value_open_ = false;
};

}  // namespace

std::vector<std::string> keys_before(std::string_view line, std::size_t at) {
  OpenKeys open;
  for (std::size_t i = 0; i < std::min(at, line.size()); ++i) open.take(line, i);
  return open.keys();
}

const KeySpec* find_key(const TableSpec& table, std::span<const std::string> path) noexcept {
  if (path.empty()) return nullptr;
  const auto* key = table.find(path.front());
  return key == nullptr || path.size() == 1 ? key : find_below(*key, path.subspan(1));
}

const KeySpec* find_below(const KeySpec& key, std::span<const std::string> path) noexcept {
  if (path.empty() || key.inner == nullptr) return nullptr;
  if (key.kind == Kind::Subtable || key.kind == Kind::Subtables || key.kind == Kind::OneOrMoreTables)
    return find_key(*key.inner, path);
  const auto rest = key.kind == Kind::Named ? path.subspan(1) : path;
  for (const auto& shape : key.inner->keys)
    if (const auto* found = find_below(shape, rest)) return found;
  return nullptr;
}

}  // namespace weir::config
