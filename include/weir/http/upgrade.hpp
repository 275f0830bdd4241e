// Changes of a connection's protocol (RFC 9110 §7.8): which protocols weir forwards, and whether a response
// accepts the change.
#pragma once

#include "weir/http/head.hpp"

#include <span>
#include <string>
#include <string_view>

namespace weir::http {

// Returns the protocol to request from the upstream: the first protocol of the client that is also in
// `allowed`, spelled as in `allowed`. Returns an empty text if there is no such protocol, or if the request
// has a body, because servers could disagree where that body ends.
[[nodiscard]] std::string_view protocol_to_ask(const RequestHead& head,
                                               std::span<const std::string> allowed) noexcept;

// Returns true if a 101 response names this protocol and no other.
[[nodiscard]] bool switches_to(const ResponseHead& head, std::string_view protocol) noexcept;

// Returns true if the configuration may allow protocol `name`: "websocket" or "name/version". Returns false
// for protocols that would carry requests that weir cannot check (HTTP, h2c, TLS).
[[nodiscard]] bool may_be_allowed(std::string_view name) noexcept;

}  // namespace weir::http
