// Recognises two kinds of IPv6 addresses: those that stand for IPv4 hosts, and those in blocks where each
// address is a separate host.
//
// Pure. Addresses with the same prefix of `ipv6_prefix` bits count as one client, because one customer
// usually has the whole prefix. In the blocks below, however, unrelated hosts have the same prefix.
#pragma once

#include "weir/base/ip_address.hpp"

#include <optional>

namespace weir::policy {

// Returns the IPv4 address that the IPv6 address contains; nullopt if there is none. Translators make such
// IPv6 addresses (NAT64 64:ff9b::/96, RFC 6052; SIIT ::ffff:0:0:0/96, RFC 2765), and so do tunnels (6to4
// 2002::/16, RFC 3056; Teredo 2001::/32, RFC 4380).
[[nodiscard]] std::optional<base::IpAddress> embedded_ipv4(const base::IpAddress& address) noexcept;

// Returns true for blocks where each address is a separate host: NAT64 with the operator's prefix
// (64:ff9b:1::/48, RFC 8215), link-local (fe80::/10), and ::/96, which contains ::1.
[[nodiscard]] bool is_single_host(const base::IpAddress& address) noexcept;

}  // namespace weir::policy
