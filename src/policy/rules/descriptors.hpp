// Selects the descriptors of a question to which a rule applies.
//
// A rule applies to an exact descriptor (Descriptor::exact) only if the descriptor has exactly the keys that
// the rule names. Envoy's own rate limit service chooses limits in this way. If an asker sends both (user)
// and (user, path), a rule for `user` then counts the question once, not twice.
#pragma once

#include "weir/policy/rule.hpp"

#include <algorithm>
#include <string_view>

namespace weir::policy {

// Returns true if the rule may apply to the descriptor, judged by its keys. REQUIRES: the rule has
// descriptor_keys.
[[nodiscard]] bool may_apply(const Rule& rule, const Descriptor& descriptor);

// Returns the request with this descriptor selected. The descriptor's own cost replaces the stated cost.
[[nodiscard]] inline Request with_descriptor(const Request& request, const Descriptor& descriptor) {
  auto one = request;
  one.descriptor = &descriptor;
  if (descriptor.cost) one.stated_cost = descriptor.cost;
  return one;
}

// Returns the value in the selected descriptor. If none is selected, returns the value in the first
// descriptor that has one; empty if none has.
[[nodiscard]] inline std::string_view value_in_descriptors(std::string_view key,
                                                           const Request& request) noexcept {
  if (request.descriptor != nullptr) return request.descriptor->value_of(key);
  for (const auto& descriptor : request.descriptors)
    if (const auto value = descriptor.value_of(key); !value.empty()) return value;
  return {};
}

// Returns true if `test` returns true for the request as the rule sees it: for the request itself, or for one
// of the descriptors to which the rule may apply.
template <class Test>
[[nodiscard]] bool any_descriptor(const Rule& rule, const Request& request, Test test) {
  if (rule.descriptor_keys.empty() || request.descriptor != nullptr) [[likely]]
    return test(request);
  return std::any_of(request.descriptors.begin(), request.descriptors.end(),
                     [&](const Descriptor& descriptor) {
                       return may_apply(rule, descriptor) && test(with_descriptor(request, descriptor));
                     });
}

}  // namespace weir::policy
