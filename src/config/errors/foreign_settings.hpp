// Settings and words of other proxies that people write by habit, and what to write instead.
// migration_advice.cpp uses these lists.
#pragma once

#include "config/schema/schema.hpp"

#include <span>
#include <string_view>

namespace weir::config {

// A setting of another proxy, and advice on what to write instead. "{}" in the advice is a placeholder for
// the value that was found.
struct ForeignSetting {
  const TableSpec* where;
  std::string_view key;
  std::string_view advice;
};
extern const std::span<const ForeignSetting> kForeignSettings;

// The line to write for a setting that must be a table but has a plain value, such as `tls = true`. "{}" is a
// placeholder for that value.
struct ForeignTable {
  std::string_view key;
  std::string_view line;
};
extern const std::span<const ForeignTable> kTables;

// A value that another proxy uses for a setting, and weir's value with the same meaning.
struct ForeignValue {
  std::string_view key;
  std::string_view theirs;
  std::string_view ours;
};
extern const std::span<const ForeignValue> kWords;

}  // namespace weir::config
