// The number of slots that the key table reserves for each rule, so that the clients of another rule cannot
// use up the whole table (src/limit/table/quota.hpp).
#pragma once

#include <cstddef>

namespace weir::limit {

struct Share {
  std::size_t keys = 0;
  std::size_t log_entries = 0;  // reserved log entries, for each rule that keeps logs
};

// Returns the reserved part of each rule, in a table for `max_keys` keys with `rules` rules. `log_rules` of
// these rules keep logs.
[[nodiscard]] Share share_of_each(std::size_t max_keys, std::size_t rules, std::size_t log_rules) noexcept;

}  // namespace weir::limit
