// The meaning of Redis's error replies. Pure.
#pragma once

#include "weir/redis/error.hpp"

#include <string>
#include <string_view>

namespace weir::redis {

[[nodiscard]] StoreError classify(std::string_view text) noexcept;
// Returns a server's text as people may read it: its first 200 octets, with control characters as \xNN. A
// longer text ends in " ...".
[[nodiscard]] std::string readable(std::string_view text);
// Returns readable(text), with advice if a right is missing or the topology is wrong.
[[nodiscard]] std::string advised(std::string_view text);
// Returns true if Redis sends this error whatever the command is, so that the connection is useless.
[[nodiscard]] bool is_turned_away(std::string_view text) noexcept;

}  // namespace weir::redis
