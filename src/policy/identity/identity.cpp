#include "weir/policy/identity.hpp"

#include "policy/identity/consistent_value.hpp"
#include "policy/identity/embedded_ipv4.hpp"
#include "policy/rules/pieces.hpp"

#include <utility>

namespace weir::policy {

namespace {

// Returns the token of "Bearer TOKEN". The scheme ignores case (RFC 9110 §11.1). A tab after the scheme is
// allowed, because some servers split at any white space. If the request has a second Authorization field
// with another scheme, the request is ambiguous, because the upstream might use that field.
std::optional<std::string_view> bearer(const http::Fields& fields) noexcept {
  constexpr std::string_view kScheme = "Bearer";
  ConsistentValue authorization;
  for (const auto& field : fields)
    if (field.id == http::FieldId::Authorization) authorization.add(field.value);
  const auto value = authorization.value();
  if (!value) return std::nullopt;
  if (!http::equal_ignoring_case(value->substr(0, kScheme.size()), kScheme)) return std::string_view{};
  const auto rest = value->substr(kScheme.size());
  if (!rest.starts_with(' ') && !rest.starts_with('\t')) return std::string_view{};
  return trimmed(rest);
}

// Reads an attribute from its source. Returns nullopt if the request has the attribute several times with
// different values. A query or cookie value that needed decoding is stored in `decoded`. Does not read
// claims: verify_token() reads them later.
std::optional<std::string_view> read(const Source& source, const http::RequestHead& head,
                                     std::string& decoded) {
  switch (source.kind) {
    case Source::Kind::None:
    case Source::Kind::Claim:
      break;
    case Source::Kind::Header:
      return value_in_header(head, source.name);
    case Source::Kind::Query:
      return value_in_query(head, source.name);
    case Source::Kind::Cookie:
      return value_in_cookies(head, source.name, decoded);
    case Source::Kind::Bearer:
      return bearer(head.fields);
  }
  return std::string_view{};
}

// Returns `value`, the value of an attribute. If `value` is nullopt, because the request has differing
// values, returns an empty text. In that case also stores `ambiguity`, a sentence, in `client`, unless an
// earlier attribute has stored its sentence there.
std::string_view resolve(std::optional<std::string_view> value, std::string_view ambiguity,
                         ClientIdentity& client) noexcept {
  if (!value && client.ambiguity.empty()) client.ambiguity = ambiguity;
  return value.value_or(std::string_view{});
}

// Reads all attributes from the request itself. verify_token() reads claims later.
void read_attributes(const ClientSettings& settings, const http::RequestHead& head, Credentials& credentials,
                     ClientIdentity& client) {
  auto decoded = credentials.decoded.begin();
  const auto from = [&](const Source& source, std::string_view ambiguity) {
    return resolve(read(source, head, *decoded++), ambiguity, client);
  };
  const auto vouched = [&](const Source& source, std::string_view ambiguity) {
    return client.peer_trusted ? from(source, ambiguity) : std::string_view{};
  };
  client.api_key = from(settings.api_key, "the request carries more than one API key");
  client.device = from(settings.device, "the request names more than one device");
  client.user = vouched(settings.user, "the request names more than one user");
  client.org = vouched(settings.org, "the request names more than one organisation");
  client.service = vouched(settings.service, "the request names more than one service");
}

// Looks the API key up in the keys file and applies `unknown_keys`.
void look_up(const ClientSettings& settings, ClientIdentity& client) {
  if (const ApiKeyOwner* owner = settings.keys->find(client.api_key)) {
    client.key_vouched = true;
    client.tier = owner->tier;
    if (!owner->user.empty()) client.user = owner->user;
    if (!owner->org.empty()) client.org = owner->org;
    if (!owner->service.empty()) client.service = owner->service;
    return;
  }
  if (settings.unknown_keys == UnknownKeys::Accept) return;
  client.key_rejected = settings.unknown_keys == UnknownKeys::Reject;
  client.api_key = {};
}

}  // namespace

ClientIdentity identify(const ClientSettings& settings, const base::IpAddress& peer,
                        const http::RequestHead& head, Credentials& credentials) {
  ClientIdentity client;
  client.source = &settings;
  client.peer = peer;
  client.peer_trusted = is_trusted(settings, peer);
  client.address = client.peer_trusted ? forwarded_client(settings, peer, head.fields) : peer;
  client.network = network_of(settings, client.address);
  client.certificate_subject = credentials.certificate_subject;
  client.certificate = credentials.certificate;
  if (settings.geo) {
    const auto address = embedded_ipv4(client.address).value_or(client.address);
    const auto location = settings.geo->find(address, credentials.location);
    client.country = location.country;
    client.city = location.city;
    client.region = location.region;
    client.asn = location.asn;
  }
  if (settings.tokens)
    client.token = resolve(bearer(head.fields), "the request carries more than one bearer token", client);
  read_attributes(settings, head, credentials, client);
  if (settings.keys && !client.api_key.empty()) look_up(settings, client);
  return client;
}

// Verifies the client's token and takes the identity from its claims. Returns why the token is not valid.
// Returns nullopt if the token is valid, or if the client has no token to verify. Accepts claims from any
// peer, because the issuer of the token signed them.
std::optional<TokenFault> verify_token(ClientIdentity& client, Credentials& credentials) {
  if (client.token.empty()) return std::nullopt;
  const auto& settings = *client.source;
  const auto token = std::exchange(client.token, std::string_view{});
  client.token_fault =
      settings.tokens->verify(token, credentials.machine_now, credentials.claims, credentials.keys_current);
  if (client.token_fault) return client.token_fault;
  client.claims = &credentials.claims;
  const auto take = [&](const Source& source, std::string_view& attribute) {
    if (source.kind == Source::Kind::Claim && attribute.empty())
      attribute = credentials.claims.find(source.name);
  };
  take(settings.user, client.user);
  take(settings.org, client.org);
  take(settings.service, client.service);
  take(settings.device, client.device);
  take(settings.tier, client.tier);
  return std::nullopt;
}

bool is_trusted(const ClientSettings& settings, const base::IpAddress& address) noexcept {
  return is_trusted(settings.trusted_proxies, address);
}

base::IpAddress network_of(const ClientSettings& settings, const base::IpAddress& address) noexcept {
  if (address.is_v4() || is_single_host(address)) return address;
  return embedded_ipv4(address).value_or(address.masked(settings.ipv6_prefix));
}

base::IpAddress forwarded_client(const ClientSettings& settings, const base::IpAddress& peer,
                                 const http::Fields& fields) noexcept {
  return client_address(settings.trusted_proxies, settings.address_field, peer, fields);
}

}  // namespace weir::policy
