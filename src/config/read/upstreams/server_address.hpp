// Parses the elements of an upstream's `servers`: an address, a URL, or the name of a service, which DNS
// lists in SRV records ("srv:NAME").
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/base/result.hpp"

#include <string>
#include <string_view>

namespace weir::config {

struct ServerAddress {
  base::Endpoint endpoint;
  bool tls = false;
  bool is_service = false;  // true: `endpoint.host` is the name of SRV records
};

// Parses a server's URL, the name of a service ("srv:NAME"), or an address as parse_endpoint() does. A URL
// without a port has the default port of its scheme.
[[nodiscard]] base::Result<ServerAddress> parse_server_address(std::string_view text);

// Returns the domain of a service: its name without the labels that begin with "_".
[[nodiscard]] std::string domain_of(std::string_view service);

// Returns true for a host name or an IP address in the form that certificates use.
[[nodiscard]] bool is_host_name(std::string_view text);

}  // namespace weir::config
