// The named values of a question. A program that asks weir for a decision names values of its own in the
// question, such as a customer or a product. A rule can have conditions on these values, and use them in its
// key (`match.descriptor`, `descriptor:KEY`).
#pragma once

#include "weir/limit/rate.hpp"

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace weir::policy {

// The largest number of values of one descriptor. Rules search the values one after the other, so the
// readers of questions reject descriptors with more values.
inline constexpr std::size_t kMostEntries = 64;

struct DescriptorEntry {
  std::string_view key;
  std::string_view value;
};

// A group of named values in one question. The views refer to texts that the question owns.
struct Descriptor {
  std::vector<DescriptorEntry> entries;
  // the cost under rules that name a value of this descriptor; nullopt: the descriptor has no cost of its
  // own; 0: these rules check their limits, but charge nothing
  std::optional<limit::Cost> cost{};
  // True: a rule applies only if the descriptor has exactly the keys that the rule names. False: the
  // descriptor may have more keys.
  bool exact = false;

  // Returns the value of the first entry with this key; empty if there is none.
  [[nodiscard]] std::string_view value_of(std::string_view key) const noexcept {
    for (const auto& entry : entries)
      if (entry.key == key) return entry.value;
    return {};
  }
};

}  // namespace weir::policy
