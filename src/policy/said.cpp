#include "policy/said.hpp"

#include "policy/pieces.hpp"

namespace weir::policy {

using http::Plus;

std::optional<std::string_view> said_in_header(const http::Fields& fields, std::string_view name) noexcept {
  Said said;
  for (const auto& field : fields)
    if (field.name.size() == name.size() && http::equal_ignoring_case(field.name, name))
      said.add(field.value);
  return said.value();
}

bool is_parameter(std::string_view raw, std::string_view name) noexcept {
  return http::decodes_to(raw, name, Plus::Itself) ||
         (raw.find('+') != std::string_view::npos && http::decodes_to(raw, name, Plus::Blank));
}

std::optional<std::string_view> said_in_query(std::string_view query, std::string_view name,
                                              std::string& decoded) {
  std::optional<std::string_view> first;
  while (!query.empty()) {
    const auto parameter = name_value(take_piece(query, '&'));
    if (!is_parameter(parameter.name, name)) continue;
    if (!first)
      first = http::percent_decoded(parameter.value, decoded, Plus::Blank);
    else if (!http::decodes_to(parameter.value, *first, Plus::Blank))
      return std::nullopt;
  }
  return first.value_or(std::string_view{});
}

std::optional<std::string_view> said_in_cookies(const http::Fields& fields, std::string_view name,
                                                std::string& decoded) {
  Said said;
  for (const auto& field : fields) {
    if (field.id != http::FieldId::Cookie) continue;
    for (auto rest = field.value; !rest.empty();) {
      const auto pair = name_value(trimmed(take_piece(rest, ';')));
      if (trimmed(pair.name) == name) said.add(trimmed(pair.value));
    }
  }
  auto value = said.value();
  if (!value) return std::nullopt;
  if (value->size() >= 2 && value->front() == '"' && value->back() == '"')
    value = value->substr(1, value->size() - 2);
  return http::percent_decoded(*value, decoded);
}

}  // namespace weir::policy
