// The PROXY protocol, versions 1 and 2 (proxy-protocol.txt of HAProxy). A proxy sends this header at the
// start of a connection. The header has the two addresses of the connection between the client and the proxy.
//   1   PROXY TCP4 203.0.113.7 198.51.100.1 51234 443 CRLF
//   2   | signature 12 | version, command 1 | family 1 | length 2 | addresses | TLVs |
//
// Pure. Ignores TLVs (type, length, value). Strict, so that octets that the client sent are never read as a
// part of the header.
#pragma once

#include "weir/base/ip_address.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::http {

// The two addresses of the connection between the client and the proxy.
struct ConnectionEnds {
  base::IpAddress source;
  base::IpAddress destination;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  bool operator==(const ConnectionEnds&) const = default;
};

struct ProxyHeader {
  enum class Status : std::uint8_t { NeedMore, Whole, Bad };
  Status status = Status::NeedMore;
  std::size_t size = 0;  // size of the header; set if the status is Whole
  // Absent if the proxy itself opened the connection (LOCAL), or if it does not know the addresses (UNKNOWN,
  // or not IP).
  std::optional<ConnectionEnds> ends;
};

inline constexpr std::size_t kMaxProxyHeader = 2048;  // octets; a longer header is Bad

// Parses the PROXY header from the first bytes of a connection.
[[nodiscard]] ProxyHeader read_proxy_header(std::string_view bytes) noexcept;

// Appends a PROXY header of version 2. If `ends` is absent, the command of the header is LOCAL.
void append_proxy_header(std::string& out, const std::optional<ConnectionEnds>& ends);

}  // namespace weir::http
