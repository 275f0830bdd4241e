// The part of the key table that is reserved for each rule, whatever the clients of other rules do
// (src/limit/table/quota.hpp).
#pragma once

#include <cstddef>

namespace weir::limit {

struct Share {
  std::size_t keys = 0;
  std::size_t log_entries = 0;  // for each rule that keeps logs
};

// Returns the share of each of `rules` rules in a table for `max_keys`. `log_rules` of them keep logs.
[[nodiscard]] Share share_of_each(std::size_t max_keys, std::size_t rules, std::size_t log_rules) noexcept;

}  // namespace weir::limit
