// Which requests have to show their bodies before they can be decided on. Pure.
#pragma once

#include "weir/policy/rule.hpp"

#include <cstdint>
#include <span>

namespace weir::policy {

// Whether a body is compressed or so (Content-Encoding), and cannot be read here.
[[nodiscard]] bool is_coded(const http::Fields& fields) noexcept;

// Whether the rule needs the body of this request: its head alone leaves open whether the rule applies, by
// which of its limits, or at what cost. A rule that its head rules out asks for nothing.
[[nodiscard]] bool asks_for_body(const Rule& rule, const Request& request);

// To how many bytes the rules read the body of this request; 0: no rule asks for it.
[[nodiscard]] std::uint64_t wanted_body(std::span<const Rule> rules, const Request& request);

// What keeps the rule from reading the body that it asks for; Whole: nothing, or it does not ask.
[[nodiscard]] RequestBody::State hidden_body(const Rule& rule, const Request& request);

}  // namespace weir::policy
