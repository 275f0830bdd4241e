// Where admitted requests go: the first route that matches.
#pragma once

#include "weir/policy/match.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::policy {

// 0 goes first, 9 last.
using Priority = std::uint8_t;
inline constexpr Priority kLastPriority = 9;
inline constexpr std::size_t kPriorities = kLastPriority + 1;
inline constexpr Priority kDefaultPriority = 5;  // in the middle: there is room on both sides

// An answer that weir gives itself.
struct CannedResponse {
  unsigned status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
};

// Decides about requests whose path leads rules or routes apart, because servers may read it in several ways.
enum class AmbiguousPaths : std::uint8_t {
  Refuse,  // 400
  Pass,    // rules and routes go by the normal form alone
};

struct Route {
  std::string name;  // the label of its metrics: `name`, or else its path pattern
  Match match;
  std::size_t upstream = 0;     // index into the configured upstreams; unused when `respond` is set
  std::string upstream_name{};  // empty when `respond` is set
  std::optional<CannedResponse> respond;
  bool honor_retry_after =
      false;                   // a 429 of the upstream's stands for all, for as long as its Retry-After says
  std::uint64_t max_head = 0;  // bytes of a request's head; 0: as the server has it
  std::uint64_t max_body = 0;  // bytes of a request's body; likewise
  Priority priority = kDefaultPriority;  // of clients whose tier has none
  std::vector<std::string> upgrades{};   // protocols that connections may change to, in small letters
  AmbiguousPaths ambiguous_paths = AmbiguousPaths::Refuse;
};

// The index of the first that matches, or nullopt (404).
[[nodiscard]] std::optional<std::size_t> find_route(std::span<const Route> routes, const Request& request);

// find_route(), whose outcome is noted in the request: which route it takes, and whether the readings of its
// path lead apart. The routes outlive it.
[[nodiscard]] std::optional<std::size_t> choose_route(std::span<const Route> routes, Request& request);

// Notes in the request which route it takes. The route outlives it.
void take_route(const Route& route, Request& request) noexcept;

}  // namespace weir::policy
