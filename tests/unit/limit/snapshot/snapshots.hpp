// Reads and writes snapshots as bytes, and lists the contents of a table for comparison.
#pragma once

#include "unit/limit/traffic.hpp"

#include "weir/limit/key_table.hpp"
#include "weir/limit/snapshot.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::limit {

inline ByteSource source_of(std::string_view bytes) {
  return [bytes](std::span<char> into) mutable {
    const auto count = std::min(into.size(), bytes.size());
    if (count != 0) std::memcpy(into.data(), bytes.data(), count);
    bytes.remove_prefix(count);
    return count;
  };
}

inline SavedRule rule_of(std::string name, const Limiter& limiter) {
  return {.name = std::move(name), .variants = {{0, fingerprint(limiter).lo}}, .limiters = {&limiter}};
}

inline constexpr base::SipKey kNames{0x1234, 0x5678};

inline std::string written(const KeyTable& table, const std::vector<SavedRule>& rules, TimePoint now) {
  std::string bytes;
  write_snapshot(table, {kNames, now}, rules, [&](std::string_view more) { bytes += more; });
  return bytes;
}

inline std::map<Key, SavedKey> keys_of(const KeyTable& table, const std::vector<SavedRule>& rules,
                                       TimePoint now) {
  std::map<Key, SavedKey> keys;
  table.visit(now, rules, [&](const SavedKey& saved) { keys.emplace(saved.key, saved); });
  return keys;
}

}  // namespace weir::limit
