// What a client's name in a rule was made of, for people: to show it, and to find a key by what they write.
// The digests come of the same code as those of requests (src/policy/identity/name_key.cpp). Pure.
#pragma once

#include "weir/base/result.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/policy/identity.hpp"
#include "weir/policy/rule.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// One part of a key: the alternative that was present, and what it said.
struct KeyValue {
  AttributeRef attribute;
  std::string value;  // of `ip` the 16 bytes of the network
};

// Returns true if the request says the attribute, in one way.
[[nodiscard]] bool has_value(const AttributeRef& attribute, const Request& request);

// Of a request that the rule has a name for: a value for each part, in order.
[[nodiscard]] std::vector<KeyValue> key_values(const Rule& rule, const Request& request);

// The values that somebody writes, one text for each part and as describe() does: "acme" is the part's first
// alternative, "203.0.113.7" its address if it may be one, "ip:203.0.113.7" or "header:x-tenant:acme" says
// which. An error says what the rule's key is made of.
[[nodiscard]] base::Result<std::vector<KeyValue>> read_key_values(const Rule& rule,
                                                                  const ClientSettings& settings,
                                                                  std::span<const std::string> texts);

// As people read it, in UTF-8 (policy/octet_text.hpp): "user:ada", "ip:203.0.113.7"; of what authenticates
// somebody a digest, "api_key:sha256:9f86d081884c7d65".
[[nodiscard]] std::string describe(const KeyValue& value);

// Every limiter that a rule may apply, but for that of messages: its own, its overrides', its tiers', and
// the elastic ones.
[[nodiscard]] std::vector<AppliedLimiter> limiters_of(const Rule& rule);

// As name_key() and place_of_client(). REQUIRES a value for each part of the rule's key, and that `applied`
// is one of the rule's.
[[nodiscard]] limit::Key name_values(const Rule& rule, const AppliedLimiter& applied,
                                     std::span<const KeyValue> values, base::SipKey key);
// Returns the name under limiter `to` of the client whose name under limiter `from` is `name`. Both limiters
// are the rule's own. Names in a Redis Cluster keep their first 16 bits apart (limit/place.hpp).
[[nodiscard]] limit::Key name_under(const Rule& rule, const AppliedLimiter& from, const AppliedLimiter& to,
                                    const limit::Key& name);
[[nodiscard]] limit::Place place_of_values(const Rule& rule, std::span<const KeyValue> values,
                                           base::SipKey key);

}  // namespace weir::policy
