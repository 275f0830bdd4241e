// How a rule distinguishes clients: the attributes of a request that form the key, such as its address or API
// key.
#pragma once

#include "weir/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// Add new attributes only at the end. Names in Redis depend on the numbers of the enumerators and must be the
// same in all versions of weir.
enum class Attribute : std::uint8_t {
  Ip,
  ApiKey,
  User,
  Org,
  Tier,
  Service,
  Device,
  Route,
  Host,
  Method,
  Path,
  Header,  // has a name (AttributeRef::name)
  Query,   // has a name (AttributeRef::name)
  Cookie,  // has a name (AttributeRef::name)
  Country,
  Claim,  // has a name (AttributeRef::name)
  CertSubject,
  Upstream,
  PathSegment,  // AttributeRef::name is a number: "2" is the second segment
  Json,         // AttributeRef::name is a JSON pointer
  Form,         // AttributeRef::name is the name of a form field
  City,
  Region,
  Asn,
  Descriptor,  // AttributeRef::name is the key of a descriptor's entry (DescriptorEntry::key)
  Domain,
};

struct AttributeRef {
  Attribute kind = Attribute::Ip;
  // The name of the header (lower case), query parameter, cookie, claim, form field or entry of a descriptor
  // (all case-sensitive); the JSON pointer; or the number of the path segment.
  std::string name;
  friend bool operator==(const AttributeRef&, const AttributeRef&) = default;
};

// One part of a key, as a list of alternatives ("api_key|ip"). The first alternative that the request has
// gives the value.
using KeyPart = std::vector<AttributeRef>;
// All parts of a key. A pattern without parts is one key for all clients.
using KeyPattern = std::vector<KeyPart>;

// Returns true if the attribute is read from the request's body.
[[nodiscard]] constexpr bool is_in_body(Attribute kind) noexcept {
  return kind == Attribute::Json || kind == Attribute::Form;
}
// Returns true if a part of the key is, or may be, read from the request's body.
[[nodiscard]] bool reads_body(const KeyPattern& pattern) noexcept;
// Returns true for a JSON pointer (RFC 6901 §3) of at most 128 characters that can appear in a header without
// escapes.
[[nodiscard]] bool is_json_pointer(std::string_view text) noexcept;

// Parses "ip", "api_key|ip" or "header:X-Tenant". The error quotes an unknown word and suggests the nearest
// attribute.
[[nodiscard]] base::Result<KeyPart> parse_key_part(std::string_view text);
[[nodiscard]] std::string describe(const AttributeRef& attribute);
[[nodiscard]] std::string describe(const KeyPattern& pattern);
// Returns true if all clients share one key, because the pattern has no part, or only routes and upstreams.
// Returns false for hosts, methods and paths, because a client chooses them and could have any number of
// keys.
[[nodiscard]] bool names_nobody(const KeyPattern& pattern) noexcept;

}  // namespace weir::policy
