#include "weir/base/endpoint.hpp"

#include "weir/base/host.hpp"
#include "weir/base/ip_address.hpp"

#include <charconv>

namespace weir::base {

namespace {
constexpr std::string_view kUnix = "unix:";
constexpr std::size_t kMaxUnixPath = 107;  // sun_path of sockaddr_un holds 108 octets with the terminator
}  // namespace

std::string Endpoint::to_string() const {
  if (is_unix()) return std::string(kUnix) + unix_path;
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

namespace {

// Returns what is wrong with a port and what to write instead. Returns an empty text if the port is valid.
std::string fault_of_port(std::string_view host, std::string_view digits) {
  const auto write = [&](std::string_view port) {
    return "; write " + std::string(host) + ":" + std::string(port);
  };
  if (digits.empty()) return "the port is missing after the colon, as in " + std::string(host) + ":8080";
  const auto number = digits.substr(0, digits.find('/'));
  if (number.empty() || number.find_first_not_of("0123456789") != std::string_view::npos) {
    const bool https = number == "https";
    return "the port \"" + std::string(digits) + "\" is not a number from 0 to 65535" +
           (https || number == "http" ? write(https ? "443" : "80") : "");
  }
  if (number.size() != digits.size()) return "a path follows the port" + write(number);
  std::uint16_t port = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), port);
  return parsed.ec == std::errc{} ? "" : "the port " + std::string(digits) + " is above 65535";
}

// Returns what is wrong with a text that lacks a host or a port, and what to write instead.
std::string fault_of_shape(std::string_view text) {
  const auto bare = [](std::string_view t) {
    return IpAddress::parse(t) && t.find(':') != std::string_view::npos;
  };
  const std::string whole(text);
  if (text.starts_with("unix:"))
    return text.size() > kUnix.size() + kMaxUnixPath
               ? "the path is longer than 107 bytes"
               : "the path of a unix socket begins with /; write unix:/run/weir.sock";
  if (text.find("://") != std::string_view::npos)
    return "it is a URL; write only host:port, such as " + whole.substr(text.find("://") + 3);
  const auto port = text.substr(text.starts_with(':') ? 1 : 0);
  if (!port.empty() && port.find_first_not_of("0123456789") == std::string_view::npos)
    return "the host is missing; write 127.0.0.1:" + std::string(port) + ", or 0.0.0.0:" + std::string(port) +
           " for all addresses";
  if (const auto colon = text.rfind(':'); colon != std::string_view::npos && bare(text.substr(0, colon)))
    return "an IPv6 address needs brackets; write [" + whole.substr(0, colon) + "]" + whole.substr(colon);
  if (bare(text)) return "an IPv6 address needs brackets; write [" + whole + "]:8080";
  const bool literal = text.starts_with('[') && text.ends_with(']');
  if (!text.empty() && (literal || text.find_first_of("[]: \t/") == std::string_view::npos))
    return "the port is missing, as in " + whole + ":8080";
  return "write host:port, [v6]:port or unix:/path";
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view text) {
  const auto wrong = [&](const std::string& why) {
    return Error{"\"" + std::string(text) + "\" is not an address: " + why};
  };
  Endpoint endpoint;
  // Accepts absolute paths only, because the meaning of a relative path would depend on the directory in
  // which weir starts.
  if (text.starts_with(kUnix) && text.substr(kUnix.size()).starts_with('/')) {
    endpoint.unix_path = text.substr(kUnix.size());
    if (endpoint.unix_path.size() > kMaxUnixPath) return wrong(fault_of_shape(text));
    return endpoint;
  }
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return wrong(fault_of_shape(text));
  auto host = text.substr(0, colon);
  if (host == "*") return wrong("write 0.0.0.0 for all of IPv4, or [::] for IPv6 as well");
  if (host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return wrong(fault_of_shape(text));
  if (host.empty() || host.find_first_of("[] \t") != std::string_view::npos)
    return wrong(fault_of_shape(text));
  const auto digits = text.substr(colon + 1);
  if (const auto fault = fault_of_port(text.substr(0, colon), digits); !fault.empty())
    return wrong(host == "unix" ? fault_of_shape(text) : fault);
  std::from_chars(digits.data(), digits.data() + digits.size(), endpoint.port);
  if (is_false_ipv4(host))
    return wrong("a host that ends in a number must be an IPv4 address, but \"" + std::string(host) +
                 "\" is not; write four numbers from 0 to 255, or a name");
  // Writes an IPv6 address in one form, so that equal addresses get the same text, however the configuration
  // spells them.
  const auto address = IpAddress::parse(host);
  endpoint.host = address && !address->is_v4() ? address->to_string() : std::string(host);
  return endpoint;
}

}  // namespace weir::base
