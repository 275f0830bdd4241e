// Where admitted requests go: the first route that matches.
#pragma once

#include "weir/policy/match.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace weir::policy {

// An answer that weir gives itself.
struct CannedResponse {
  unsigned status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
};

struct Route {
  std::string name;  // the label of its metrics: `name`, or else its path pattern
  Match match;
  std::size_t upstream = 0;  // index into the configured upstreams; unused when `respond` is set
  std::optional<CannedResponse> respond;
};

// The index of the first that matches, or nullopt (404).
[[nodiscard]] std::optional<std::size_t> find_route(std::span<const Route> routes, const Request& request);

}  // namespace weir::policy
