// Translates keys such as "$binary_remote_addr$http_x_tenant": those of limit_req_zone and limit_conn_zone,
// and that of an upstream's `hash`. Pure.
#pragma once

#include "cli/import/read/model.hpp"
#include "cli/import/read/notes.hpp"

#include <string>
#include <string_view>

namespace weir::cli::nginx {

// Translates a key with variables, and sets the members of `zone` that describe the key. If weir has no equal
// for a variable, marks the zone as unusable and adds a note. Ignores constant text, because it does not
// distinguish clients.
void read_key(const Directive& directive, std::string_view text, Zone& zone, Notes& notes);

// Reads limit_req_zone or limit_conn_zone. Returns the name of the zone; empty if the directive names no
// zone.
[[nodiscard]] std::string read_zone(const Directive& directive, Zone& zone, Notes& notes);

}  // namespace weir::cli::nginx
