// Explains TOML errors about a repeated key, a repeated table header, or a doubled character such as "==" or
// ",,".
#pragma once

#include "config/errors/toml_line.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::config {

struct ParserStop;

// Returns a message about a key or a header that the file has twice. `line` has no comment.
[[nodiscard]] std::string describe_repetition(std::string_view line, const ParserStop& stop);
// Like describe_repetition(), but shows no name that weir does not know, because the name could be an API
// key.
[[nodiscard]] std::string describe_hidden_repetition(std::string_view line, const ParserStop& stop);

// Returns a message about a sign such as "==" or ",," at which the parser stopped. Returns an empty text if
// there is no such sign. `line` has no comment. `secret`: the message must not show the value. `table`: the
// names in the header above the line.
[[nodiscard]] std::string describe_doubled_sign(std::string_view line, const ParserStop& stop, bool secret,
                                                const Names& table);

// Returns the line with a doubled quotation mark, as in ""10/s", replaced by a single one. Returns an empty
// text if none is doubled. `open`: offset of a quotation mark that is not closed.
[[nodiscard]] std::string without_doubled_quote(std::string_view line, std::size_t open);

}  // namespace weir::config
