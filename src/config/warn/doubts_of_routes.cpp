// Warns of routes that probably do not do what was intended.
#include "config/warn/doubts.hpp"
#include "config/warn/overlap.hpp"

#include <algorithm>

namespace weir::app {

namespace {

// Returns the first earlier route that takes all requests of the route; null if the route can be reached.
const policy::Route* route_that_hides(const std::vector<policy::Route>& routes, std::size_t at) {
  for (std::size_t i = 0; i < at; ++i)
    if (plainly_covers(routes[i].match, routes[at].match)) return &routes[i];
  return nullptr;
}

void doubt_order(const std::vector<policy::Route>& routes, Doubts& doubts) {
  for (std::size_t at = 0; at < routes.size(); ++at)
    if (const auto* before = route_that_hides(routes, at))
      doubts.add(routes[at], "is never reached: " + name_of(*before) + " before it (" +
                                 doubts.where(name_of(*before)) + ") takes every request" +
                                 (is_everything(before->match) ? "" : " that it would") +
                                 "; the narrower one has to come first");
}

}  // namespace

void doubt_routes(const Settings& settings, Doubts& doubts) {
  const auto& routes = settings.routes;
  doubt_order(routes, doubts);
  for (std::size_t i = 0; i < settings.upstreams.size(); ++i)
    if (std::none_of(routes.begin(), routes.end(),
                     [&](const policy::Route& route) { return !route.respond && route.upstream == i; }))
      doubts.add("upstream " + in_quotes(settings.upstreams[i].name), "is used by no route");
  for (const auto& route : routes)
    if (route.max_head > settings.server.max_head)
      doubts.add(route, "has a max_head above that of [server], which refuses such heads before");
}

}  // namespace weir::app
