// Hosts, as configurations write them.
#pragma once

#include <string_view>

namespace weir::base {

// Whether its last label is a number, as only that of an IPv4 address may be (RFC 3986 §3.2.2, the URL
// Standard's "ends in a number"), and it is none: "256.1.1.1", "10.0.1", "0x7f.1". Some resolvers make an
// address of such a host, others a name.
[[nodiscard]] bool is_false_ipv4(std::string_view host) noexcept;

}  // namespace weir::base
