// Changing a connection's protocol (RFC 9110 §7.8): which change is passed on, and whether an answer agrees
// to it.
#pragma once

#include "weir/http/head.hpp"

#include <span>
#include <string>
#include <string_view>

namespace weir::http {

// The protocol to ask the upstream for: the first of the client's that is among `allowed`, as written there.
// Empty: none; for a request with a body none ever is, since where its end and the protocol's beginning lie
// would be for each reader to find out.
[[nodiscard]] std::string_view protocol_to_ask(const RequestHead& head,
                                               std::span<const std::string> allowed) noexcept;

// Whether a 101 names this protocol and no other, as it must.
[[nodiscard]] bool switches_to(const ResponseHead& head, std::string_view protocol) noexcept;

// Whether `name` may be among what is allowed: "websocket", "name/version", but none of the protocols that
// would carry requests past weir (HTTP, h2c, TLS).
[[nodiscard]] bool may_be_allowed(std::string_view name) noexcept;

}  // namespace weir::http
