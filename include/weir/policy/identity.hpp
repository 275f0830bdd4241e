// Who is asking: the attributes of a client, and where each is read from.
//
// Pure: from a parsed head, the peer's address and what else a client shows to a `ClientIdentity` whose views
// live as long as the head's buffer, the settings and the `Credentials`.
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/base/time.hpp"
#include "weir/http/field_names.hpp"
#include "weir/http/head.hpp"
#include "weir/policy/client_address.hpp"
#include "weir/policy/countries.hpp"
#include "weir/policy/key_ring.hpp"
#include "weir/policy/token.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// Where a credential or attribute is found in a request. What is said several times, in lines of a header,
// parameters of the query or cookies, has to be said alike: else the request is ambiguous, for which of them
// the upstream would believe is not for us to guess. As in a rule's key, the query is percent-decoded, '+'
// for a blank, and cookies are decoded and without the quotes around them. A claim is one of the verified
// bearer token.
struct Source {
  enum class Kind : std::uint8_t { None, Header, Query, Cookie, Bearer, Claim };
  Kind kind = Kind::None;
  std::string name;  // unused for Bearer (Authorization: Bearer …, RFC 6750 §2.1)
};

enum class UnknownKeys : std::uint8_t { Anonymous, Reject, Accept };

// [client] as configured. Immutable.
struct ClientSettings {
  std::vector<base::Cidr> trusted_proxies;
  AddressField address_field = AddressField::XForwardedFor;
  int ipv6_prefix = 64;  // 1 to 128
  Source api_key{Source::Kind::Header, "X-API-Key"};
  Source user;  // user, org and service are believed from trusted proxies alone, but for claims
  Source org;
  Source service;
  Source device;                // from anyone
  std::optional<KeyRing> keys;  // the keys file, where one is configured
  UnknownKeys unknown_keys = UnknownKeys::Anonymous;
  http::FieldNames trusted_fields;  // forwarded from trusted peers alone
  http::ParameterBounds bounds{};   // on what of a request is read by name
  // Absent unless something asks for claims or countries, so that no other request pays for them.
  std::optional<TokenVerifier> tokens;
  std::optional<Countries> countries;
};

// What a client shows beside its request, and room for what is found in it. Belongs to one exchange.
struct Credentials {
  base::TimePoint now{};                 // by weir's own clock, which limits go by
  base::TimePoint machine_now{};         // by the machine's clock, which the dates of tokens go by
  std::string_view certificate_subject;  // of the client's TLS certificate; empty: none was shown
  Claims claims;                         // of the verified token
  std::array<std::string, 5> decoded;    // values of query and cookies, where they came encoded
};

struct ClientIdentity {
  base::IpAddress peer;     // who opened the connection
  base::IpAddress address;  // who is asking: the peer, or what trusted proxies say
  base::IpAddress network;  // `address` with IPv6 cut to the configured prefix: what `ip` keys are made of
  bool peer_trusted = false;
  bool key_vouched = false;   // the keys file has `api_key`; else it is whatever a client writes
  bool key_rejected = false;  // an unknown API key came and unknown_keys = "reject"; api_key is then empty
  // Which attribute is said in several ways that differ, as a sentence for the client; empty: none. Such a
  // request is to be refused; the attribute is empty.
  std::string_view ambiguity;
  // Empty: absent. What the keys file says of a key's holder goes before what the request says.
  std::string_view api_key, user, org, service, device, tier;
  std::string_view country;              // of `address`: "CH"
  std::string_view certificate_subject;  // as Credentials::certificate_subject
  // A bearer token that nobody has verified yet; empty: there is none, or it was verified. Until then what
  // would be read from its claims is absent.
  std::string_view token;
  const Claims* claims = nullptr;          // of a token that is genuine and in force; null: there is none
  std::optional<TokenFault> token_fault;   // why the token was not accepted
  const ClientSettings* source = nullptr;  // by which all this was read; null: by no settings
};

[[nodiscard]] bool is_trusted(const ClientSettings& settings, const base::IpAddress& address) noexcept;
// The address, or the block that stands for it: IPv6 cut to the configured prefix.
[[nodiscard]] base::IpAddress network_of(const ClientSettings& settings,
                                         const base::IpAddress& address) noexcept;

// `peer`: the address at the other end of the connection (or what PROXY said).
[[nodiscard]] ClientIdentity identify(const ClientSettings& settings, const base::IpAddress& peer,
                                      const http::RequestHead& head, Credentials& credentials);

// Verifies the token if nobody has yet, so a request pays for it once at most, and reads the attributes that
// are claims; what the keys file says of a key's holder stands. Returns the fault that was found by this very
// call. REQUIRES the credentials that the client was identified with.
std::optional<TokenFault> verify_token(ClientIdentity& client, Credentials& credentials);

// client_address() by these settings.
[[nodiscard]] base::IpAddress forwarded_client(const ClientSettings& settings, const base::IpAddress& peer,
                                               const http::Fields& fields) noexcept;

}  // namespace weir::policy
