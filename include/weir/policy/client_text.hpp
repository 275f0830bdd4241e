// What a client of a rule is shown as, beside its digest: the values of its key that are no secrets.
//
//   ["ip"] "203.0.113.7"    ["user", "route"] "user:alice route:/api/*"    ["api_key"] "api_key of alice"
//
// Of API keys, headers, cookies, query parameters and claims the name alone is shown, of a key that the keys
// file knows also whose it is; the digest tells such clients apart. [] is "everybody".
#pragma once

#include "weir/policy/rule.hpp"

#include <span>
#include <string_view>

namespace weir::policy {

// Writes as much of it as `room` takes, and returns that. Octets of a client's own beyond printable ASCII
// come out as '?'. Allocates nothing. REQUIRES that the rule's key has a name.
[[nodiscard]] std::string_view write_client(std::span<char> room, const KeyPattern& key,
                                            const Request& request) noexcept;

// Whether that tells clients apart without the digest.
[[nodiscard]] bool is_readable(const KeyPattern& key) noexcept;

}  // namespace weir::policy
