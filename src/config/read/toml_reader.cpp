#include "config/read/toml_reader.hpp"

#include "config/errors/toml_fault.hpp"
#include "config/read/environment.hpp"

#include <algorithm>
#include <optional>

#include <toml++/toml.h>

namespace weir::config {

namespace {

int line_of(const toml::source_region& source) {
  return source.begin.line == 0 ? 1 : static_cast<int>(source.begin.line);
}

// Returns the line of the first key with more than kMostDots dots; nullopt if there is none. A key "a.a.a…"
// could overflow the stack: toml++ makes a table for each part of a key, and does not limit their depth.
// Starts to count again after each character that no key contains.
std::optional<int> line_of_endless_key(std::string_view text) {
  constexpr unsigned kMostDots = 1000;
  int line = 1;
  unsigned dots = 0;
  for (const char c : text) {
    const bool of_key = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                        c == '_' || c == '-' || c == '"' || c == '\'' || c == ' ' || c == '\t';
    if (c == '\n') ++line;
    if (c == '.' && ++dots > kMostDots) return line;
    if (c != '.' && !of_key) dots = 0;
  }
  return std::nullopt;
}

class Converter {
 public:
  Converter(const std::string& file, ConfigErrors& mistakes) : file_(file), mistakes_(mistakes) {}

  Node convert(std::string key, int line, const toml::node& node, const std::string& path) {
    Node result{std::move(key), line, Moment{}};
    if (const auto* table = node.as_table())
      result.value = convert_table(*table, path);
    else if (const auto* array = node.as_array())
      result.value = convert_array(*array, path);
    else if (const auto* text = node.as_string())
      convert_text(text->get(), path, result);
    else if (const auto* whole = node.as_integer())
      result.value = whole->get();
    else if (const auto* flag = node.as_boolean())
      result.value = flag->get();
    else if (const auto* fraction = node.as_floating_point())
      result.value = Fraction{fraction->get()};
    return result;
  }

  Table convert_table(const toml::table& table, const std::string& path) {
    Table result;
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      result.entries.push_back(
          convert(name, line_of(key.source()), node, path.empty() ? name : path + "." + name));
    }
    // Sorts the entries by line, so that messages appear in this order. toml++ has sorted them by name.
    std::stable_sort(result.entries.begin(), result.entries.end(),
                     [](const Node& a, const Node& b) { return a.line < b.line; });
    return result;
  }

 private:
  Array convert_array(const toml::array& array, const std::string& path) {
    Array result;
    for (const auto& node : array)
      result.push_back(convert("", line_of(node.source()), node, path + label(node, result.size())));
    return result;
  }

  // Returns the element_label() of a toml++ node.
  static std::string label(const toml::node& node, std::size_t position) {
    const auto* table = node.as_table();
    const auto name = table == nullptr ? std::nullopt : (*table)["name"].value<std::string>();
    return element_label(name.value_or(""), position);
  }

  void convert_text(const std::string& text, const std::string& path, Node& result) {
    auto expanded = expand_environment(text);
    if (expanded) {
      result.value = std::move(*expanded);
      return;
    }
    mistakes_.add(file_, result.line, path, expanded.error().message);
    result.value = Unreadable{};
  }

  const std::string& file_;
  ConfigErrors& mistakes_;
};

}  // namespace

std::string_view type_name(const Node& node) noexcept {
  struct Name {
    std::string_view operator()(const Table&) const { return "a table"; }
    std::string_view operator()(const Array&) const { return "a list"; }
    std::string_view operator()(const std::string&) const { return "a string"; }
    std::string_view operator()(std::int64_t) const { return "a whole number"; }
    std::string_view operator()(bool) const { return "true or false"; }
    std::string_view operator()(Fraction) const { return "a fraction"; }
    std::string_view operator()(Moment) const { return "a date or time"; }
    std::string_view operator()(Unreadable) const { return "nothing readable"; }
  };
  return std::visit(Name{}, node.value);
}

std::string element_label(std::string_view name, std::size_t position) {
  return "[" + (name.empty() ? "#" + std::to_string(position + 1) : std::string(name)) + "]";
}

Node read_toml(std::string_view text, const std::string& file, ConfigErrors& mistakes, Quoting quoting) {
  Node document{"", 1, Table{}};
  if (const auto line = line_of_endless_key(text)) {
    mistakes.add(file, *line, "", "not TOML: a key has more than a thousand parts");
    return document;
  }
  try {
    const auto parsed = toml::parse(text, file);
    document.value = Converter(file, mistakes).convert_table(parsed, "");
  } catch (const toml::parse_error& error) {
    const auto& at = error.source().begin;
    const ParserStop stop{static_cast<std::size_t>(line_of(error.source())), at.column, error.description()};
    mistakes.add(file, line_of(error.source()), "",
                 quoting == Quoting::Lines ? describe_fault(text, stop) : describe_hidden_fault(text, stop));
  }
  return document;
}

}  // namespace weir::config
