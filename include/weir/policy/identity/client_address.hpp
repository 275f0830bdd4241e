// Finds the client's address behind trusted proxies, from X-Forwarded-For or Forwarded.
//
// Pure. Allocates nothing.
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/http/head.hpp"

#include <cstdint>
#include <span>

namespace weir::policy {

// The field in which trusted proxies report the client's address. weir reads only the configured field. A
// proxy may write one of the two fields and forward the other field as the client sent it.
enum class AddressField : std::uint8_t { XForwardedFor, Forwarded };

[[nodiscard]] bool is_trusted(std::span<const base::Cidr> trusted, const base::IpAddress& address) noexcept;

// Returns the peer's address if the peer is not trusted. Otherwise walks the field from right to left over
// trusted addresses and returns the first untrusted address. If the walk ends earlier, returns the address
// that it reached last. The walk ends at:
// * an invalid element, or an element without an address ("unknown", "_hidden");
// * the end of the field, or after 64 elements, including empty elements.
//
// Several lines of the field form one list. Empty elements are skipped (RFC 9110 §5.6.1.2). An address may
// have a port. The function reads the field even if the Connection field names it.
[[nodiscard]] base::IpAddress client_address(std::span<const base::Cidr> trusted, AddressField field,
                                             const base::IpAddress& peer,
                                             const http::Fields& fields) noexcept;

}  // namespace weir::policy
