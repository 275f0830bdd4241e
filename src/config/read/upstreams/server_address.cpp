#include "config/read/upstreams/server_address.hpp"

#include "config/read/settings_sections.hpp"

#include "weir/base/host.hpp"

#include <algorithm>
#include <utility>

namespace weir::config {

bool is_host_name(std::string_view text) {
  const auto fits = [](char c) {
    const char l = static_cast<char>(c | 0x20);
    return (c >= '0' && c <= '9') || (l >= 'a' && l <= 'z') || c == '-' || c == '.' || c == ':' || c == '_';
  };
  return !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), fits) &&
         !base::is_false_ipv4(text);
}

namespace {

// Parses the name of a service in `text` after the prefix. Accepts names without the labels "_service._proto"
// of RFC 2782, because some name servers have SRV records at other names, too.
base::Result<ServerAddress> parse_service(std::string_view text, std::string_view prefix) {
  const auto name = text.substr(prefix.size());
  if (!is_host_name(name) || name.find(':') != std::string_view::npos)
    return base::Error{in_quotes(std::string(text)) + " is not a service: write " + std::string(prefix) +
                       "NAME, such as \"" + std::string(prefix) +
                       "_http._tcp.api.internal\", without a port, which the SRV records tell"};
  return ServerAddress{{std::string(name), 0, {}}, prefix != "srv:", true};
}

// Returns true if the text has only digits. parse_server_address() reads "srv:80" as port 80 of a host named
// "srv", not as a service.
bool is_port(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string about_numbers(std::string_view address) {
  return base::is_false_ipv4(address.substr(0, address.find_first_of(":/")))
             ? "; a host that ends in a number is an IPv4 address of four numbers from 0 to 255"
             : "";
}

}  // namespace

base::Result<ServerAddress> parse_server_address(std::string_view text) {
  for (const std::string_view prefix : {"srv:", "https+srv:"})
    if (text.starts_with(prefix) && !(prefix == "srv:" && is_port(text.substr(prefix.size()))))
      return parse_service(text, prefix);
  constexpr std::pair<std::string_view, const char*> kSchemes[] = {{"https://", ":443"}, {"http://", ":80"}};
  for (const auto& [scheme, port] : kSchemes) {
    if (!text.starts_with(scheme)) continue;
    const std::string rest(text.substr(scheme.size()));
    auto endpoint = base::parse_endpoint(rest);
    if (!endpoint) endpoint = base::parse_endpoint(rest + port);
    if (!endpoint || endpoint->is_unix() || endpoint->host.find_first_of("/?#@") != std::string::npos)
      return base::Error{in_quotes(std::string(text)) + " is not the address of a server: " +
                         about_port(rest) + "write " + std::string(scheme) + "host or " +
                         std::string(scheme) + "host:port, without a path" + about_numbers(rest)};
    return ServerAddress{std::move(*endpoint), scheme == "https://"};
  }
  auto endpoint = base::parse_endpoint(text);
  if (!endpoint) {
    const auto& said = endpoint.error().message;
    if (said.ends_with("unix:/path")) return base::Error{said + ", or https:// before the first two"};
    const bool no_port = said.find("the port is missing, as in") != std::string::npos;
    return base::Error{said + (no_port ? ", or https://" + std::string(text) : "")};
  }
  return ServerAddress{std::move(*endpoint), false};
}

std::string domain_of(std::string_view service) {
  while (service.starts_with('_') && service.find('.') != std::string_view::npos)
    service.remove_prefix(service.find('.') + 1);
  if (service.ends_with('.')) service.remove_suffix(1);
  return std::string(service);
}

}  // namespace weir::config
