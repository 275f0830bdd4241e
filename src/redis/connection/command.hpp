// Commands in RESP, the Redis serialization protocol, appended to a buffer of ours: an array of bulk strings
// (redis.io, "Redis serialization protocol specification"). The bytes are those of hiredis'
// redisFormatCommandArgv, which would allocate and copy each command instead; a test compares them.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace weir::redis {

// The head of a command of `words` words; that many bulks must follow.
void append_head(std::string& out, std::size_t words);
void append_bulk(std::string& out, std::string_view word);
// The head of a bulk of `size` bytes, which the caller appends with "\r\n" after them.
void append_bulk_head(std::string& out, std::size_t size);

void append_command(std::string& out, std::initializer_list<std::string_view> words);

}  // namespace weir::redis
