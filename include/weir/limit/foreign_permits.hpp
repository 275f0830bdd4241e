// The concurrency permits that the previous process still holds after an upgrade, while it finishes its
// requests. The new process counts these permits, too, so that both processes together stay within the limit.
//
// Owned by the program. Belongs to the main thread. The key table must outlive this object.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/key_table.hpp"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace weir::limit {

class ForeignPermits {
 public:
  explicit ForeignPermits(KeyTable& table) noexcept : table_(table) {}

  // Adds `units` permits of charge.key that the previous process has taken. A negative number subtracts
  // permits that the process has released. `charge` names the key, the rule and the limiter; charge.cost is
  // ignored. If this function throws std::bad_alloc, it changes nothing. REQUIRES:
  // limit::holds(*charge.limiter).
  void change(Charge charge, std::int64_t units, base::TimePoint now);
  // Releases all permits that the previous process still holds. Must be called when that process has ended.
  void release_all(base::TimePoint now);
  [[nodiscard]] std::uint64_t units() const noexcept { return units_; }
  // Returns the rules of the permits that the previous process still holds, in any order, perhaps with
  // duplicates. weir must not free these rules yet.
  [[nodiscard]] std::vector<RuleIndex> rules() const;

 private:
  struct Entry {
    Charge charge;
    bool overflow;  // true: the permit is counted in the overflow cell, which keys without a slot share
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept { return static_cast<std::size_t>(key.lo); }
  };

  KeyTable& table_;
  std::unordered_multimap<Key, Entry, Hash> entries_;
  std::uint64_t units_ = 0;
};

}  // namespace weir::limit
