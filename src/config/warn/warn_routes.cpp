// Warns of routes that probably do not do what was intended.
#include "config/warn/config_warnings.hpp"
#include "config/warn/overlap.hpp"

#include <algorithm>

namespace weir::config {

namespace {

// Returns the first earlier route that receives all requests of the route `at`; null if there is none.
const policy::Route* route_that_hides(const std::vector<policy::Route>& routes, std::size_t at) {
  for (std::size_t i = 0; i < at; ++i)
    if (plainly_covers(routes[i].match, routes[at].match)) return &routes[i];
  return nullptr;
}

void warn_of_order(const std::vector<policy::Route>& routes, ConfigWarnings& warnings) {
  for (std::size_t at = 0; at < routes.size(); ++at)
    if (const auto* before = route_that_hides(routes, at))
      warnings.add(routes[at], "is never reached: " + name_of(*before) + " before it (" +
                                   warnings.where(name_of(*before)) + ") matches every request" +
                                   (is_everything(before->match) ? "" : " that it matches") +
                                   "; move the narrower one up");
}

}  // namespace

void warn_of_routes(const Settings& settings, ConfigWarnings& warnings) {
  const auto& routes = settings.routes;
  warn_of_order(routes, warnings);
  for (std::size_t i = 0; i < settings.upstreams.size(); ++i)
    if (std::none_of(routes.begin(), routes.end(),
                     [&](const policy::Route& route) { return !route.respond && route.upstream == i; }))
      warnings.add("upstream " + in_quotes(settings.upstreams[i].name), "is used by no route");
  for (const auto& route : routes)
    if (route.max_head > settings.server.max_head)
      warnings.add(
          route,
          "has a larger max_head than [server], which refuses such heads first; raise max_head of [server]");
}

}  // namespace weir::config
