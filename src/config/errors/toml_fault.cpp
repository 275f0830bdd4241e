#include "config/errors/toml_fault.hpp"

#include "config/errors/fitting_value.hpp"
#include "config/errors/toml_line.hpp"
#include "config/errors/toml_repetition.hpp"

#include "weir/config/config_errors.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace weir::config {

namespace {

std::string describe_open_quote(std::string_view line, std::size_t quote) {
  if (const auto fixed = without_doubled_quote(line, quote); !fixed.empty())
    return "found a quote too many; write " + fixed;
  const char mark = line[quote];
  auto content = line.substr(quote + 1);
  content = without_blanks(content.substr(0, content.find(" #")));
  const auto last = content.find_last_not_of("]}, \t");
  const auto kept = last == std::string_view::npos ? 0 : last + 1;
  std::string fixed(without_blanks(line.substr(0, quote)));
  if (!fixed.empty() && fixed.back() == '=') fixed += ' ';
  fixed.append(1, mark).append(content.substr(0, kept)).append(1, mark).append(content.substr(kept));
  return "found a quote that is not closed on its line; write " + fixed;
}

// Returns the start of the assignment, such as "limit = ", for the value at offset `at`. Returns an empty
// text if the value is an element of a list.
std::string key_before(std::string_view line, std::size_t at) {
  const auto equals = line.substr(0, at).rfind('=');
  if (equals == std::string_view::npos) return {};
  if (without_blanks(line.substr(equals + 1, at - equals - 1)).find_first_of("[,") != std::string_view::npos)
    return {};
  const auto before = line.substr(0, equals);
  const auto start = before.find_last_of("{,");
  return std::string(without_blanks(before.substr(start == std::string_view::npos ? 0 : start + 1))) + " = ";
}

// Returns "true" or "false" for a word that other formats use for a boolean, such as "yes".
std::optional<std::string_view> as_boolean(std::string_view word) {
  constexpr std::array<std::string_view, 6> kTrue{"yes", "on", "True", "TRUE", "Yes", "On"};
  constexpr std::array<std::string_view, 6> kFalse{"no", "off", "False", "FALSE", "No", "Off"};
  if (std::find(kTrue.begin(), kTrue.end(), word) != kTrue.end()) return "true";
  if (std::find(kFalse.begin(), kFalse.end(), word) != kFalse.end()) return "false";
  return std::nullopt;
}

// Returns a message about the text `rest`, which follows a complete value on its line.
std::string describe_rest(const std::string& key, const std::string& value, std::string_view rest) {
  const auto fixed = key + value;
  if (rest.find('=', 1) != std::string_view::npos)
    return "found two keys on one line; write " + fixed + ", and the rest on the next line";
  return "found " + std::string(rest) + " after the value; write " + fixed;
}

// Returns a message about a value without quotes. The message suggests a value that the key accepts. Returns
// an empty text if weir has no suggestion.
std::string describe_bare_of(const KeySpec& spec, const std::string& key, std::string_view value) {
  if (auto fitting = fitting_text(spec, value); !fitting.empty())
    return "found " + std::string(value) + (fitting.find('"') == std::string::npos ? "" : " without quotes") +
           "; write " + key + fitting;
  const auto digits = value.substr(std::min(value.find_first_not_of("+-"), value.size()));
  if (const auto fitting = fitting_text(spec, digits); digits.size() + 1 < value.size() && !fitting.empty())
    return "found " + std::string(value) + "; write " + key + fitting;
  const auto first = value.substr(0, value.find_first_of(kBlanks));
  if (const auto fitting = fitting_text(spec, first); first.size() < value.size() && !fitting.empty())
    return describe_rest(key, fitting, without_blanks(value.substr(first.size())));
  const auto example = example_value(spec);
  if (example.empty()) return {};
  return "found " + std::string(value) + "; write " + key + example + ", or another " +
         std::string(noun_of(spec.kind));
}

// Returns a message about a value without quotes. `key`: the text before the value, such as "limit = ".
// `value`: the whole value. `spec`: the schema of the key; null if weir does not have the key.
std::string describe_bare(const std::string& key, std::string_view value, const KeySpec* spec) {
  const bool absent = value == "null" || value == "nil" || value == "none" || value == "None";
  const bool padded = value.size() > 1 && value.front() == '0' &&
                      value.find_first_not_of("0123456789") == std::string_view::npos;
  if (spec != nullptr && !absent && !padded)
    if (auto said = describe_bare_of(*spec, key, value); !said.empty()) return said;
  if (const auto boolean = as_boolean(value))
    return "found " + std::string(value) + "; write " + key + std::string(*boolean) + ", or " + key +
           quoted(value) + " for a text";
  if (absent) return "found " + std::string(value) + "; leave the key out instead";
  if (padded)
    return "found a number that begins with 0; write " + key +
           std::string(value.substr(std::min(value.find_first_not_of('0'), value.size() - 1)));
  return "found " + std::string(value) + " without quotes; write " + key + quoted(value);
}

// Returns the text around offset `at`, up to the nearest quotation mark, bracket, brace, comma or equals
// sign.
std::string_view bare_around(std::string_view line, std::size_t at) {
  constexpr std::string_view kEnds = "=,[]{}\"'";
  at = std::min(at, line.size());
  while (at > 0 && (at == line.size() || kBlanks.find(line[at]) != std::string_view::npos)) --at;
  if (at >= line.size() || kEnds.find(line[at]) != std::string_view::npos) return {};
  const auto before = line.substr(0, at).find_last_of(kEnds);
  const auto start = before == std::string_view::npos ? 0 : before + 1;
  return without_blanks(line.substr(start, std::min(line.find_first_of(kEnds, at), line.size()) - start));
}

// Returns true for an address such as "[::1]:80". Without quotes, TOML parsers read it as a list.
bool is_bare_address(std::string_view value) {
  const auto end = value.find("]:");
  return value.starts_with('[') && end != std::string_view::npos &&
         value.substr(1, end - 1).find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
}

std::string describe_curly_quotes(std::string_view line) {
  std::string fixed(line);
  for (const std::string_view curly : {"\u201c", "\u201d", "\u201e", "\u2018", "\u2019"})
    for (auto at = fixed.find(curly); at != std::string::npos; at = fixed.find(curly))
      fixed.replace(at, curly.size(), "\"");
  return fixed == line ? ""
                       : "found quotes that are not straight; write " + std::string(without_blanks(fixed));
}

// Returns a message about a line with a quoted value and more text after the value.
std::string describe_tail(std::string_view key, std::string_view value) {
  const auto end = value.find(value.front(), 1);
  if (end == std::string_view::npos) return {};
  const std::string two(2, value.front());
  if (value.starts_with(two) && value.ends_with(two) && value.size() > 4)
    return "found two quotes on each side of the value; write " + std::string(key) + " = " +
           std::string(value.substr(1, value.size() - 2));
  const auto tail = without_blanks(value.substr(end + 1));
  if (tail.empty()) return "found a list above that is not closed; write ] before this line";
  return describe_rest(std::string(key) + " = ", std::string(value.substr(0, end + 1)), tail);
}

// Returns a message about a key that needs quotes or is not a single word. Returns an empty text for any
// other key.
std::string describe_key(std::string_view key) {
  const auto odd = std::find_if(key.begin(), key.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-' && c != '.';
  });
  if (odd == key.end() || key.find_first_of("\"'") != std::string_view::npos) return {};
  if (kBlanks.find(*odd) != std::string_view::npos) return "found two words before =; write one key";
  const auto at = static_cast<std::size_t>(odd - key.begin());
  const auto sign = key.substr(at, offset_of(key.substr(at), 2));  // a whole character of UTF-8
  return "found " + std::string(sign) + " in the key " + std::string(key) +
         "; write letters, digits, _ and -";
}

// Returns a message about a header that is no TOML, or that is good but stands in a list.
std::string describe_header(std::string_view line) {
  const auto name = name_in_header(line);
  const auto words = without_blanks(line.substr(0, scan(line).end));
  const auto depth = std::count(words.begin(), words.end(), '[');
  const bool is_balanced = depth == std::count(words.begin(), words.end(), ']') && words.ends_with(']') &&
                           (depth == 1 || (depth == 2 && words.starts_with("[[") && words.ends_with("]]")));
  if (is_balanced && name.empty()) return "found a header without a name; write such as [server]";
  if (is_balanced && name.find_first_of("\"'") == std::string_view::npos)
    return describe_key(name).empty()
               ? "found a list above that is not closed; write ] before this line"
               : "found other signs than letters, digits, _ and - in the header " + std::string(words);
  return "found a header whose brackets do not match; write " + header_of(name);
}

std::string describe_value(std::string_view line, const Scan& scanned, const ParserStop& stop,
                           const Names& table) {
  const auto key = without_blanks(line.substr(0, scanned.equals));
  auto value = without_blanks(line.substr(scanned.equals + 1, scanned.end - scanned.equals - 1));
  if (key.empty()) return "found a line without a key; write key = value";
  if (const auto end = key.find(']'); key.starts_with('[') && end != std::string_view::npos)
    return "found a header and a key on one line; write " + header_of(name_in_header(key)) + ", and " +
           std::string(without_blanks(key.substr(key.find_last_of(']') + 1))) + " on the next line";
  if (auto odd = describe_key(key); !odd.empty()) return odd;
  if (value.empty()) return "found no value; write one after " + std::string(key) + " =";
  if (is_bare_address(value))
    return describe_bare(std::string(key) + " = ", value, key_at(table, line, scanned.equals + 1));
  const bool nested = value.front() == '[' || value.front() == '{';
  if (!nested && value.front() != '"' && value.front() != '\'') {
    const auto* spec = key_at(table, line, scanned.equals + 1);
    const auto bare = without_blanks(value.substr(0, value.find_last_not_of(";, \t") + 1));
    if (bare.empty()) return "found no value; write one after " + std::string(key) + " =";
    if (bare.size() < value.size() && spec != nullptr && fitting_text(*spec, bare) == bare)
      return describe_rest(std::string(key) + " = ", std::string(bare),
                           without_blanks(value.substr(bare.size())));
    return describe_bare(std::string(key) + " = ", bare, spec);
  }
  if (!nested) return describe_tail(key, value);
  const auto part = line.substr(0, scanned.end);
  const auto at = std::min(offset_of(part, stop.column), part.size());
  if (value.front() == '{' && at >= part.size() && leaves_a_brace_open(value))
    return "found a table { … } that continues on the next line; write all of it on one line, or under a "
           "header such as [rule.match]";
  if (const auto bare = bare_around(part, at); !bare.empty()) {
    const auto begin = static_cast<std::size_t>(bare.data() - part.data());
    const auto before = key_before(part, begin);
    return describe_bare(before, bare, before.empty() ? nullptr : key_at(table, part, begin));
  }
  if (value.front() == '{' && at < part.size() && part[at] == '}')
    return "found a comma before }; write the table without it";
  if (at < part.size() && (part[at] == '"' || part[at] == '\''))
    return "found no comma between two values; write one before " +
           std::string(without_blanks(part.substr(at)));
  return {};
}

std::string describe_escape(std::string_view line, std::size_t at) {
  const auto start = line.substr(0, at).rfind('"');
  const auto end = line.find('"', at);
  if (start == std::string_view::npos || end == std::string_view::npos)
    return "found a backslash that starts no known escape; write it twice";
  const auto content = line.substr(start + 1, end - start - 1);
  return "found a backslash between double quotes, where it starts an escape; write " +
         (content.find('\'') == std::string_view::npos
              ? "'" + std::string(content) + "', because single quotes have no escapes"
              : "each backslash twice");
}

std::string describe_no_equals(std::string_view line, std::size_t end, const Names& table) {
  auto words = without_blanks(line.substr(0, end));
  if (words.starts_with("//") || words.starts_with(';') || words.starts_with("--") || words.starts_with("/*"))
    return "found " + std::string(words.substr(0, 2)) + "; a comment begins with #";
  if (words.starts_with('{')) return "found {, as JSON begins; write TOML: key = value, below a [header]";
  if (words == "}" || words == "};") return "found } without {; a table ends where the next [header] begins";
  const auto first = words.substr(0, words.find_first_of(" \t:{"));
  auto rest = without_blanks(words.substr(first.size()));
  if (words.ends_with('{') || rest.starts_with('{'))
    return "found a block; write " + header_of(first) + ", and its keys below it";
  if (words.ends_with(']') && words.find('[') == std::string_view::npos && words.front() != ']')
    return "found a header without its first bracket; write " + header_of(name_in_header(words));
  if (rest.starts_with(':')) rest = without_blanks(rest.substr(1));
  while (rest.ends_with(';')) rest = without_blanks(rest.substr(0, rest.size() - 1));
  if (rest.empty())
    return "found no = after " + std::string(first) + "; write " + std::string(first) + " = value";
  const bool plain = rest.front() == '"' || rest.front() == '\'' || rest.front() == '[' ||
                     rest.find_first_not_of("0123456789") == std::string_view::npos;
  const auto* spec = key_at(table, std::string(first) + " = ", first.size() + 3);
  const auto fitting = spec == nullptr ? std::string() : fitting_text(*spec, rest);
  return "found no = after " + std::string(first) + "; write " + std::string(first) + " = " +
         (plain             ? std::string(rest)
          : fitting.empty() ? quoted(rest)
                            : fitting);
}

// Returns a message about one line of a list that spans several lines. The line may be an address without
// quotes.
std::string describe_element(std::string_view line, const Scan& scanned) {
  auto value = without_blanks(line.substr(0, scanned.end));
  if (value.starts_with('"') || value.starts_with('\''))
    return "found no comma between two values; write one before " + std::string(value);
  while (value.ends_with(',')) value = without_blanks(value.substr(0, value.size() - 1));
  return describe_bare("", value, nullptr);
}

bool continues_a_list(std::string_view text, std::size_t line) {
  for (; line > 1; --line) {
    const auto before = nth_line(text, line - 1);
    const auto words = without_blanks(before.substr(0, scan(before).end));
    if (!words.empty()) return words.ends_with(',') || words.ends_with('[');
  }
  return false;
}

bool names_a_secret(std::string_view name, std::string_view value) {
  constexpr std::array<std::string_view, 5> kSecretWords{"token", "secret", "password", "authorization",
                                                         "url"};
  value.remove_prefix(std::min(value.find_first_not_of("=:> \t"), value.size()));
  // A setting `key` is an API key, unless it is the `key` of a rule, whose value is a list.
  const bool is_api_key = name == "key" && !value.starts_with('[');
  return is_api_key || std::any_of(kSecretWords.begin(), kSecretWords.end(),
                                   [&](std::string_view word) { return name.find(word) != name.npos; });
}

// Returns true if the line sets a value that must not appear in messages: a token, a secret, a password, an
// API key, or an address with a password.
bool holds_a_secret(std::string_view line) {
  constexpr std::string_view kEnds = " \t{,=:";
  const auto first = without_blanks(line).substr(0, without_blanks(line).find_first_of(kEnds));
  if (line.find_first_of("=:") == std::string_view::npos) return names_a_secret(first, "");
  for (auto at = line.find_first_of("=:"); at != std::string_view::npos;
       at = line.find_first_of("=:", at + 1)) {
    const auto name_end = line.substr(0, at).find_last_not_of("=:+-<>!?~\"' \t");
    const auto before = line.substr(0, name_end + 1);
    const auto start = before.find_last_of(kEnds);
    if (names_a_secret(before.substr(start == std::string_view::npos ? 0 : start + 1), line.substr(at + 1)))
      return true;
  }
  return false;
}

// Returns the TOML parser's own message, for a line that none of the functions above can describe.
std::string reason_of(std::string_view reason) {
  constexpr std::string_view kStart = "Error while ";
  if (reason.ends_with("encountered end-of-file"))
    return "found a value that the file does not close; write its closing bracket";
  return "this line is not TOML" + (reason.starts_with(kStart)
                                        ? " (" + std::string(reason.substr(kStart.size())) + ")"
                                        : " (" + std::string(reason) + ")");
}

}  // namespace

std::string describe_hidden_fault(std::string_view text, const ParserStop& stop) {
  const auto line = nth_line(text, stop.line);
  if (stop.reason.find("redefine") != std::string_view::npos)
    return describe_hidden_repetition(line.substr(0, scan(line).end), stop);
  return "found a line that is not TOML (not shown, because the file contains API keys); write NAME = \"…\" "
         "or [[key]]";
}

std::string describe_fault(std::string_view text, const ParserStop& stop) {
  const auto line = nth_line(text, stop.line);
  const auto scanned = scan(line);
  const auto whole = without_blanks(line);
  const auto part = line.substr(0, scanned.end);
  const auto or_reason = [&](const std::string& said) {
    return said.empty() ? reason_of(stop.reason) : said;
  };
  if (stop.reason.find("utf-8") != std::string_view::npos)
    return "found a byte that is not UTF-8; save the file as UTF-8";
  if (stop.reason.find("escape sequence") != std::string_view::npos)
    return describe_escape(line, offset_of(line, stop.column));
  if (stop.reason.find("redefine") != std::string_view::npos) return describe_repetition(part, stop);
  if (auto invisible = describe_invisible(line); !invisible.empty()) return invisible;
  const bool is_header = whole.starts_with('[') && scanned.equals == std::string_view::npos;
  const bool secret = !is_header && holds_a_secret(line);
  const auto table = table_of(text, stop.line);
  if (auto doubled = describe_doubled_sign(part, stop, secret, table); !doubled.empty()) return doubled;
  if (secret) return "found a value without quotes, or a quote that is not closed; write \"…\"";
  if (whole.find("\"\"\"") != std::string_view::npos || whole.find("'''") != std::string_view::npos)
    return "found a text of several lines that is not closed; write three quotes after it";
  if (stop.reason.find("parsing array") != std::string_view::npos &&
      scanned.equals != std::string_view::npos && offset_of(line, stop.column) < scanned.equals)
    return "found a list above that is not closed; write ] before this line";
  if (auto curly = describe_curly_quotes(line); !curly.empty()) return curly;
  if (is_header) return describe_header(line);
  if (scanned.open_quote) return describe_open_quote(line, *scanned.open_quote);
  if (whole.empty()) return reason_of(stop.reason);
  if (scanned.equals == std::string_view::npos)
    return continues_a_list(text, stop.line) ? describe_element(line, scanned)
                                             : describe_no_equals(line, scanned.end, table);
  return or_reason(describe_value(line, scanned, stop, table));
}

}  // namespace weir::config
