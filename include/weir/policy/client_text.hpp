// Describes a client of a rule in readable text. The text contains the values of the client's key that are
// not secret. weir shows it beside the digest of the key.
//
//   ["ip"] "203.0.113.7"    ["user", "route"] "user:alice route:/api/*"    ["api_key"] "api_key of alice"
//
// For API keys, headers, cookies, query parameters, claims and values of the body, the text has the name but
// not the value. The text also omits the value of a descriptor whose key suggests a secret
// (is_called_secret()). For an API key in the keys file, the text also has the owner. Only the digest
// distinguishes clients with the same text. An empty key [] is "everybody".
#pragma once

#include "weir/policy/rule.hpp"

#include <span>
#include <string_view>

namespace weir::policy {

// Writes the text for the request's client into the buffer `room`, and cuts the text to the buffer's size.
// Returns a view of the buffer. Octets that are not printable ASCII become '?'. Allocates nothing. REQUIRES:
// name_key() returns a key for the request.
[[nodiscard]] std::string_view write_client(std::span<char> room, const KeyPattern& key,
                                            const Request& request) noexcept;

// Returns true if two different clients never have the same text, so that people do not need the digest.
[[nodiscard]] bool is_readable(const KeyPattern& key) noexcept;

}  // namespace weir::policy
