// Checks whether a value in the file has the kind that the schema requires, and makes the parts of messages
// that say what was expected and what was found.
#pragma once

#include "config/read/toml_reader.hpp"
#include "config/schema/schema.hpp"

#include <string>

namespace weir::config {

// Returns what a key of this specification expects, such as "a duration such as \"10s\"".
[[nodiscard]] std::string expectation(const KeySpec& spec);

// Returns true if the value has a TOML type that the kind permits.
[[nodiscard]] bool of_kind(const Node& node, Kind kind);

// Returns the first element of the list that does not fit a list of this kind. Returns null if all elements
// fit, or if the value is not a list.
[[nodiscard]] const Node* misfit_in(const Node& node, Kind kind);

// Returns the start of a message: "found a string", or "found a list with a whole number in it".
[[nodiscard]] std::string finding(const Node& node, Kind kind);

}  // namespace weir::config
