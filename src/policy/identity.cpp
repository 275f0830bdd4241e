#include "weir/policy/identity.hpp"

#include "policy/pieces.hpp"
#include "policy/said.hpp"

#include <algorithm>

namespace weir::policy {

namespace {

// "Bearer TOKEN"; the scheme is compared without case (RFC 9110 §11.1). Beside it no other scheme may stand:
// the upstream might go by that one.
std::optional<std::string_view> bearer(const http::Fields& fields) noexcept {
  constexpr std::string_view kScheme = "Bearer ";
  Said said;
  for (const auto& field : fields)
    if (field.id == http::FieldId::Authorization) said.add(field.value);
  const auto value = said.value();
  if (!value) return std::nullopt;
  if (!http::equal_ignoring_case(value->substr(0, kScheme.size()), kScheme)) return std::string_view{};
  return trimmed(value->substr(kScheme.size()));
}

// nullopt: it is said in ways that differ. `decoded` holds the value of a query parameter where that came
// encoded.
std::optional<std::string_view> read(const Source& source, const http::RequestHead& head,
                                     const Claims* claims, std::string& decoded) {
  switch (source.kind) {
    case Source::Kind::None:
      break;
    case Source::Kind::Header:
      return said_in_header(head.fields, source.name);
    case Source::Kind::Query:
      return said_in_query(head.query, source.name, http::Plus::Itself, decoded);
    case Source::Kind::Cookie:
      return said_in_cookies(head.fields, source.name);
    case Source::Kind::Bearer:
      return bearer(head.fields);
    case Source::Kind::Claim:
      if (claims != nullptr) return claims->find(source.name);
      break;
  }
  return std::string_view{};
}

// Keeps the first ambiguity that is met.
std::string_view resolve(std::optional<std::string_view> said, std::string_view ambiguity,
                         ClientIdentity& client) noexcept {
  if (!said && client.ambiguity.empty()) client.ambiguity = ambiguity;
  return said.value_or(std::string_view{});
}

void check_token(const ClientSettings& settings, const http::Fields& fields, Credentials& credentials,
                 ClientIdentity& client) {
  const auto token = resolve(bearer(fields), "the request carries more than one bearer token", client);
  if (settings.tokens->verify(token, credentials.now, credentials.claims))
    client.claims = &credentials.claims;
}

// All that the request itself says of its client.
void read_attributes(const ClientSettings& settings, const http::RequestHead& head, Credentials& credentials,
                     ClientIdentity& client) {
  auto decoded = credentials.decoded.begin();
  const auto from = [&](const Source& source, std::string_view ambiguity) {
    return resolve(read(source, head, client.claims, *decoded++), ambiguity, client);
  };
  // What a header says is anybody's word, a verified claim is its issuer's.
  const auto vouched = [&](const Source& source, std::string_view ambiguity) {
    const bool believed = client.peer_trusted || source.kind == Source::Kind::Claim;
    return believed ? from(source, ambiguity) : std::string_view{};
  };
  client.api_key = from(settings.api_key, "the request carries more than one API key");
  client.device = from(settings.device, "the request names more than one device");
  client.user = vouched(settings.user, "the request names more than one user");
  client.org = vouched(settings.org, "the request names more than one organisation");
  client.service = vouched(settings.service, "the request names more than one service");
}

bool is_trusted(const ClientSettings& settings, const base::IpAddress& address) noexcept {
  return std::any_of(settings.trusted_proxies.begin(), settings.trusted_proxies.end(),
                     [&](const base::Cidr& block) { return block.contains(address); });
}

bool is_port(std::string_view text) noexcept {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "203.0.113.7", "203.0.113.7:4711", "2001:db8::1", "[2001:db8::1]" or "[2001:db8::1]:4711".
std::optional<base::IpAddress> parse_hop(std::string_view text) noexcept {
  if (!text.starts_with('[')) {
    const auto colon = text.find(':');
    const bool v4_with_port = colon != std::string_view::npos &&
                              text.find(':', colon + 1) == std::string_view::npos &&
                              is_port(text.substr(colon + 1));
    return base::IpAddress::parse(v4_with_port ? text.substr(0, colon) : text);
  }
  const auto bracket = text.find(']');
  if (bracket == std::string_view::npos) return std::nullopt;
  const auto behind = text.substr(bracket + 1);
  if (!behind.empty() && (behind.front() != ':' || !is_port(behind.substr(1)))) return std::nullopt;
  const auto inside = text.substr(1, bracket - 1);
  if (inside.find(':') == std::string_view::npos) return std::nullopt;
  return base::IpAddress::parse(inside);
}

// Walks one line from its right end. `believed` moves to each address met; true when the walk is over.
bool walk_line(const ClientSettings& settings, std::string_view line, base::IpAddress& believed) noexcept {
  while (!line.empty()) {
    const auto comma = line.rfind(',');
    const bool leftmost = comma == std::string_view::npos;
    const auto element = trimmed(leftmost ? line : line.substr(comma + 1));
    line = leftmost ? std::string_view{} : line.substr(0, comma);
    if (element.empty()) continue;  // RFC 9110 §5.6.1.2: empty elements are not there
    const auto address = parse_hop(element);
    if (!address) return true;
    believed = *address;
    if (!is_trusted(settings, believed)) return true;
  }
  return false;
}

// What the keys file says of the key, or what is done with one that it does not know.
void look_up(const ClientSettings& settings, ClientIdentity& client) {
  if (const KeyHolder* holder = settings.keys->find(client.api_key)) {
    client.tier = holder->tier;
    if (!holder->user.empty()) client.user = holder->user;
    if (!holder->org.empty()) client.org = holder->org;
    if (!holder->service.empty()) client.service = holder->service;
    return;
  }
  if (settings.unknown_keys == UnknownKeys::Accept) return;
  client.key_rejected = settings.unknown_keys == UnknownKeys::Reject;
  client.api_key = {};
}

base::IpAddress walk(const ClientSettings& settings, const base::IpAddress& trusted_peer,
                     const http::Fields& fields) noexcept {
  base::IpAddress believed = trusted_peer;
  for (auto field = fields.rbegin(); field != fields.rend(); ++field)
    if (field->id == http::FieldId::XForwardedFor && walk_line(settings, field->value, believed)) break;
  return believed;
}

}  // namespace

ClientIdentity identify(const ClientSettings& settings, const base::IpAddress& peer,
                        const http::RequestHead& head, Credentials& credentials) {
  ClientIdentity client;
  client.peer = peer;
  client.peer_trusted = is_trusted(settings, peer);
  client.address = client.peer_trusted ? walk(settings, peer, head.fields) : peer;
  client.network = client.address.is_v4() ? client.address : client.address.masked(settings.ipv6_prefix);
  client.certificate_subject = credentials.certificate_subject;
  if (settings.countries) client.country = settings.countries->of(client.address);
  if (settings.tokens) check_token(settings, head.fields, credentials, client);
  read_attributes(settings, head, credentials, client);
  if (settings.keys && !client.api_key.empty()) look_up(settings, client);
  return client;
}

base::IpAddress forwarded_client(const ClientSettings& settings, const base::IpAddress& peer,
                                 const http::Fields& fields) noexcept {
  return is_trusted(settings, peer) ? walk(settings, peer, fields) : peer;
}

}  // namespace weir::policy
