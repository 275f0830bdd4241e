#include "weir/policy/identity/client_address.hpp"

#include "policy/rules/pieces.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace weir::policy {

bool is_trusted(std::span<const base::Cidr> trusted, const base::IpAddress& address) noexcept {
  return std::any_of(trusted.begin(), trusted.end(),
                     [&](const base::Cidr& block) { return block.contains(address); });
}

namespace {

bool is_port(std::string_view text) noexcept {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_zone(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || ((c | 0x20U) >= 'a' && (c | 0x20U) <= 'z') || c == '-' || c == '.' ||
           c == '_' || c == '~';
  });
}

// Returns the IPv4 address inside an IPv4-compatible IPv6 address ("::203.0.113.7", RFC 4291 §2.5.5.1).
// Returns any other address unchanged. Without this conversion, all IPv4-compatible addresses would be in one
// IPv6 network, and their clients would count as one. Shorter addresses that begin with "::", such as "::1",
// are not IPv4-compatible.
std::optional<base::IpAddress> without_compatible_form(std::optional<base::IpAddress> address) noexcept {
  if (!address) return address;
  const auto& bytes = address->bytes();
  const auto first = std::find_if(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte != 0; });
  if (first - bytes.begin() != 12) return address;
  const auto word = (std::uint32_t{bytes[12]} << 24) | (std::uint32_t{bytes[13]} << 16) |
                    (std::uint32_t{bytes[14]} << 8) | std::uint32_t{bytes[15]};
  return base::IpAddress::v4(word);
}

// Parses an address. An IPv6 address may have a zone (RFC 4007 §11): "fe80::1%eth0", or in URIs
// "fe80::1%25eth0" (RFC 6874). A zone names an interface of the proxy, so weir drops it.
std::optional<base::IpAddress> parse_address(std::string_view text) noexcept {
  const auto percent = text.find('%');
  if (percent == std::string_view::npos) return without_compatible_form(base::IpAddress::parse(text));
  auto zone = text.substr(percent + 1);
  if (zone.size() > 2 && zone.starts_with("25")) zone.remove_prefix(2);
  const auto address = text.substr(0, percent);
  if (!is_zone(zone) || address.find(':') == std::string_view::npos) return std::nullopt;
  return without_compatible_form(base::IpAddress::parse(address));
}

// Parses "203.0.113.7", "203.0.113.7:4711", "2001:db8::1", "[2001:db8::1]" or "[2001:db8::1]:4711". IPv6
// addresses may have a zone. A number with a leading zero ("203.0.113.007") is invalid: some programs read
// the number as octal, and some as decimal (RFC 6943 §3.1.1).
std::optional<base::IpAddress> parse_hop(std::string_view text) noexcept {
  if (!text.starts_with('[')) {
    const auto colon = text.find(':');
    const bool v4_with_port = colon != std::string_view::npos &&
                              text.find(':', colon + 1) == std::string_view::npos &&
                              is_port(text.substr(colon + 1));
    return parse_address(v4_with_port ? text.substr(0, colon) : text);
  }
  const auto bracket = text.find(']');
  if (bracket == std::string_view::npos) return std::nullopt;
  const auto behind = text.substr(bracket + 1);
  if (!behind.empty() && (behind.front() != ':' || !is_port(behind.substr(1)))) return std::nullopt;
  const auto inside = text.substr(1, bracket - 1);
  if (inside.find(':') == std::string_view::npos) return std::nullopt;
  return parse_address(inside);
}

// Returns the position of the last comma outside quotes (RFC 7239 §4), or npos. Searches from the right,
// because the client may have written the left part of the list.
std::size_t last_comma(std::string_view list) noexcept {
  bool quoted = false;
  for (std::size_t at = list.size(); at-- > 0;) {
    if (list[at] == ',' && !quoted) return at;
    if (list[at] != '"') continue;
    const auto before = list.substr(0, at);
    // The subtraction is also correct if `before` consists only of backslashes. find_last_not_of() then
    // returns npos, which equals -1.
    const auto slashes = before.size() - 1 - before.find_last_not_of('\\');
    if (!quoted || slashes % 2 == 0) quoted = !quoted;
  }
  return std::string_view::npos;
}

// Removes from the front of `rest` the text up to the next unquoted semicolon, and the semicolon itself.
// Returns the text.
std::string_view take_pair(std::string_view& rest) noexcept {
  bool quoted = false;
  std::size_t at = 0;
  for (; at < rest.size() && (quoted || rest[at] != ';'); ++at) {
    if (rest[at] == '"') quoted = !quoted;
    if (rest[at] == '\\' && quoted) ++at;
  }
  const auto pair = rest.substr(0, at);
  rest.remove_prefix(std::min(rest.size(), at + 1));
  return pair;
}

// Returns the address of the parameter `for` in an element of Forwarded (RFC 7239 §4): for=192.0.2.43,
// for="[2001:db8::17]:47011". Returns nullopt if the element has no address ("unknown", "_hidden").
std::optional<base::IpAddress> forwarded_hop(std::string_view element) noexcept {
  std::optional<base::IpAddress> found;
  bool said = false;
  while (!element.empty()) {
    const auto pair = trimmed(take_pair(element));
    const auto equals = pair.find('=');
    if (equals == std::string_view::npos || !http::equal_ignoring_case(pair.substr(0, equals), "for"))
      continue;
    if (std::exchange(said, true)) return std::nullopt;  // a repeated parameter is invalid
    auto node = pair.substr(equals + 1);
    if (node.size() >= 2 && node.front() == '"' && node.back() == '"') node = node.substr(1, node.size() - 2);
    const bool bare_v6 = !node.starts_with('[') && std::count(node.begin(), node.end(), ':') > 1;
    if (!bare_v6) found = parse_hop(node);
  }
  return found;
}

// The maximum number of elements to read, including empty ones. The maximum bounds the work, because each
// element is compared with every trusted block. Real chains of proxies are shorter.
constexpr unsigned kMostHops = 64;

// Walks one line of the field from right to left and sets `believed` to each address in turn. Returns true if
// the walk ends in this line: at an untrusted address, at an invalid element, or after kMostHops elements.
// Otherwise the walk continues with the previous line. `hops` counts the elements of all lines.
bool walk_line(std::span<const base::Cidr> trusted, AddressField field, std::string_view line,
               base::IpAddress& believed, unsigned& hops) noexcept {
  while (!line.empty()) {
    if (++hops > kMostHops) return true;
    const bool quotes = field == AddressField::Forwarded;
    const auto comma = quotes ? last_comma(line) : line.rfind(',');
    const bool leftmost = comma == std::string_view::npos;
    const auto element = trimmed(leftmost ? line : line.substr(comma + 1));
    line = leftmost ? std::string_view{} : line.substr(0, comma);
    if (element.empty()) continue;  // RFC 9110 §5.6.1.2: a list may have empty elements
    const auto address = quotes ? forwarded_hop(element) : parse_hop(element);
    if (!address) return true;
    believed = *address;
    if (!is_trusted(trusted, believed)) return true;
  }
  return false;
}

}  // namespace

base::IpAddress client_address(std::span<const base::Cidr> trusted, AddressField field,
                               const base::IpAddress& peer, const http::Fields& fields) noexcept {
  if (!is_trusted(trusted, peer)) return peer;
  base::IpAddress believed = peer;
  unsigned hops = 0;
  const auto wanted =
      field == AddressField::Forwarded ? http::FieldId::Forwarded : http::FieldId::XForwardedFor;
  for (auto line = fields.rbegin(); line != fields.rend(); ++line)
    if (line->id == wanted && walk_line(trusted, field, line->value, believed, hops)) break;
  return believed;
}

}  // namespace weir::policy
