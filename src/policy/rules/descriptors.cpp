#include "policy/rules/descriptors.hpp"

#include <algorithm>

namespace weir::policy {

namespace {

bool is_descriptor(const AttributeRef& attribute) noexcept {
  return attribute.kind == Attribute::Descriptor;
}

// Returns true if the rule cannot apply to a request without descriptors.
bool needs_descriptor(const Rule& rule) {
  return !rule.match.descriptor.empty() ||
         std::any_of(rule.key.begin(), rule.key.end(), [](const KeyPart& part) {
           return std::all_of(part.begin(), part.end(), is_descriptor);
         });
}

void add_keys(const Match& match, std::vector<std::string>& keys) {
  for (const auto& condition : match.descriptor) keys.push_back(condition.name);
  if (match.negated) add_keys(*match.negated, keys);
}

bool has_key(const Descriptor& descriptor, std::string_view key) noexcept {
  return !descriptor.value_of(key).empty();
}

// Returns true if the descriptor has a value for each part of the rule's key that only a descriptor can
// provide.
bool has_parts(const Rule& rule, const Descriptor& descriptor) {
  return std::all_of(rule.key.begin(), rule.key.end(), [&](const KeyPart& part) {
    return std::any_of(part.begin(), part.end(), [&](const AttributeRef& attribute) {
      return !is_descriptor(attribute) || has_key(descriptor, attribute.name);
    });
  });
}

}  // namespace

std::vector<std::string> descriptor_keys_of(const Rule& rule) {
  std::vector<std::string> keys;
  if (!needs_descriptor(rule)) return keys;
  add_keys(rule.match, keys);
  for (const auto& variant : rule.overrides) add_keys(variant.match, keys);
  for (const auto& part : rule.key)
    for (const auto& attribute : part)
      if (is_descriptor(attribute)) keys.push_back(attribute.name);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

bool may_apply(const Rule& rule, const Descriptor& descriptor) {
  if (!descriptor.exact) return true;
  const auto is_named = [&](const DescriptorEntry& entry) {
    return std::binary_search(rule.descriptor_keys.begin(), rule.descriptor_keys.end(), entry.key);
  };
  return std::all_of(descriptor.entries.begin(), descriptor.entries.end(), is_named) &&
         has_parts(rule, descriptor);
}

}  // namespace weir::policy
