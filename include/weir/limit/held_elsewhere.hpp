// What another process holds of limits that are counted here: one that gave place to this one and finishes
// what it began. To clients its requests and those of this process are one.
//
// Belongs to one thread. The table outlives it.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/key_table.hpp"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace weir::limit {

class HeldElsewhere {
 public:
  explicit HeldElsewhere(KeyTable& table) noexcept : table_(table) {}

  // So many units of charge.key are held there more than were, or fewer: of those that were told of. How they
  // count, the charge says, but for its cost. Throws std::bad_alloc; then nothing has changed.
  // REQUIRES limit::holds(*charge.limiter).
  void change(Charge charge, std::int64_t units, base::TimePoint now);
  // The other process has ended.
  void give_back_all(base::TimePoint now);
  [[nodiscard]] std::uint64_t units() const noexcept { return units_; }
  // Under which they are held: each is in use until nothing is held there any more. In no order, maybe twice.
  [[nodiscard]] std::vector<RuleIndex> rules() const;

 private:
  struct Place {
    Charge charge;
    bool overflow;  // it stands in a cell that keys share
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept { return static_cast<std::size_t>(key.lo); }
  };

  KeyTable& table_;
  std::unordered_multimap<Key, Place, Hash> places_;
  std::uint64_t units_ = 0;
};

}  // namespace weir::limit
