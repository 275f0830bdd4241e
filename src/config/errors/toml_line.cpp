#include "config/errors/toml_line.hpp"

#include "config/errors/fitting_value.hpp"

#include "weir/config/config_errors.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::config {

namespace {

void add_parts(std::string_view dotted, Names& names) {
  while (!dotted.empty()) {
    const auto end = std::min(dotted.find('.'), dotted.size());
    names.emplace_back(without_blanks(dotted.substr(0, end)));
    dotted.remove_prefix(std::min(end + 1, dotted.size()));
  }
}

}  // namespace

std::string_view without_blanks(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string_view nth_line(std::string_view text, std::size_t number) {
  for (; number > 1; --number) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

std::size_t offset_of(std::string_view line, std::size_t column) {
  std::size_t at = 0;
  for (; column > 1 && at < line.size(); --column)
    for (++at; at < line.size() && (static_cast<unsigned char>(line[at]) & 0xc0U) == 0x80U;) ++at;
  return at;
}

Scan scan(std::string_view line) {
  Scan found;
  char quote = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (quote != 0) {
      if (c == '\\' && quote == '"')
        ++at;
      else if (c == quote)
        quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
      found.open_quote = at;
    } else if (c == '#') {
      found.end = at;
      return found.open_quote.reset(), found;
    } else if (c == '=' && found.equals == std::string_view::npos) {
      found.equals = at;
    }
  }
  found.end = line.size();
  if (quote == 0) found.open_quote.reset();
  return found;
}

std::string describe_invisible(std::string_view line) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kBlanksOfUnicode{
      {{"\u00a0", "U+00A0"},
       {"\u200b", "U+200B"},
       {"\u202f", "U+202F"},
       {"\u2060", "U+2060"},
       {"\ufeff", "U+FEFF"}}};
  constexpr std::string_view kHex = "0123456789ABCDEF";
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.find('\r') != std::string_view::npos)
    return "found a carriage return within a line; save the file with line feeds";
  if (line.starts_with("\ufeff")) line.remove_prefix(3);  // the mark of UTF-8 that a file may begin with
  const auto content = scan(line).end;
  char quote = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const auto octet = static_cast<unsigned char>(line[at]);
    if ((octet < 0x20 && octet != '\t') || octet == 0x7f)
      return std::string("found the control character U+00") + kHex[octet >> 4] + kHex[octet & 15] +
             "; remove it";
    if (quote == 0 && (line[at] == '"' || line[at] == '\''))
      quote = line[at];
    else if (line[at] == quote)
      quote = 0;
    for (const auto& [blank, name] : kBlanksOfUnicode)
      if (quote == 0 && at < content && line.substr(at).starts_with(blank))
        return "found the invisible character " + std::string(name) + "; write a blank instead, or remove it";
  }
  return {};
}

bool leaves_a_brace_open(std::string_view line) {
  char quote = 0;
  int open = 0;
  for (const char c : line) {
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0) {
      open += c == '{' ? 1 : c == '}' ? -1 : 0;
    }
  }
  return open > 0;
}

std::string quoted(std::string_view text) {
  const bool literal = text.find_first_of("\\\"") != std::string_view::npos && text.find('\'') == text.npos;
  return literal ? "'" + std::string(text) + "'" : in_quotes(text);
}

bool is_list_of_tables(std::string_view name) {
  const auto* spec = schema::kRoot.find(name);
  return (spec != nullptr && spec->kind == Kind::Subtables) || name == "key";
}

std::string header_of(std::string_view name) {
  return is_list_of_tables(name) ? "[[" + std::string(name) + "]]" : "[" + std::string(name) + "]";
}

std::string_view name_in_header(std::string_view line) {
  line = without_blanks(line);
  line.remove_prefix(std::min(line.find_first_not_of("[ \t"), line.size()));
  return without_blanks(line.substr(0, line.find_first_of("]#")));
}

Names table_of(std::string_view text, std::size_t number) {
  Names names;
  while (--number > 0) {
    const auto line = nth_line(text, number);
    if (!without_blanks(line).starts_with('[') || scan(line).equals != std::string_view::npos) continue;
    add_parts(name_in_header(line), names);
    break;
  }
  return names;
}

const KeySpec* key_at(const Names& table, std::string_view line, std::size_t at) {
  auto path = table;
  for (const auto& key : keys_before(line, at)) add_parts(key, path);
  return find_key(schema::kRoot, path);
}

}  // namespace weir::config
