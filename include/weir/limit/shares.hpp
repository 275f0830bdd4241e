// What the key table sets aside for each rule, whatever other rules' clients do (src/limit/table/quota.hpp).
#pragma once

#include <cstddef>

namespace weir::limit {

struct Share {
  std::size_t keys = 0;
  std::size_t log_entries = 0;  // of each rule that keeps logs
};

// Of a table for `max_keys` that `rules` rules use, of which `log_rules` keep logs.
[[nodiscard]] Share share_of_each(std::size_t max_keys, std::size_t rules, std::size_t log_rules) noexcept;

}  // namespace weir::limit
