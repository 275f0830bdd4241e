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
// Returns a rule for each limit_req and limit_conn, of all routes to which it applies.
[[nodiscard]] std::string write_rules(const Configuration& configuration, const Layout& layout, Notes& notes);

// Returns the largest body that all routes have in common. The first nullopt: they differ. The second one:
// there is no limit.
[[nodiscard]] std::optional<std::optional<std::uint64_t>> common_max_body(const Layout& layout);

}  // namespace weir::cli::nginx
