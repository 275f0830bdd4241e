// Appends commands to a buffer. In RESP, a command is an array of bulk strings (redis.io, "Redis
// serialization protocol specification"). weir does not use hiredis's redisFormatCommandArgv, which allocates
// and copies for each command. A test checks that both write the same bytes.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace weir::redis {

// Appends the header of a command with `words` words. The caller must append that many bulk strings.
void append_head(std::string& out, std::size_t words);
void append_bulk(std::string& out, std::string_view word);
// Appends the header of a bulk string of `size` bytes. The caller must append the bytes, then "\r\n".
void append_bulk_head(std::string& out, std::size_t size);

void append_command(std::string& out, std::initializer_list<std::string_view> words);

}  // namespace weir::redis
