// Determines the meaning of Redis's error replies. Pure.
#pragma once

#include "weir/redis/error.hpp"

#include <string>
#include <string_view>

namespace weir::redis {

[[nodiscard]] StoreError classify(std::string_view text) noexcept;
// Returns a server's text in a form for log lines: the first 200 bytes, with control characters as \xNN. A
// longer text ends in " ...".
[[nodiscard]] std::string readable(std::string_view text);
// Returns readable(text), followed by advice if the user lacks a right or the topology setting is wrong.
[[nodiscard]] std::string advised(std::string_view text);
// Returns true if Redis would reply to every command on the connection with this error, so that the
// connection is useless.
[[nodiscard]] bool rejects_all_commands(std::string_view text) noexcept;

}  // namespace weir::redis
