// Reads the directives that change header fields.
#pragma once

#include "cli/import/read/model.hpp"
#include "cli/import/read/notes.hpp"

#include <string_view>

namespace weir::cli::nginx {

// Returns true if the names of two header fields are equal without case.
[[nodiscard]] bool is_same_field(std::string_view a, std::string_view b);

// Reads `proxy_set_header`. Adds no change for fields that weir sets to the same value by itself.
void read_request_field(const Directive& directive, FieldChanges& changes, Notes& notes);

// Reads `add_header`.
void read_response_field(const Directive& directive, FieldChanges& changes, Notes& notes);

// Reads `proxy_hide_header`.
void read_hidden_field(const Directive& directive, FieldChanges& changes, Notes& notes);

}  // namespace weir::cli::nginx
