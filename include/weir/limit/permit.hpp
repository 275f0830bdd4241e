// The units of a concurrency limit that one exchange holds. The destructor releases the units.
//
// Owned by the exchange. The key table, and the rule set that owns the limiter, must outlive the permit.
#pragma once

#include "weir/limit/key_table.hpp"

#include <utility>

namespace weir::limit {

class Permit {
 public:
  // Becomes the owner of the units of a charge. REQUIRES: the charge was admitted, and
  // holds(*charge.limiter).
  Permit(KeyTable& table, const Charge& charge, base::TimePoint now, bool overflow) noexcept
      : table_(&table), charge_(charge), held_since_(now), overflow_(overflow) {}
  Permit(Permit&& other) noexcept
      : table_(std::exchange(other.table_, nullptr)),
        charge_(other.charge_),
        held_since_(other.held_since_),
        overflow_(other.overflow_) {}
  Permit& operator=(Permit&&) = delete;
  // Releases the units, unless release() has done so. An adaptive limit then learns no latency.
  ~Permit() { release(held_since_, {}); }

  // Releases the units now, and tells the limit how the exchange ended. Later calls do nothing.
  void release(base::TimePoint now, const Ending& ending, HybridTimestamp* timestamp = nullptr) noexcept {
    if (auto* table = std::exchange(table_, nullptr))
      table->release(charge_, now, ending, overflow_, timestamp);
  }
  [[nodiscard]] const Charge& charge() const noexcept { return charge_; }

 private:
  KeyTable* table_;  // null once the units are released
  Charge charge_;
  base::TimePoint held_since_;
  bool overflow_;
};

}  // namespace weir::limit
