#include "cli/import/write/toml_text.hpp"

#include "cli/import/syntax/nginx_values.hpp"

namespace weir::cli::nginx {

std::string inline_table(const TomlPairs& pairs) {
  std::string text = "{";
  for (const auto& [key, value] : pairs) {
    text += text.size() == 1 ? " " : ", ";
    text += key;
    text += " = ";
    text += value;
  }
  return text + " }";
}

std::string text_list(const std::vector<std::string>& texts) {
  std::string list = "[";
  for (const auto& text : texts) {
    if (list.size() > 1) list += ", ";
    list += toml_string(text);
  }
  return list + "]";
}

std::string one_or_list(const std::vector<std::string>& texts) {
  return texts.size() == 1 ? toml_string(texts.front()) : text_list(texts);
}

std::string lines_of(const TomlPairs& pairs) {
  std::string text;
  for (const auto& [key, value] : pairs) {
    text += key;
    text += " = ";
    text += value;
    text += '\n';
  }
  return text;
}

}  // namespace weir::cli::nginx
