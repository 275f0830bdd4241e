// Routes. The first route that matches a request determines what weir does with the request once all limits
// admit it.
#pragma once

#include "weir/policy/match.hpp"
#include "weir/policy/routing/field_edits.hpp"
#include "weir/policy/routing/match_index.hpp"
#include "weir/policy/routing/path_rewrite.hpp"
#include "weir/policy/routing/text_template.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// A priority from 0 (highest) to 9 (lowest).
using Priority = std::uint8_t;
inline constexpr Priority kLastPriority = 9;
inline constexpr std::size_t kPriorities = kLastPriority + 1;
inline constexpr Priority kDefaultPriority = 5;  // tiers and routes can have a higher or a lower priority

// A response that weir sends itself.
struct CannedResponse {
  unsigned status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
  // True: `body` is not used, and the answer shows the client's own limits (policy/usage.hpp).
  bool usage = false;
  std::optional<TextTemplate> location{};  // the field Location
  FieldEdits fields{};                     // further fields to add; `fields.dropped` is empty
};

// The changes that a route makes to the requests that it forwards, and to their answers.
struct RouteEdits {
  FieldEdits request;
  FieldEdits response;  // applied to answers of servers, and to answers that weir creates itself
  std::optional<PathRewrite> path;
};

// Says what weir does with a request if servers may read its path in several ways, and if rules or routes
// give different results for these readings.
enum class AmbiguousPaths : std::uint8_t {
  Refuse,  // answer 400
  Pass,    // rules and routes use the normal form only
};

struct Route {
  std::string name;  // name in metrics: the configured name, or the path pattern if no name is configured
  Match match;
  std::size_t upstream = 0;     // index into the configured upstreams; unused when `respond` is set
  std::string upstream_name{};  // empty when `respond` is set
  std::optional<CannedResponse> respond;
  // True: after a 429 of the upstream, weir rejects all requests until the time in Retry-After has passed.
  bool honor_retry_after = false;
  std::uint64_t max_head = 0;            // largest head of a request in bytes; 0: the server's bound applies
  std::uint64_t max_body = 0;            // largest body of a request in bytes; 0: the server's bound applies
  Priority priority = kDefaultPriority;  // priority of clients whose tier has no priority
  std::vector<std::string> upgrades{};   // protocols that connections may change to, in lower case
  AmbiguousPaths ambiguous_paths = AmbiguousPaths::Refuse;
  std::shared_ptr<const RouteEdits> edits{};  // null: no changes; shared by copies of the route
};

// The text of the 400 for a request without a host, if the target of the redirect needs a host.
inline constexpr std::string_view kNoHostToRedirectTo =
    "the request names no host, so the redirect has no target";
// Appends the configured fields of the answer: `fields`, then Location. Returns false if Location needs a
// host and the request has none. (Browsers would read the path in "https:///path" as a host.)
[[nodiscard]] bool append_fields(const CannedResponse& respond, const TemplateValues& values,
                                 std::string& lines);

// Returns true if the route writes values that may come from the client's token: into requests, into answers,
// or into an answer of weir's own.
[[nodiscard]] bool uses_token(const Route& route) noexcept;

// Returns the index of the first route that matches, or nullopt (404).
[[nodiscard]] std::optional<std::size_t> find_route(std::span<const Route> routes, const Request& request);

// Calls find_route() and stores the result in the request: the matching route, and whether other
// interpretations of the path lead to other routes. Also stores whether the path that the route forwards may
// lie outside the path prefix that the route names. Keeps a reference: the routes must outlive the request.
[[nodiscard]] std::optional<std::size_t> choose_route(std::span<const Route> routes, Request& request);

// Chooses among many routes without testing all of them. Immutable once it is built, so any number of threads
// may use it.
class RouteFinder {
 public:
  using Scratch = std::vector<MatchIndex::Position>;  // reusing this object reuses its memory

  RouteFinder() = default;
  // REQUIRES: at most 65,536 routes.
  explicit RouteFinder(std::span<const Route> routes);

  // Does the same as choose_route(). Overwrites `scratch`. REQUIRES: `routes` are those of the constructor.
  [[nodiscard]] std::optional<std::size_t> choose(std::span<const Route> routes, Request& request,
                                                  Scratch& scratch) const;

 private:
  MatchIndex index_;
};

// Makes the route with this index the request's route. Keeps a reference: the routes must outlive the
// request.
void take_route(std::span<const Route> routes, std::size_t index, Request& request) noexcept;

}  // namespace weir::policy
