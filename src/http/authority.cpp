#include "weir/http/target.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include <arpa/inet.h>

namespace weir::http {

namespace {

// The characters of a reg-name (RFC 3986 §3.2.2). Leaves out '%', because servers disagree about encoded
// names.
constexpr auto kNameCharacters = [] {
  std::array<bool, 256> characters{};
  for (const char c :
       std::string_view("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._~!$&'()*+,;="))
    characters[static_cast<unsigned char>(c)] = true;
  return characters;
}();

// The kinds of octets that plain_host() distinguishes in an authority.
enum class HostOctet : unsigned char { Other, Plain, Dot };

constexpr auto kHostOctets = [] {
  std::array<HostOctet, 256> octets{};
  for (std::size_t c = 0; c < octets.size(); ++c)
    if (kNameCharacters[c] && !(c >= 'A' && c <= 'Z')) octets[c] = HostOctet::Plain;
  octets['.'] = HostOctet::Dot;
  return octets;
}();

// Returns true for a host name. No label may be empty, except after a dot at the end of the name.
bool is_name(std::string_view text) noexcept {
  char previous = '.';
  for (const char c : text) {
    if (!kNameCharacters[static_cast<unsigned char>(c)] || (c == '.' && previous == '.')) return false;
    previous = c;
  }
  return !text.empty();
}

// Returns true for an IPv6 address without brackets. Rejects IPvFuture (RFC 3986 §3.2.2), which nobody uses.
bool is_ipv6(std::string_view text) noexcept {
  std::array<char, INET6_ADDRSTRLEN> terminated{};
  if (text.size() >= terminated.size()) return false;
  std::copy(text.begin(), text.end(), terminated.begin());
  in6_addr ignored;
  return ::inet_pton(AF_INET6, terminated.data(), &ignored) == 1;
}

// Returns true for a port, the text after the colon. The port may be empty (RFC 3986 §3.2.3).
bool is_port(std::string_view text) noexcept {
  std::uint16_t ignored = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, ignored);
  return text.empty() || (error == std::errc{} && stop == end);
}

}  // namespace

std::string_view plain_host(std::string_view authority) noexcept {
  bool after_dot = true;
  std::size_t size = 0;
  for (; size < authority.size(); ++size) {
    const auto octet = kHostOctets[static_cast<unsigned char>(authority[size])];
    if (octet == HostOctet::Plain) {
      after_dot = false;
      continue;
    }
    if (octet == HostOctet::Other || after_dot) break;
    after_dot = true;
  }
  if (after_dot) return {};
  if (size == authority.size()) return authority;
  const bool port = authority[size] == ':' && is_port(authority.substr(size + 1));
  return port ? authority.substr(0, size) : std::string_view{};
}

bool valid_authority(std::string_view text) noexcept {
  if (text.empty()) return true;
  const bool literal = text.starts_with('[');
  const auto end = literal ? text.find(']') : std::min(text.find(':'), text.size());
  if (end == std::string_view::npos) return false;
  const auto host = text.substr(literal ? 1 : 0, literal ? end - 1 : end);
  const auto port = text.substr(literal ? end + 1 : end);
  if (!(literal ? is_ipv6(host) : is_name(host))) return false;
  return port.empty() || (port.front() == ':' && is_port(port.substr(1)));
}

}  // namespace weir::http
