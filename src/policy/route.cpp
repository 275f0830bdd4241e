#include "weir/policy/route.hpp"

namespace weir::policy {

std::optional<std::size_t> find_route(std::span<const Route> routes, const Request& request) {
  for (std::size_t i = 0; i < routes.size(); ++i)
    if (routes[i].match.holds(request)) return i;
  return std::nullopt;
}

void take_route(const Route& route, Request& request) noexcept {
  request.route = route.name;
  request.upstream = route.upstream_name;
}

}  // namespace weir::policy
