// Explains a line that the TOML parser rejects, and says what to write instead.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::config {

// The position at which the TOML parser stopped, and its error message.
struct ParserStop {
  std::size_t line;    // counted from 1
  std::size_t column;  // counted from 1, in characters
  std::string_view reason;
};

// Returns a message about the faulty line of `text`, such as: found 10/s without quotes; write limit = "10/s"
[[nodiscard]] std::string describe_fault(std::string_view text, const ParserStop& stop);
// Like describe_fault(), but for a file of API keys. The message shows no part of the line except names that
// weir knows.
[[nodiscard]] std::string describe_hidden_fault(std::string_view text, const ParserStop& stop);

}  // namespace weir::config
