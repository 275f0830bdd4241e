#include "weir/policy/route.hpp"

namespace weir::policy {

std::optional<std::size_t> find_route(std::span<const Route> routes, const Request& request) {
  for (std::size_t i = 0; i < routes.size(); ++i)
    if (routes[i].match.holds(request)) return i;
  return std::nullopt;
}

}  // namespace weir::policy
