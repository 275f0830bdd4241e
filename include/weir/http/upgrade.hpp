// Changes of a connection's protocol (RFC 9110 §7.8): which ones weir forwards, and whether a response
// accepts one.
#pragma once

#include "weir/http/head.hpp"

#include <span>
#include <string>
#include <string_view>

namespace weir::http {

// Returns the protocol to request from the upstream: the client's first protocol that is in `allowed`,
// spelled as there. Returns an empty text if there is none, or if the request has a body: readers could
// disagree where the body ends.
[[nodiscard]] std::string_view protocol_to_ask(const RequestHead& head,
                                               std::span<const std::string> allowed) noexcept;

// Returns true if a 101 names this protocol and no other, as it must.
[[nodiscard]] bool switches_to(const ResponseHead& head, std::string_view protocol) noexcept;

// Returns true if the configuration may allow protocol `name`: "websocket" or "name/version". Returns false
// for protocols that would carry requests past weir (HTTP, h2c, TLS).
[[nodiscard]] bool may_be_allowed(std::string_view name) noexcept;

}  // namespace weir::http
