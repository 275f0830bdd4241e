#include "policy/identity/consistent_value.hpp"

namespace weir::policy {

using http::Plus;

std::optional<std::string_view> value_in_header(const http::RequestHead& head,
                                                std::string_view name) noexcept {
  ConsistentValue said;
  std::size_t lines = 0;
  for (const auto& field : head.fields) {
    if (field.name.size() != name.size() || !http::equal_ignoring_case(field.name, name)) continue;
    if (lines++ == head.bounds.repeats) {
      head.note_excess({.kind = http::Excess::Kind::Repeats, .place = "header", .name = name});
      return std::nullopt;
    }
    said.add(field.value);
  }
  return said.value();
}

bool is_parameter(std::string_view raw, std::string_view name) noexcept {
  return http::decodes_to(raw, name, Plus::Itself) ||
         (raw.find('+') != std::string_view::npos && http::decodes_to(raw, name, Plus::Blank));
}

std::optional<std::string_view> value_in_query(const http::RequestHead& head, std::string_view name) {
  const auto found = head.query_values(name);
  if (!found.complete) return std::nullopt;
  ConsistentValue said;
  for (const auto& parameter : found.values) said.add(parameter.spaced);
  return said.value();
}

std::optional<std::string_view> value_in_cookies(const http::RequestHead& head, std::string_view name,
                                                 std::string& decoded) {
  const auto found = head.cookie_values(name);
  if (!found.complete) return std::nullopt;
  ConsistentValue said;
  for (const auto& cookie : found.values) said.add(cookie.value);
  auto value = said.value();
  if (!value) return std::nullopt;
  if (value->size() >= 2 && value->front() == '"' && value->back() == '"')
    value = value->substr(1, value->size() - 2);
  return http::percent_decoded(*value, decoded);
}

}  // namespace weir::policy
