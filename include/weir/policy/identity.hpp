// Identifies the client of a request: finds the client's attributes. The configuration says from which part
// of the request each attribute is read.
//
// Pure. Reads a parsed head, the peer's address and the client's other credentials. The views of a
// `ClientIdentity` live as long as the head's buffer, the settings and the `Credentials`.
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/base/time.hpp"
#include "weir/http/field_names.hpp"
#include "weir/http/head.hpp"
#include "weir/policy/api_keys.hpp"
#include "weir/policy/identity/client_address.hpp"
#include "weir/policy/identity/geo_databases.hpp"
#include "weir/policy/token.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// The part of a request from which an attribute is read. Repeated header lines, query parameters or cookies
// must have equal values. Otherwise the request is ambiguous, because weir cannot know which value the
// upstream would use. Query values are percent-decoded, with '+' as a blank. Cookies are decoded, and quotes
// are removed. Values in the keys of rules are decoded in the same way. A claim comes from the verified
// bearer token.
struct Source {
  enum class Kind : std::uint8_t { None, Header, Query, Cookie, Bearer, Claim };
  Kind kind = Kind::None;
  std::string name;  // name of the header, parameter, cookie or claim; unused for Bearer
};

enum class UnknownKeys : std::uint8_t { Anonymous, Reject, Accept };

// The settings of the [client] table in the configuration. Immutable.
struct ClientSettings {
  std::vector<base::Cidr> trusted_proxies;
  AddressField address_field = AddressField::XForwardedFor;
  int ipv6_prefix = 64;  // in bits, 1 to 128
  Source api_key{Source::Kind::Header, "X-API-Key"};
  Source user;  // user, org and service are read from trusted peers only, unless they are claims
  Source org;
  Source service;
  Source device;                // device is read from any peer
  Source tier;                  // a claim, or none; a tier in the keys file takes precedence
  std::optional<ApiKeys> keys;  // the keys file, if one is configured
  UnknownKeys unknown_keys = UnknownKeys::Anonymous;
  http::FieldNames trusted_fields;  // header fields that only trusted peers may send
  http::ParameterBounds bounds{};   // bounds on the number of parameters, cookies and repeats that weir reads
  // `tokens` is set only if the configuration needs claims, and `geo` only if the configuration needs places,
  // because each of them costs time in every request.
  std::optional<TokenVerifier> tokens;
  std::optional<GeoDatabases> geo;
};

// The client's credentials outside the request's head, and storage for decoded values. Belongs to one
// exchange.
struct Credentials {
  base::TimePoint now{};                 // the time by weir's own clock, for limits
  base::TimePoint machine_now{};         // the time by the machine's clock, for the dates in tokens
  std::string_view certificate_subject;  // subject of the client's TLS certificate; empty: no certificate
  std::string_view certificate{};        // the same certificate as a value of Client-Cert (RFC 9440)
  Claims claims;                         // claims of the verified token
  // True: weir has fetched the keys of the token's issuer since the request arrived (TokenVerifier::verify).
  bool keys_current = false;
  GeoTexts location;                   // storage for the texts of the client's place (country, city, …)
  std::array<std::string, 5> decoded;  // storage for query and cookie values that needed decoding
};

struct ClientIdentity {
  base::IpAddress peer;     // the other end of the connection
  base::IpAddress address;  // the client's address: the peer's, or the address that trusted proxies report
  base::IpAddress network;  // `address`, with IPv6 cut to the configured prefix; used by `ip` keys
  bool peer_trusted = false;
  bool key_vouched = false;   // true: the keys file has `api_key`; false: the client may have invented it
  bool key_rejected = false;  // true: the API key is unknown, unknown_keys is "reject", and api_key is empty
  // If the request has several different values for an attribute: a sentence that tells the client so. weir
  // must then reject the request, and the attribute is empty.
  std::string_view ambiguity;
  // Empty if the request does not have the attribute. If the keys file has the API key, the entry of the key
  // overrides the request's own user, org, service and tier.
  std::string_view api_key, user, org, service, device, tier;
  std::string_view country;              // country of `address`: "CH"
  std::string_view city;                 // city of `address`, in English: "Geneva"
  std::string_view region;               // region of `address` (ISO 3166-2): "CH-GE"
  std::string_view asn;                  // autonomous system of `address`: "AS3303"
  std::string_view certificate_subject;  // like Credentials::certificate_subject
  std::string_view certificate;          // like Credentials::certificate; set only if a route uses it
  // A bearer token that is not verified yet; empty if the request has no token or the token was verified.
  // While the token is unverified, the attributes that are claims are empty.
  std::string_view token;
  const Claims* claims = nullptr;          // claims of a valid token; null: no valid token
  std::optional<TokenFault> token_fault;   // why the token is invalid
  const ClientSettings* source = nullptr;  // the settings that identify() used; null: none
};

// Returns true if the client's tier may come from its token, which is not verified yet.
[[nodiscard]] inline bool awaits_tier(const ClientIdentity& client) noexcept {
  return !client.token.empty() && client.tier.empty() && client.source != nullptr &&
         client.source->tier.kind == Source::Kind::Claim;
}

[[nodiscard]] bool is_trusted(const ClientSettings& settings, const base::IpAddress& address) noexcept;
// Returns an IPv4 address unchanged. For an IPv6 address, returns its network with the configured prefix
// length.
[[nodiscard]] base::IpAddress network_of(const ClientSettings& settings,
                                         const base::IpAddress& address) noexcept;

// Identifies the client. `peer`: the other end of the connection, or the source address in the PROXY header.
[[nodiscard]] ClientIdentity identify(const ClientSettings& settings, const base::IpAddress& peer,
                                      const http::RequestHead& head, Credentials& credentials);

// Verifies the token, unless it was verified before, and reads the attributes that are claims. Attributes
// that come from the keys file stay unchanged. Returns a fault only if this call found the fault, so that
// callers count each fault once. REQUIRES: `credentials` are those that identify() used.
std::optional<TokenFault> verify_token(ClientIdentity& client, Credentials& credentials);

// Calls client_address() with the trusted proxies and the address field of `settings`.
[[nodiscard]] base::IpAddress forwarded_client(const ClientSettings& settings, const base::IpAddress& peer,
                                               const http::Fields& fields) noexcept;

}  // namespace weir::policy
