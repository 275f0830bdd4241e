// Routes: an admitted request takes the first route that matches.
#pragma once

#include "weir/policy/match.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::policy {

// 0 has precedence, 9 comes last.
using Priority = std::uint8_t;
inline constexpr Priority kLastPriority = 9;
inline constexpr std::size_t kPriorities = kLastPriority + 1;
inline constexpr Priority kDefaultPriority = 5;  // in the middle, so that there are higher and lower ones

// A response that weir sends itself.
struct CannedResponse {
  unsigned status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
};

// The treatment of a request if servers may read a path in several ways that rules or routes treat
// differently.
enum class AmbiguousPaths : std::uint8_t {
  Refuse,  // 400
  Pass,    // rules and routes use the normal form only
};

struct Route {
  std::string name;  // the metric label: `name`, otherwise the path pattern
  Match match;
  std::size_t upstream = 0;     // index into the configured upstreams; unused when `respond` is set
  std::string upstream_name{};  // empty when `respond` is set
  std::optional<CannedResponse> respond;
  bool honor_retry_after = false;        // an upstream's 429 rejects all requests until its Retry-After
  std::uint64_t max_head = 0;            // bytes of a request's head; 0: the server's bound
  std::uint64_t max_body = 0;            // bytes of a request's body; 0: the server's bound
  Priority priority = kDefaultPriority;  // of clients whose tier has no priority
  std::vector<std::string> upgrades{};   // protocols that connections may change to, in lower case
  AmbiguousPaths ambiguous_paths = AmbiguousPaths::Refuse;
};

// Returns the index of the first route that matches, or nullopt (404).
[[nodiscard]] std::optional<std::size_t> find_route(std::span<const Route> routes, const Request& request);

// Calls find_route() and stores the result in the request: its route, and whether other interpretations of
// its path lead to other routes. The routes must outlive the request.
[[nodiscard]] std::optional<std::size_t> choose_route(std::span<const Route> routes, Request& request);

// Stores the route in the request. The route must outlive it.
void take_route(const Route& route, Request& request) noexcept;

}  // namespace weir::policy
