// Saves the keys of a table to a snapshot and restores them.
#include "limit/table/key_table_impl.hpp"

#include <mutex>
#include <vector>

namespace weir::limit {

SavedKey KeyTable::Impl::saved(const Slot& slot, std::span<const SavedRule> rules) const {
  SavedKey saved{.key = slot.key, .rule = slot.due.rule(), .drained_at = slot.due.evictable_at()};
  if (!slot.due.is_log()) {
    saved.cell = slot.cell;
    return saved;
  }
  LogReader(slot.cell, logs, rules[saved.rule].log_cost_bits()).walk([&](const LogEntry& entry) {
    saved.log.push_back(entry);
    return true;
  });
  return saved;
}

// Fills the log of a slot with saved entries. If no chunk is free, adds the costs of all further entries to
// the newest entry. The newest entry then gets the time step of the last saved entry.
void KeyTable::Impl::fill(Slot& slot, RuleIndex rule, std::span<const LogEntry> entries,
                          unsigned cost_bits) noexcept {
  Log log(slot.cell, logs, cost_bits);
  for (const auto& entry : entries) {
    const bool wanted = log.wants_chunk(entry.mark);
    const LogStore::Ref spare = wanted ? logs.take_beyond_share(rule) : 0;
    if (wanted && spare == 0) logs.note_merged();
    log.push(entry, spare);
  }
}

void KeyTable::visit(base::TimePoint now, std::span<const SavedRule> rules,
                     const std::function<void(const SavedKey&)>& see) const {
  std::vector<SavedKey> found;
  for (std::size_t i = 0; i < impl_->shape.shards; ++i) {
    found.clear();
    {
      const std::lock_guard lock(impl_->shards[i].mutex);
      impl_->shards[i].for_each([&](const Slot& slot) {
        if (!slot.due.evictable(now) && !slot.due.never_drains()) found.push_back(impl_->saved(slot, rules));
      });
    }
    for (const auto& key : found) see(key);
  }
}

std::vector<SharedCell> KeyTable::shared_cells(base::TimePoint now) const {
  std::vector<SharedCell> cells;
  const std::lock_guard lock(impl_->overflow.mutex);
  impl_->overflow.for_each([&](RuleIndex rule, LimiterId limiter_id, const Limiter& units, const Cell& cell) {
    if (!holds(units) && drained_at(units, cell) > now) cells.push_back({rule, limiter_id, units, cell});
  });
  return cells;
}

bool KeyTable::restore(const SavedKey& saved, unsigned cost_bits, base::TimePoint now) {
  Shard& shard = impl_->shard_of(saved.key);
  const std::lock_guard lock(shard.mutex);
  if (shard.find(saved.key) != nullptr) return true;
  Slot* slot = shard.claim_beyond_share(saved.key, saved.rule, now);
  if (slot == nullptr) return false;
  if (!saved.log.empty()) impl_->fill(*slot, saved.rule, saved.log, cost_bits);
  const bool is_log = !saved.log.empty();
  shard.settle(*slot, is_log ? slot->cell : saved.cell, SlotInfo(saved.drained_at, saved.rule, is_log));
  return true;
}

void KeyTable::restore(const SharedCell& shared) {
  const std::lock_guard lock(impl_->overflow.mutex);
  impl_->overflow.put(shared.rule, shared.limiter_id, shared.units, shared.cell);
}

}  // namespace weir::limit
