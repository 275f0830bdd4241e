// Reads values such as "10%".
#pragma once

#include "config/read/table_reader.hpp"

#include <optional>
#include <string_view>

namespace weir::config {

// The valid percentages: the multiples of `step` from `least` to `most`.
struct PercentageBounds {
  unsigned least = 0;
  unsigned most = 100;
  unsigned step = 1;
};

// Returns 10 for the value "10%". Returns nullopt after a mistake. REQUIRES: the key is present or has a
// default.
[[nodiscard]] std::optional<unsigned> read_percentage(const TableReader& table, std::string_view key,
                                                      PercentageBounds bounds = {});

}  // namespace weir::config
