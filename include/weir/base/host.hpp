// Checks of host names in the configuration.
#pragma once

#include <string_view>

namespace weir::base {

// Returns true if the last label of `host` is a number but `host` is not an IPv4 address: "256.1.1.1",
// "10.0.1", "0x7f.1". Only an IPv4 address may end in a number (RFC 3986 §3.2.2; the URL Standard's "ends in
// a number"). Some resolvers read these hosts as addresses, and some as names.
[[nodiscard]] bool is_false_ipv4(std::string_view host) noexcept;

}  // namespace weir::base
