#include "cli/import/read/placeholders.hpp"

#include <algorithm>
#include <array>

namespace weir::cli::nginx {

namespace {

struct KnownVariable {
  std::string_view name, placeholder;
};
constexpr std::array kVariables = std::to_array<KnownVariable>({{"host", "{host}"},
                                                                {"request_uri", "{uri}"},
                                                                {"uri", "{path}"},
                                                                {"document_uri", "{path}"},
                                                                {"args", "{query}"},
                                                                {"query_string", "{query}"},
                                                                {"request_method", "{method}"},
                                                                {"remote_addr", "{client_ip}"},
                                                                {"request_id", "{request_id}"}});

bool is_name_character(char c) noexcept {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Removes the name of a variable ("name" or "{name}") from the beginning of the text, and returns the name.
std::string take_name(std::string_view& text) {
  const bool braced = text.starts_with('{');
  if (braced) text.remove_prefix(1);
  const auto end = std::find_if_not(text.begin(), text.end(), is_name_character);
  std::string name(text.begin(), end);
  text.remove_prefix(name.size());
  if (braced && text.starts_with('}')) text.remove_prefix(1);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  return name;
}

// Appends a text without variables. Doubles its braces, because weir reads a single brace as a placeholder.
void append_constant(std::string& out, std::string_view text) {
  for (const char c : text) out.append(c == '{' || c == '}' ? 2 : 1, c);
}

}  // namespace

PlaceholderText with_placeholders(std::string_view text, const Constants& constants) {
  constexpr std::string_view kWholeUri = "$uri$is_args$args";
  PlaceholderText result;
  while (!text.empty()) {
    const auto sign = std::min(text.find('$'), text.size());
    append_constant(result.text, text.substr(0, sign));
    text.remove_prefix(sign);
    if (text.empty()) break;
    if (text.starts_with(kWholeUri)) {
      result.text += "{uri}";
      text.remove_prefix(kWholeUri.size());
      continue;
    }
    text.remove_prefix(1);
    const auto name = take_name(text);
    const auto known = std::find_if(kVariables.begin(), kVariables.end(),
                                    [&](const KnownVariable& variable) { return variable.name == name; });
    const auto constant = constants.find(name);
    if (known != kVariables.end())
      result.text += known->placeholder;
    else if (constant != constants.end())
      append_constant(result.text, constant->second);
    else if (result.unknown.empty())
      result.unknown = "$" + name;
  }
  return result;
}

}  // namespace weir::cli::nginx
