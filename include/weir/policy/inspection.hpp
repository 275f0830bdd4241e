// Decides which requests need their bodies before weir can check the rules. Pure.
#pragma once

#include "weir/policy/body_values.hpp"
#include "weir/policy/rule_list.hpp"

#include <cstdint>
#include <span>

namespace weir::policy {

// Returns true if a body is compressed or otherwise encoded (Content-Encoding), so that weir cannot read it.
[[nodiscard]] bool is_coded(const http::Fields& fields) noexcept;

// Returns true if the request has a body.
[[nodiscard]] bool has_body(const Request& request) noexcept;

// Returns true if the rule needs the body of this request. This is so in two cases:
// * The head does not decide whether the rule applies, which limiter or key of the rule applies, or what the
//   request costs.
// * A value in the query decides the key, but the body may have another value for the key.
[[nodiscard]] bool asks_for_body(const Rule& rule, const Request& request);

// Returns the JSON pointers and form fields that the keys and conditions of the rules read.
[[nodiscard]] BodyNames body_names(std::span<const Rule> rules);

// Returns how many bytes of this request's body the rules read; 0 if no rule needs the body.
[[nodiscard]] std::uint64_t wanted_body(RuleList rules, const Request& request);

// Returns the same number as wanted_body(), but ignores rules in shadow mode. A body that only shadow rules
// need may stay unread, because a shadow rule does not apply if weir cannot read the body.
[[nodiscard]] std::uint64_t body_wanted_to_enforce(RuleList rules, const Request& request);

// Returns why weir cannot read the body that the rule needs. Returns Whole if it can, or if the rule needs no
// body.
[[nodiscard]] RequestBody::State hidden_body(const Rule& rule, const Request& request);

}  // namespace weir::policy
