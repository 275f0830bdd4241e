// What an error reply of Redis means. Pure.
#pragma once

#include "weir/redis/error.hpp"

#include <string>
#include <string_view>

namespace weir::redis {

[[nodiscard]] StoreError classify(std::string_view text) noexcept;
// The text of a server as people may read it: its first 200 octets, control characters as \xNN, and " ..."
// where it was longer.
[[nodiscard]] std::string readable(std::string_view text);
// In words: where a right is missing, with where to look for it.
[[nodiscard]] std::string advised(std::string_view text);
// Whether it is said to anybody, whatever was asked: the connection is of no use.
[[nodiscard]] bool is_turned_away(std::string_view text) noexcept;

}  // namespace weir::redis
