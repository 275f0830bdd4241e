// The address of a socket: "host:port", "[v6]:port" or "unix:/path".
#pragma once

#include "weir/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::base {

struct Endpoint {
  std::string host;  // a name, or an IP address without brackets; empty for a unix socket
  std::uint16_t port = 0;
  std::string unix_path;  // empty for TCP

  [[nodiscard]] bool is_unix() const noexcept { return !unix_path.empty(); }
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// Parses one of the three forms: "host:port", "[v6]:port" or "unix:/path". Port 0 is valid: a listener with
// port 0 gets a free port. The error says what is wrong and what to write instead.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text);

}  // namespace weir::base
