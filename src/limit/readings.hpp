// What the cells of each RuleIndex mean. A rule whose numbers a reload changed has a new index, so a slot
// always says in which numbers its cell is; a charge that meets a cell of another index asks here how the two
// go together. Cells only move on to newer readings: a request that began under an older one is charged under
// the newest that its key has met.
//
// Owned by the key table. Any thread may ask; one at a time introduces and forgets. Its lock is the last.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/limit/saved.hpp"

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <shared_mutex>

namespace weir::limit {

class Readings {
 public:
  // A charge, and a cell of another reading of its rule.
  struct Meeting {
    bool cell_is_newer;
    const Limiter* of_cell;  // the limiter of the charge's variant in the cell's reading; null: it has none
  };

  // Nullopt: they are not two readings of one rule, as far as is known.
  [[nodiscard]] std::optional<Meeting> meeting(RuleIndex cell, const Charge& charge) const {
    const std::shared_lock lock(mutex_);
    const auto& one = known_[cell];
    const auto& other = known_[charge.rule];
    if (!one || !other || one->rule.name != other->rule.name) return std::nullopt;
    if (one->forgotten) return Meeting{false, nullptr};
    const auto* variant = other->rule.variant_of(charge.ledger);
    return Meeting{one->age > other->age,
                   variant != nullptr ? one->rule.limiter_named(variant->name) : nullptr};
  }

  void introduce(RuleIndex index, const SavedRule& rule) {
    const std::unique_lock lock(mutex_);
    known_[index] = Known{rule, ++introduced_, false};
  }
  // Its cells are to be forgotten where they are met.
  void forget(RuleIndex index) {
    const std::unique_lock lock(mutex_);
    if (known_[index]) known_[index]->forgotten = true;
  }
  void retire(RuleIndex index) {
    const std::unique_lock lock(mutex_);
    known_[index].reset();
  }

  // What is to become of cells that nobody asks for.
  struct Fate {
    bool forgotten = false;
    RuleIndex next = 0;             // of a rule with one limiter alone:
    const Limiter* from = nullptr;  // null: nothing
    const Limiter* to = nullptr;
  };
  [[nodiscard]] std::array<Fate, kMaxRules> fates() const {
    const std::shared_lock lock(mutex_);
    std::array<Fate, kMaxRules> fates{};
    for (std::size_t i = 0; i < kMaxRules; ++i) {
      if (!known_[i]) continue;
      fates[i].forgotten = known_[i]->forgotten;
      const auto* newest = newest_of(known_[i]->rule.name);  // null: all of them are to be forgotten
      if (newest != nullptr && newest != &known_[i])
        lead_on(*known_[i], **newest, static_cast<RuleIndex>(newest - known_.data()), fates[i]);
    }
    return fates;
  }

  // The reading that the next one of a rule follows; null: it has none.
  [[nodiscard]] const SavedRule* newest(const std::string& name, RuleIndex& index) const {
    const std::shared_lock lock(mutex_);
    const auto* newest = newest_of(name);
    if (newest == nullptr) return nullptr;
    index = static_cast<RuleIndex>(newest - known_.data());
    return &(*newest)->rule;
  }

 private:
  struct Known {
    SavedRule rule;
    std::uint64_t age;  // the greater, the newer
    bool forgotten;
  };

  [[nodiscard]] const std::optional<Known>* newest_of(const std::string& name) const {
    const std::optional<Known>* newest = nullptr;
    for (const auto& known : known_)
      if (known && !known->forgotten && known->rule.name == name &&
          (newest == nullptr || known->age > (*newest)->age))
        newest = &known;
    return newest;
  }
  static void lead_on(const Known& older, const Known& newer, RuleIndex index, Fate& fate) {
    if (older.forgotten || older.rule.variants.size() != 1) return;  // whose cell it is, nobody can tell
    const auto& variant = older.rule.variants.front();
    fate.next = index;
    fate.from = variant.limiter;
    fate.to = newer.rule.limiter_named(variant.name);
  }

  mutable std::shared_mutex mutex_;
  std::array<std::optional<Known>, kMaxRules> known_;
  std::uint64_t introduced_ = 0;
};

}  // namespace weir::limit
