#include "weir/policy/route.hpp"

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

bool uses_token(const Route& route) noexcept {
  const auto& respond = route.respond;
  return (respond &&
          (respond->fields.uses_token || (respond->location && respond->location->uses_token()))) ||
         (route.edits && (route.edits->request.uses_token || route.edits->response.uses_token));
}

namespace {

// The positions of some routes, in ascending order: those in a list, or all.
class Positions {
 public:
  explicit Positions(std::span<const Route> all) noexcept : size_(all.size()) {}
  explicit Positions(std::span<const MatchIndex::Position> some) noexcept
      : some_(some.data()), size_(some.size()) {}
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t operator[](std::size_t i) const noexcept {
    return some_ != nullptr ? some_[i] : i;
  }

 private:
  const MatchIndex::Position* some_ = nullptr;
  std::size_t size_;
};

// Returns the position of the first matching route of those at `positions`.
std::optional<std::size_t> find_among(std::span<const Route> routes, const Request& request,
                                      const Positions& positions) {
  for (std::size_t i = 0; i < positions.size(); ++i)
    if (routes[positions[i]].match.holds(request)) return positions[i];
  return std::nullopt;
}

// Returns true if the path is ambiguous for the chosen route, or for a route at `positions` before it.
bool is_path_ambiguous(std::span<const Route> routes, const Request& request, const Positions& positions,
                       std::optional<std::size_t> chosen) {
  for (std::size_t i = 0; i < positions.size() && positions[i] <= chosen.value_or(positions[i]); ++i)
    if (routes[positions[i]].match.is_path_ambiguous(request)) return true;
  return false;
}

// Does what choose_route() does, but tests only the routes at `positions`.
std::optional<std::size_t> choose_among(std::span<const Route> routes, Request& request,
                                        const Positions& positions) {
  const auto chosen = find_among(routes, request, positions);
  const bool pass = chosen && routes[*chosen].ambiguous_paths == AmbiguousPaths::Pass;
  if (request.interpretations != nullptr && !pass)
    request.routes_differ = is_path_ambiguous(routes, request, positions, chosen);
  if (!chosen) return chosen;
  const auto& edits = routes[*chosen].edits;
  request.leaves_target = edits && edits->path && edits->path->leaves_target(request.path, !pass);
  take_route(routes, *chosen, request);
  return chosen;
}

}  // namespace

std::optional<std::size_t> find_route(std::span<const Route> routes, const Request& request) {
  return find_among(routes, request, Positions(routes));
}

std::optional<std::size_t> choose_route(std::span<const Route> routes, Request& request) {
  return choose_among(routes, request, Positions(routes));
}

RouteFinder::RouteFinder(std::span<const Route> routes) {
  std::vector<const Match*> matches;
  matches.reserve(routes.size());
  for (const Route& route : routes) matches.push_back(&route.match);
  index_ = MatchIndex(matches);
}

std::optional<std::size_t> RouteFinder::choose(std::span<const Route> routes, Request& request,
                                               Scratch& scratch) const {
  const bool found = index_.find(request, scratch);
  return choose_among(routes, request,
                      found ? Positions(std::span<const MatchIndex::Position>(scratch)) : Positions(routes));
}

void take_route(std::span<const Route> routes, std::size_t index, Request& request) noexcept {
  const auto& route = routes[index];
  if (route.ambiguous_paths == AmbiguousPaths::Pass) request.interpretations = nullptr;
  request.route = route.name;
  request.route_index = index;
  request.upstream = route.upstream_name;
}

}  // namespace weir::policy
