// Writes a configuration of weir. Pure.
#pragma once

#include "cli/import/write/layout.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace weir::cli::nginx {

// Returns [server], [admin], [client], [log] and the listeners.
[[nodiscard]] std::string write_front(const Configuration& configuration, const Layout& layout);
[[nodiscard]] std::string write_upstreams(const Configuration& configuration, const Layout& layout);
[[nodiscard]] std::string write_routes(const Layout& layout);
// Returns a rule for each different limit_req and limit_conn. A rule lists all routes to which the limit
// applies.
[[nodiscard]] std::string write_rules(const Configuration& configuration, const Layout& layout, Notes& notes);

// Returns the limit of request bodies that all routes share. Returns nullopt if the limits of the routes
// differ. An inner nullopt means that the routes have no limit.
[[nodiscard]] std::optional<std::optional<std::uint64_t>> common_max_body(const Layout& layout);

}  // namespace weir::cli::nginx
