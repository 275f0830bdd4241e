// Functions that make KeySpecs, for the tables of the schema.
#pragma once

#include "config/schema/schema.hpp"
#include "config/schema/schema_patterns.hpp"

namespace weir::config {

constexpr KeySpec key(std::string_view name, Kind kind, std::string_view fallback, std::string_view about) {
  return {.name = name, .kind = kind, .fallback = fallback, .about = about};
}
constexpr KeySpec required(std::string_view name, Kind kind, std::string_view about) {
  return {.name = name, .kind = kind, .about = about, .required = true};
}
constexpr KeySpec whole(std::string_view name, std::int64_t least, std::int64_t most,
                        std::string_view fallback, std::string_view about) {
  return {
      .name = name, .kind = Kind::Whole, .fallback = fallback, .about = about, .least = least, .most = most};
}
constexpr KeySpec choice(std::string_view name, std::span<const Choice> choices, std::string_view fallback,
                         std::string_view about) {
  return {.name = name, .kind = Kind::Choice, .fallback = fallback, .about = about, .choices = choices};
}
constexpr KeySpec table(std::string_view name, const TableSpec& keys, std::string_view about) {
  return {.name = name, .kind = Kind::Subtable, .about = about, .inner = &keys};
}
constexpr KeySpec tables(std::string_view name, const TableSpec& keys, std::string_view about) {
  return {.name = name, .kind = Kind::Subtables, .about = about, .inner = &keys};
}
constexpr KeySpec named(std::string_view name, const TableSpec& shapes, std::string_view about) {
  return {.name = name, .kind = Kind::Named, .about = about, .inner = &shapes};
}
constexpr KeySpec mixed(std::string_view name, const TableSpec& shapes, std::string_view fallback,
                        std::string_view about) {
  return {.name = name, .kind = Kind::Mixed, .fallback = fallback, .about = about, .inner = &shapes};
}
// Returns `key` with the regular expression `pattern` for its strings.
constexpr KeySpec like(std::string_view pattern, KeySpec key) {
  key.pattern = pattern;
  return key;
}
constexpr KeySpec needed(KeySpec key) {
  key.required = true;
  return key;
}
constexpr KeySpec misplaced(std::string_view name, std::string_view instead) {
  return {.name = name, .kind = Kind::Mixed, .instead = instead};
}

// The shape of each value in a table of header fields: a string.
inline constexpr KeySpec kFieldShapeKeys[] = {{.kind = Kind::Text}};
inline constexpr TableSpec kFieldShapes{kFieldShapeKeys};

inline constexpr Choice kStores[] = {{"memory"}, {"redis"}};

}  // namespace weir::config
