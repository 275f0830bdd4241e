// Translates the key of a zone, or of `hash`, such as "$binary_remote_addr$http_x_tenant". Pure.
#pragma once

#include "cli/import/read/model.hpp"
#include "cli/import/read/notes.hpp"

#include <string>
#include <string_view>

namespace weir::cli::nginx {

// Translates a text with variables. Sets the key's members of the zone. A variable without an equal makes the
// zone unusable, and adds a note to the directive. Constant text in a key changes nothing.
void read_key(const Directive& directive, std::string_view text, Zone& zone, Notes& notes);

// Reads limit_req_zone or limit_conn_zone. Returns the name of the zone; empty if the directive has none.
[[nodiscard]] std::string read_zone(const Directive& directive, Zone& zone, Notes& notes);

}  // namespace weir::cli::nginx
