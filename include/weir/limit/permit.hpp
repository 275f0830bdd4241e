// What one exchange holds of a concurrency limit, given back when it goes out of scope.
//
// Owned by the exchange. The table, and the rule set that owns the limiter, outlive it.
#pragma once

#include "weir/limit/key_table.hpp"

#include <utility>

namespace weir::limit {

class Permit {
 public:
  // Of a charge that was admitted. REQUIRES holds(*charge.limiter).
  Permit(KeyTable& table, const Charge& charge, base::TimePoint now, bool overflow) noexcept
      : table_(&table), charge_(charge), held_since_(now), overflow_(overflow) {}
  Permit(Permit&& other) noexcept
      : table_(std::exchange(other.table_, nullptr)),
        charge_(other.charge_),
        held_since_(other.held_since_),
        overflow_(other.overflow_) {}
  Permit& operator=(Permit&&) = delete;
  // An exchange that told nothing teaches nothing.
  ~Permit() { give_back(held_since_, {}); }

  // Gives it back now, with what the exchange taught. At most once.
  void give_back(base::TimePoint now, const Ending& ending, Turn* turn = nullptr) noexcept {
    if (auto* table = std::exchange(table_, nullptr)) table->release(charge_, now, ending, overflow_, turn);
  }
  [[nodiscard]] const Charge& charge() const noexcept { return charge_; }

 private:
  KeyTable* table_;  // null: given back
  Charge charge_;
  base::TimePoint held_since_;
  bool overflow_;
};

}  // namespace weir::limit
