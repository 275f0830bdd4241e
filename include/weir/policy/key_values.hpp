// Shows the values in a client's key to administrators, and finds a key by values that an administrator
// enters. Computes digests with the same code as for requests (src/policy/identity/name_key.cpp). Pure.
#pragma once

#include "weir/base/result.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/policy/identity.hpp"
#include "weir/policy/rule.hpp"
#include "weir/policy/rules/applied_limiter.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// One part of a key: the first alternative that the request has, and its value.
struct KeyValue {
  AttributeRef attribute;
  std::string value;  // for `ip`: the 16 bytes of the network's address
};

// Returns true if the request has exactly one value of the attribute.
[[nodiscard]] bool has_value(const AttributeRef& attribute, const Request& request);

// Returns a segment of a path; empty if the path has fewer segments. "/a/b" has the segments "a" and "b", and
// "/a/" has "a" only. `number`: the position of the segment, from "1". REQUIRES: `number` is the name of an
// Attribute::PathSegment.
[[nodiscard]] std::string_view path_segment(std::string_view path, std::string_view number) noexcept;

// Returns a value for each part of the key, in order. REQUIRES: name_key() returns a key for the request.
[[nodiscard]] std::vector<KeyValue> key_values(const Rule& rule, const Request& request);

// Parses values that a person enters, one text for each part of the key. "acme" is a value of the part's
// first alternative. "203.0.113.7" is an address if the part has the alternative `ip`. "ip:203.0.113.7" and
// "header:x-tenant:acme" name the alternative. The error lists the parts of the rule's key.
[[nodiscard]] base::Result<std::vector<KeyValue>> read_key_values(const Rule& rule,
                                                                  const ClientSettings& settings,
                                                                  std::span<const std::string> texts);

// Returns true if the name of a header, parameter or descriptor's key suggests a secret, such as "token".
[[nodiscard]] bool is_called_secret(std::string_view name) noexcept;

// Returns the value in UTF-8 for people (policy/octet_text.hpp): "user:ada" or "ip:203.0.113.7". For a
// secret, returns a digest: "api_key:sha256:9f86d081884c7d65".
[[nodiscard]] std::string describe(const KeyValue& value);

// Returns every limiter of a rule except the limiter of messages: the rule's own limiter, those of overrides
// and tiers, and elastic limiters.
[[nodiscard]] std::vector<AppliedLimiter> limiters_of(const Rule& rule);

// Returns what name_key() returns for a request whose key has these values. REQUIRES: one value for each part
// of the rule's key; `applied` is one of the rule's limiters.
[[nodiscard]] limit::Key name_values(const Rule& rule, const AppliedLimiter& applied,
                                     std::span<const KeyValue> values, base::SipKey key);
// Converts a client's name under the limiter `from` into the client's name under the limiter `to`. Both
// limiters belong to this rule. In a Redis Cluster the first 16 bits of a name stay the same
// (limit/slot_hash.hpp).
[[nodiscard]] limit::Key name_under(const Rule& rule, const AppliedLimiter& from, const AppliedLimiter& to,
                                    const limit::Key& name);
// Returns what slot_hash_of_client() returns for a request whose key has these values. REQUIRES: one value
// for each part of the key.
[[nodiscard]] limit::SlotHash slot_hash_of_values(const Rule& rule, std::span<const KeyValue> values,
                                                  base::SipKey key);

}  // namespace weir::policy
