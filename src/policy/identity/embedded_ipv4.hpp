// IPv6 addresses that stand for IPv4 hosts, or otherwise do not belong to their prefix's one holder.
//
// Pure. `ipv6_prefix` makes one client of all addresses below a prefix, because one customer holds it. That
// is wrong for the blocks below, where a prefix holds hosts that have nothing to do with each other.
#pragma once

#include "weir/base/ip_address.hpp"

#include <optional>

namespace weir::policy {

// Returns the host's IPv4 address where the IPv6 address contains it: behind a translator (NAT64
// 64:ff9b::/96, RFC 6052; SIIT ::ffff:0:0:0/96, RFC 2765) or a tunnel (6to4 2002::/16, RFC 3056; Teredo
// 2001::/32, RFC 4380).
[[nodiscard]] std::optional<base::IpAddress> embedded_ipv4(const base::IpAddress& address) noexcept;

// Returns true for an address of a block where each address is a host of its own: NAT64 with a prefix of the
// operator's (64:ff9b:1::/48, RFC 8215), link-local (fe80::/10), and ::/96, which has ::1 in it.
[[nodiscard]] bool is_single_host(const base::IpAddress& address) noexcept;

}  // namespace weir::policy
