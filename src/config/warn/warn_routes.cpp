// Warns of routes that probably do not do what was intended.
#include "config/warn/config_warnings.hpp"
#include "config/warn/overlap.hpp"

#include <algorithm>
#include <iterator>

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

bool writes(const policy::Route& route, policy::Placeholder placeholder) {
  const auto in = [&](const policy::FieldEdits& edits) {
    return std::any_of(edits.written.begin(), edits.written.end(),
                       [&](const policy::EditedField& field) { return field.value.has(placeholder); });
  };
  const auto& respond = route.respond;
  if (route.edits && (in(route.edits->request) || in(route.edits->response))) return true;
  return respond && (in(respond->fields) || (respond->location && respond->location->has(placeholder)));
}

// Warns of placeholders that are always empty, because nothing in the configuration says who the client is.
void warn_of_empty_texts(const policy::Route& route, const policy::ClientSettings& client,
                         ConfigWarnings& warnings) {
  using policy::Placeholder;
  constexpr auto kNone = policy::Source::Kind::None;
  const auto look = [&](Placeholder placeholder, bool known, const std::string& where) {
    if (!known && writes(route, placeholder))
      warnings.add(route, "writes " + std::string(policy::name_of(placeholder)) +
                              ", which is always empty: write " + where);
  };
  const bool keys = client.keys.has_value();
  look(Placeholder::User, keys || client.user.kind != kNone, "user or keys in [client]");
  look(Placeholder::Org, keys || client.org.kind != kNone, "org or keys in [client]");
  look(Placeholder::Service, keys || client.service.kind != kNone, "service or keys in [client]");
  look(Placeholder::Tier, keys, "keys in [client]");
}

bool redirects_nowhere(const policy::Route& route) {
  constexpr unsigned kRedirects[] = {301, 302, 303, 307, 308};
  return route.respond && !route.respond->location &&
         std::find(std::begin(kRedirects), std::end(kRedirects), route.respond->status) !=
             std::end(kRedirects);
}

}  // namespace

void warn_of_routes(const Settings& settings, ConfigWarnings& warnings) {
  const auto& routes = settings.routes;
  warn_of_order(routes, warnings);
  for (std::size_t i = 0; i < settings.upstreams.size(); ++i)
    if (std::none_of(routes.begin(), routes.end(),
                     [&](const policy::Route& route) { return !route.respond && route.upstream == i; }))
      warnings.add("upstream " + in_quotes(settings.upstreams[i].name), "is used by no route");
  for (const auto& route : routes) {
    warn_of_empty_texts(route, settings.client, warnings);
    if (redirects_nowhere(route))
      warnings.add(route, "answers " + std::to_string(route.respond->status) +
                              " without a target; write location = \"https://{host}{uri}\" in respond");
  }
  for (const auto& route : routes)
    if (route.max_head > settings.server.max_head)
      warnings.add(
          route,
          "has a larger max_head than [server], which refuses such heads first; raise max_head of [server]");
}

}  // namespace weir::config
