#include "config/errors/toml_repetition.hpp"

#include "config/errors/fitting_value.hpp"
#include "config/errors/toml_fault.hpp"

#include <optional>

namespace weir::config {

namespace {

// Characters that people write before '=' out of habit from other languages, as in := >= !=
constexpr std::string_view kBeforeEquals = ":+-<>!?~";

bool is_one_of(char c, std::string_view set) {
  return set.find(c) != std::string_view::npos;
}

std::string describe_repeated_header(std::string_view name, std::string_view reason) {
  const auto header = "[" + std::string(name) + "]";
  const bool mixed = reason.find("array") != std::string_view::npos;
  if (!mixed && reason.find("existing table") == std::string_view::npos)
    return "found the key " + std::string(name) + " with a value, and the header " + header +
           "; keep one of the two";
  const auto what =
      mixed ? "found both " + header + " and [" + header + "]" : "found " + header + " a second time";
  if (is_list_of_tables(name)) return what + "; write [" + header + "] each time";
  return what + "; keep one" + (mixed ? " " + header : "") + ", with all of its keys below it";
}

// Returns the names that lead to the repeated key, from the outermost table to the key itself.
Names repeated_key(std::string_view line, std::size_t at) {
  if (auto keys = keys_before(line, at); !keys.empty()) return keys;
  return {std::string(without_blanks(line.substr(0, line.find('='))))};
}

bool is_header(std::string_view line, const ParserStop& stop) {
  return without_blanks(line).starts_with('[') && keys_before(line, offset_of(line, stop.column)).empty();
}

// Returns the text with only those dots that separate two names: "a.b" for "a..b", ".a.b" and "a.b.".
std::string without_lone_dots(std::string_view text) {
  std::string kept;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = kept.empty() || is_one_of(kept.back(), ".[");
    const bool ends = i + 1 == text.size() || text[i + 1] == ']';
    if (text[i] != '.' || (!begins && !ends)) kept += text[i];
  }
  return kept;
}

// Returns a message about a key or header with a misplaced dot, such as "path..a", ".a" or "a.".
std::string describe_dots(std::string_view line, std::size_t at) {
  const auto start = line.substr(0, at).find_last_of("{,");
  auto name = line.substr(start == std::string_view::npos ? 0 : start + 1);
  name = without_blanks(name.substr(0, name.find('=')));
  const auto fixed = without_lone_dots(name);
  if (fixed == name || fixed.empty()) return {};
  return "found a dot too many in " + std::string(name) + "; write " + fixed;
}

// Returns the offset of the equals sign at or beside `at`, where the parser stopped; nullopt if there is
// none.
std::optional<std::size_t> equals_at(std::string_view line, std::size_t at) {
  const bool before = is_one_of(line[at], kBeforeEquals) && at + 1 < line.size() && line[at + 1] == '=';
  if (before) return at + 1;
  const bool behind = line[at] == '>' && at > 0 && line[at - 1] == '=';
  if (behind) return at - 1;
  return line[at] == '=' ? std::optional(at) : std::nullopt;
}

// Returns the value at the start of `text`, in TOML syntax. If the setting `spec` does not accept the value,
// returns an accepted value instead. Returns an empty text if the end of the value is unclear.
std::string value_to_write(std::string_view text, const KeySpec* spec, bool inline_table) {
  if (text.starts_with('"') || text.starts_with('\'')) {
    const auto end = text.find(text.front(), 1);
    return end == std::string_view::npos ? "" : std::string(text.substr(0, end + 1));
  }
  if (text.starts_with('[') || text.starts_with('{')) return inline_table ? "" : std::string(text);
  text = without_blanks(text.substr(0, text.find_first_of(inline_table ? ",}" : ",;")));
  if (spec == nullptr || text.empty()) return text.empty() ? "" : quoted(text);
  const auto fitting = fitting_text(*spec, text);
  const auto example = fitting.empty() ? example_value(*spec) : std::string();
  return example.empty() ? fitting : example + ", or another " + std::string(noun_of(spec->kind));
}

// Returns a message about a wrong equals sign: "= =", "==", ":=", "+=" or "=>".
std::string describe_equals(std::string_view line, std::size_t at, bool secret, const Names& table) {
  const auto equals = equals_at(line, at);
  if (!equals) return {};
  auto begin = *equals, end = *equals;
  while (begin > 0 && (is_one_of(line[begin - 1], "= \t") || is_one_of(line[begin - 1], kBeforeEquals)))
    --begin;
  while (end < line.size() && is_one_of(line[end], "=> \t")) ++end;
  const auto signs = without_blanks(line.substr(begin, end - begin));
  const auto start = line.substr(0, begin).find_last_of("{,");
  const bool inline_table = start != std::string_view::npos;
  const auto key =
      without_blanks(line.substr(inline_table ? start + 1 : 0, begin - (inline_table ? start + 1 : 0)));
  if (signs.size() < 2 || key.empty() || key.find_first_of(" \t\"'[") != std::string_view::npos) return {};
  const auto before_value = std::string(line.substr(0, begin)) + " = ";
  const auto value = secret ? "\"…\""
                            : value_to_write(line.substr(end),
                                             key_at(table, before_value, before_value.size()), inline_table);
  return "found " + std::string(signs) + " after " + std::string(key) + "; write " + std::string(key) +
         " = " + (value.empty() ? "value" : value);
}

}  // namespace

std::string describe_repetition(std::string_view line, const ParserStop& stop) {
  if (is_header(line, stop)) return describe_repeated_header(name_in_header(line), stop.reason);
  const auto keys = repeated_key(line, offset_of(line, stop.column));
  if (stop.reason.find("as dotted") != std::string_view::npos)
    return "found " + keys.back() + ", but a part of it has a value above; write all of it in one place";
  if (keys.size() > 1)
    return "found the key " + keys.back() + " a second time in " + keys[keys.size() - 2] +
           "; keep one of the two";
  return "found the key " + keys.back() + " a second time; keep one of the two";
}

std::string describe_hidden_repetition(std::string_view line, const ParserStop& stop) {
  const bool known =
      is_header(line, stop)
          ? schema::kKeysFile.find(name_in_header(line)) != nullptr
          : schema::kKey.find(repeated_key(line, offset_of(line, stop.column)).back()) != nullptr;
  if (known) return describe_repetition(line, stop);
  return "found a name a second time in one table (not shown, because the file contains API keys); keep one "
         "of the two";
}

std::string describe_doubled_sign(std::string_view line, const ParserStop& stop, bool secret,
                                  const Names& table) {
  const auto at = offset_of(line, stop.column);
  if (at >= line.size()) return {};
  const auto before = without_blanks(line.substr(0, at));
  const char last = before.empty() ? '\0' : before.back();
  const char sign = line[at];
  if (sign == ',' && last == ',') return "found two commas; write one";
  if (sign == ',' && is_one_of(last, "[{")) return "found a comma before the first value; remove it";
  const bool behind_value = stop.reason.find("expected a comment") != std::string_view::npos &&
                            !without_blanks(line).starts_with('[');
  if (behind_value && is_one_of(sign, "]}"))
    return "found a " + std::string(1, sign) + " that closes nothing; remove it";
  if (sign == '{' && last == '{') return "found {{; write one { and one }";
  if ((sign == '.' && (before.empty() || is_one_of(last, ".[{,"))) || (is_one_of(sign, "=]") && last == '.'))
    return describe_dots(line, at);
  return describe_equals(line, at, secret, table);
}

std::string without_doubled_quote(std::string_view line, std::size_t open) {
  const std::string two(2, line[open]);
  const bool at_end = open > 0 && line[open - 1] == line[open];
  const auto at = at_end ? open - 1 : line.find(two);
  if (at == std::string_view::npos) return {};
  const bool at_start = without_blanks(line.substr(open + 1)).empty() && at + 2 < line.size() &&
                        !is_one_of(line[at + 2], " \t,]}");
  if (!at_end && !at_start) return {};
  auto fixed = std::string(line);
  return std::string(without_blanks(fixed.erase(at, 1)));
}

}  // namespace weir::config
