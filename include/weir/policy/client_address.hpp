// Who is asking where trusted proxies say so: the walk over X-Forwarded-For or Forwarded.
//
// Pure, and nothing is allocated.
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/http/head.hpp"

#include <cstdint>
#include <span>

namespace weir::policy {

// Where trusted proxies say who is asking. One of them alone: a proxy that writes the one may pass on the
// other as its client sent it.
enum class AddressField : std::uint8_t { XForwardedFor, Forwarded };

[[nodiscard]] bool is_trusted(std::span<const base::Cidr> trusted, const base::IpAddress& address) noexcept;

// The peer, where it is not trusted. Else the rightmost untrusted address of the field, walking from the
// right over trusted ones; several lines are one list; a malformed element ends the walk at the last address
// that was believed, as does one that tells no address ("unknown", "_hidden"). Empty elements are skipped
// (RFC 9110 §5.6.1.2); a port behind an address is allowed. That Connection names the field changes nothing.
// At most 64 elements are looked at, empty ones included: the last that was believed then counts.
[[nodiscard]] base::IpAddress client_address(std::span<const base::Cidr> trusted, AddressField field,
                                             const base::IpAddress& peer,
                                             const http::Fields& fields) noexcept;

}  // namespace weir::policy
