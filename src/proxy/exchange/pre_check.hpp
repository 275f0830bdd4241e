// Checks requests before any limit is checked. Pure.
#pragma once

#include "weir/http/upgrade.hpp"
#include "weir/policy/match.hpp"
#include "weir/policy/route.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::proxy {

enum class PreCheck : std::uint8_t {
  None,
  HeadTooLarge,   // the head exceeds the route's limit
  BodyTooLarge,   // the announced length exceeds the limit
  Excess,         // the request has more parameters, cookies or repeated fields than weir reads
  PathAmbiguous,  // servers may read the path in several ways that lead to different routes
  PathLeaves,     // servers may read the forwarded path as a path outside the route's target
  Ambiguous,      // the request has contradictory values that identify its client
  NoWebSocket,    // a client of HTTP/2 opens a WebSocket, but the route does not permit this
  UnknownKey,     // the API key is unknown, and unknown_keys = "reject"
};

struct PreCheckAnswer {
  unsigned status;
  std::string_view what;
};

// Returns the reason to reject the request, or None. `route`: null if no route matched. `most_body`: the
// limit of the body in octets; 0: no limit.
[[nodiscard]] inline PreCheck run_pre_check(const policy::Request& request, const policy::Route* route,
                                            std::size_t head_size, std::uint64_t most_body) noexcept {
  if (route != nullptr && route->max_head != 0 && head_size > route->max_head) return PreCheck::HeadTooLarge;
  if (most_body != 0 && request.head->content_length > most_body) return PreCheck::BodyTooLarge;
  if (request.head->excess()) return PreCheck::Excess;
  if (request.routes_differ) return PreCheck::PathAmbiguous;
  if (request.leaves_target) return PreCheck::PathLeaves;
  if (!request.client.ambiguity.empty()) return PreCheck::Ambiguous;
  // With HTTP/2, a 200 from the server or from the route itself would open the WebSocket (RFC 8441 §5). So
  // weir rejects the request here. With HTTP/1.1, a 200 opens no WebSocket.
  if (request.head->opens_websocket && route != nullptr &&
      (route->respond || http::protocol_to_ask(*request.head, route->upgrades).empty()))
    return PreCheck::NoWebSocket;
  return request.client.key_rejected ? PreCheck::UnknownKey : PreCheck::None;
}

// Returns the answer to a rejected request. REQUIRES that `pre_check` is neither None nor Excess
// (policy::describe() makes the text for Excess).
[[nodiscard]] inline PreCheckAnswer answer_to(PreCheck pre_check, const policy::Request& request) noexcept {
  if (pre_check == PreCheck::HeadTooLarge) return {431, "the request head is too large"};
  if (pre_check == PreCheck::BodyTooLarge) return {413, "the request body is too large"};
  if (pre_check == PreCheck::PathAmbiguous)
    return {400, "servers may read the path in several ways, which the routes lead apart"};
  if (pre_check == PreCheck::PathLeaves)
    return {400,
            "the path has dots or encoded slashes that lead out of the place to which its route forwards"};
  if (pre_check == PreCheck::Ambiguous) return {400, request.client.ambiguity};
  if (pre_check == PreCheck::NoWebSocket) return {501, "the route permits no WebSocket"};
  return {401, "the API key is not known"};
}

// Returns true if Max-Forwards forbids forwarding the request. weir must then answer it (RFC 9110 §7.6.2).
[[nodiscard]] inline bool is_final_recipient(const policy::Route& route,
                                             const http::RequestHead& head) noexcept {
  return !route.respond && head.max_forwards == 0U;
}

// Returns the answer to a request that Max-Forwards forbids to forward.
[[nodiscard]] inline PreCheckAnswer max_forwards_answer(const http::RequestHead& head) noexcept {
  if (head.method == "TRACE") return {501, "TRACE is not supported"};
  return {200, ""};
}

}  // namespace weir::proxy
