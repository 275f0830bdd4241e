#include "config/read/value_kind.hpp"

#include "config/errors/fitting_value.hpp"

#include <algorithm>
#include <cstdint>
#include <variant>

namespace weir::config {

namespace {

bool all_texts(const Node& node) {
  const auto* array = node.array();
  return array != nullptr &&
         std::all_of(array->begin(), array->end(), [](const Node& n) { return n.text() != nullptr; });
}

bool all_tables(const Node& node) {
  const auto* array = node.array();
  return array != nullptr &&
         std::all_of(array->begin(), array->end(), [](const Node& n) { return n.table() != nullptr; });
}

}  // namespace

std::string expectation(const KeySpec& spec) {
  switch (spec.kind) {
    case Kind::Bool:
      return "true or false";
    case Kind::Whole:
      return "a whole number from " + std::to_string(spec.least) + " to " + std::to_string(spec.most);
    case Kind::Text:
      return std::string(noun_of_text(spec));
    case Kind::Choice: {
      std::string list;
      for (const auto& choice : spec.choices) list += (list.empty() ? "" : " or ") + in_quotes(choice.word);
      return list;
    }
    case Kind::Duration:
      return "a duration such as \"10s\"";
    case Kind::Size:
      return "a size such as \"64KiB\"";
    case Kind::Rate:
    case Kind::Limit:
      return "a rate such as \"10/s\"";
    case Kind::Address:
      return "an address such as \"127.0.0.1:8080\"";
    case Kind::Texts:
      return "a list of strings";
    case Kind::OneOrMore:
      return "a string or a list of strings";
    case Kind::Subtable:
    case Kind::Named:
      return "a table";
    case Kind::Subtables:
      return "a list of tables";
    case Kind::OneOrMoreTables:
      return "a table or a list of tables";
    default:
      return std::string(spec.about);
  }
}

bool of_kind(const Node& node, Kind kind) {
  switch (kind) {
    case Kind::Bool:
      return std::holds_alternative<bool>(node.value);
    case Kind::Whole:
      return std::holds_alternative<std::int64_t>(node.value);
    case Kind::Size:
    case Kind::Limit:
      return node.text() != nullptr || std::holds_alternative<std::int64_t>(node.value);
    case Kind::Text:
    case Kind::Choice:
    case Kind::Duration:
    case Kind::Rate:
    case Kind::Address:
      return node.text() != nullptr;
    case Kind::Texts:
      return all_texts(node);
    case Kind::OneOrMore:
      return node.text() != nullptr || all_texts(node);
    case Kind::Subtable:
    case Kind::Named:
      return node.table() != nullptr;
    case Kind::Subtables:
      return all_tables(node);
    case Kind::OneOrMoreTables:
      return node.table() != nullptr || all_tables(node);
    case Kind::Mixed:
    case Kind::Each:
    case Kind::Share:
    case Kind::Present:
      break;
  }
  return true;
}

const Node* misfit_in(const Node& node, Kind kind) {
  const auto* array = node.array();
  if (array == nullptr) return nullptr;
  const bool tables = kind == Kind::Subtables || kind == Kind::OneOrMoreTables;
  const auto found = std::find_if(array->begin(), array->end(), [&](const Node& element) {
    return tables ? element.table() == nullptr : element.text() == nullptr;
  });
  return found == array->end() ? nullptr : &*found;
}

std::string finding(const Node& node, Kind kind) {
  const auto* misfit = misfit_in(node, kind);
  return "found " + std::string(type_name(node)) +
         (misfit != nullptr ? " with " + std::string(type_name(*misfit)) + " in it" : "");
}

}  // namespace weir::config
