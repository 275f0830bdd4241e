#include "weir/base/endpoint.hpp"

#include "weir/base/host.hpp"

#include <charconv>

namespace weir::base {

namespace {
constexpr std::string_view kUnix = "unix:";
constexpr std::size_t kMaxUnixPath = 107;  // sockaddr_un::sun_path with its terminator
}  // namespace

std::string Endpoint::to_string() const {
  if (is_unix()) return std::string(kUnix) + unix_path;
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  const auto wrong = [&] {
    return Error{"\"" + std::string(text) + "\" is not an address: write host:port, [v6]:port or unix:/path"};
  };
  Endpoint endpoint;
  // A relative path would be another file for whoever starts weir elsewhere.
  if (text.starts_with(kUnix) && text.substr(kUnix.size()).starts_with('/')) {
    endpoint.unix_path = text.substr(kUnix.size());
    if (endpoint.unix_path.size() > kMaxUnixPath) return wrong();
    return endpoint;
  }
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return wrong();
  auto host = text.substr(0, colon);
  if (host == "*")
    return Error{"\"" + std::string(text) +
                 "\" is not an address: write 0.0.0.0 for all of IPv4, or [::] for IPv6 as well"};
  if (host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return wrong();
  if (host.find_first_of("[] \t") != std::string_view::npos) return wrong();
  const auto digits = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), endpoint.port);
  if (error != std::errc{} || end != digits.data() + digits.size() || host.empty()) return wrong();
  if (is_false_ipv4(host))
    return Error{"\"" + std::string(text) +
                 "\" is not an address: a host that ends in a number is an IPv4 address, "
                 "and \"" +
                 std::string(host) + "\" is none; write four numbers from 0 to 255, or a name"};
  endpoint.host = host;
  return endpoint;
}

}  // namespace weir::base
