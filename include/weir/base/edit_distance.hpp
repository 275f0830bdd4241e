// Compares words, to suggest the name that a user probably meant.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir::base {

// Returns the number of edits that turn one word into the other (optimal string alignment distance). An edit
// inserts, deletes or replaces a character, or swaps two neighbours. Takes time proportional to the product
// of the lengths, so a caller must bound words that a client sends.
[[nodiscard]] std::size_t edit_distance(std::string_view from, std::string_view to);

}  // namespace weir::base
