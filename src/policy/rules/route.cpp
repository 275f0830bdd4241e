#include "weir/policy/route.hpp"

#include <algorithm>

namespace weir::policy {

bool append_fields(const CannedResponse& respond, const TemplateValues& values, std::string& lines) {
  append_lines(respond.fields, values, lines);
  if (!respond.location) return true;
  if (values.request.host.empty() && respond.location->has(Placeholder::Host)) return false;
  lines += "Location: ";
  respond.location->append(lines, values, Purpose::Url);
  lines += "\r\n";
  return true;
}

bool asks_who(const Route& route) noexcept {
  const auto& respond = route.respond;
  return (respond && (respond->fields.asks_who || (respond->location && respond->location->asks_who()))) ||
         (route.edits && (route.edits->request.asks_who || route.edits->response.asks_who));
}

std::optional<std::size_t> find_route(std::span<const Route> routes, const Request& request) {
  for (std::size_t i = 0; i < routes.size(); ++i)
    if (routes[i].match.holds(request)) return i;
  return std::nullopt;
}

std::optional<std::size_t> choose_route(std::span<const Route> routes, Request& request) {
  const auto chosen = find_route(routes, request);
  const bool pass = chosen && routes[*chosen].ambiguous_paths == AmbiguousPaths::Pass;
  if (request.interpretations != nullptr && !pass) {
    const auto looked_at = routes.first(chosen ? *chosen + 1 : routes.size());
    request.routes_differ = std::any_of(looked_at.begin(), looked_at.end(), [&](const Route& route) {
      return route.match.is_path_ambiguous(request);
    });
  }
  if (!chosen) return chosen;
  const auto& edits = routes[*chosen].edits;
  request.leaves_target = edits && edits->path && edits->path->leaves_target(request.path, !pass);
  take_route(routes, *chosen, request);
  return chosen;
}

void take_route(std::span<const Route> routes, std::size_t index, Request& request) noexcept {
  const auto& route = routes[index];
  if (route.ambiguous_paths == AmbiguousPaths::Pass) request.interpretations = nullptr;
  request.route = route.name;
  request.route_index = index;
  request.upstream = route.upstream_name;
}

}  // namespace weir::policy
