// The words that the schema's tables are written in.
#pragma once

#include "app/schema.hpp"

namespace weir::app {

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
constexpr KeySpec later(std::string_view name, std::string_view not_yet, Kind kind = Kind::Mixed) {
  return {.name = name, .kind = kind, .not_yet = not_yet};
}

}  // namespace weir::app
