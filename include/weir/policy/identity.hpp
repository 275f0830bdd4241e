// Who is asking: the attributes of a client, and where each is read from.
//
// Pure: from a parsed head and the peer's address to a `ClientIdentity` whose views live as long as the
// head's buffer and the key ring.
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/http/head.hpp"
#include "weir/policy/key_ring.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// Where a credential or attribute is found in a request. Of a header that comes in several lines the value is
// what all lines agree on; lines that differ say nothing, as if it were absent. Of a query parameter or
// cookie the first counts.
struct Source {
  enum class Kind : std::uint8_t { None, Header, Query, Cookie, Bearer };
  Kind kind = Kind::None;
  std::string name;  // unused for Bearer (Authorization: Bearer …, RFC 6750 §2.1)
};

enum class UnknownKeys : std::uint8_t { Anonymous, Reject, Accept };

// [client] as configured. Immutable.
struct ClientSettings {
  std::vector<base::Cidr> trusted_proxies;
  int ipv6_prefix = 64;  // 1 to 128
  Source api_key{Source::Kind::Header, "X-API-Key"};
  Source user;  // user, org and service are believed from trusted proxies alone, wherever they are read from
  Source org;
  Source service;
  Source device;                // from anyone
  std::optional<KeyRing> keys;  // the keys file, where one is configured
  UnknownKeys unknown_keys = UnknownKeys::Anonymous;
};

struct ClientIdentity {
  base::IpAddress peer;     // who opened the connection
  base::IpAddress address;  // who is asking: the peer, or what trusted proxies say
  base::IpAddress network;  // `address` with IPv6 cut to the configured prefix: what `ip` keys are made of
  bool peer_trusted = false;
  bool key_rejected = false;  // an unknown API key came and unknown_keys = "reject"; api_key is then empty
  // Empty: absent. What the keys file says of a key's holder goes before what the request says.
  std::string_view api_key, user, org, service, device, tier;
};

// `peer`: the address at the other end of the connection (or what PROXY said).
[[nodiscard]] ClientIdentity identify(const ClientSettings& settings, const base::IpAddress& peer,
                                      const http::RequestHead& head) noexcept;

// The rightmost untrusted address of X-Forwarded-For, walking from the right over trusted ones; several lines
// are one list; a malformed element ends the walk at the last address that was believed. Empty elements are
// skipped (RFC 9110 §5.6.1.2); a port behind an address is allowed. That Connection names the field changes
// nothing.
[[nodiscard]] base::IpAddress forwarded_client(const ClientSettings& settings, const base::IpAddress& peer,
                                               const http::Fields& fields) noexcept;

// The value of one query parameter as it stands, or of one cookie. Empty when absent.
[[nodiscard]] std::string_view query_parameter(std::string_view query, std::string_view name) noexcept;
[[nodiscard]] std::string_view cookie(const http::Fields& fields, std::string_view name) noexcept;

}  // namespace weir::policy
