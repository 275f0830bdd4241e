// Converts the keys of rules that a reload has changed.
#include "limit/table/key_table_impl.hpp"

#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace weir::limit {

// Called if a charge and the slot's cell belong to different versions of a rule. If the cell is older,
// converts the cell to the charge's limiter. If the charge is older, returns the charge with the cell's
// limiter.
//
// If the algorithm has changed since an older charge, and the old or the new limiter counts permits, the
// charge does not use the cell. Its permits are counted and released in the overflow cell, which keys without
// a slot share.
auto KeyTable::Impl::resolve(Slot& slot, const Charge& charge, base::TimePoint now) noexcept -> Resolved {
  const auto relation = limiter_versions.relation_to(slot.due.rule(), charge);
  if (!relation) return {charge};
  if (!relation->cell_is_newer) {
    convert(slot, relation->same_generation ? relation->of_cell : nullptr, *charge.limiter, charge.rule, now);
    return {charge};
  }
  if (relation->of_cell == nullptr) return {charge};
  Resolved resolved{charge};
  resolved.charge.limiter = relation->of_cell;
  resolved.charge.rule = slot.due.rule();
  resolved.uses_overflow_cell =
      !relation->same_generation && (holds(*charge.limiter) || holds(*relation->of_cell));
  return resolved;
}

bool KeyTable::Impl::is_same_generation(const Slot& slot, const Charge& charge) const {
  const auto relation = limiter_versions.relation_to(slot.due.rule(), charge);
  return relation && relation->same_generation;
}

// Converts the cell (state) of a slot from the limiter `from` to the limiter `to`. Resets the cell if `from`
// is null: its old limiter is unknown, or had another algorithm.
void KeyTable::Impl::convert(Slot& slot, const Limiter* from, const Limiter& to, RuleIndex rule,
                             base::TimePoint now) noexcept {
  Shard& shard = shard_of(slot.key);
  const auto* log = std::get_if<SlidingLog>(&to);
  const bool alike = from != nullptr && rescales(*from, to) && slot.due.is_log() == (log != nullptr);
  if (!alike)
    reset_cell(slot);
  else if (log != nullptr)
    convert_log(slot, std::get<SlidingLog>(*from), *log, rule, now);
  else
    slot.cell = rescaled(*from, slot.cell, to, now);
  const auto drained = log == nullptr ? drained_at(to, slot.cell)
                       : LogReader(slot.cell, logs, log->cost_bits()).total() != 0
                           ? log->expiry_of(slot.cell.words[0])
                           : base::TimePoint{};
  shard.settle(slot, slot.cell, SlotInfo(drained, rule, log != nullptr));
}

// Converts a log. If memory runs out, the log becomes a single entry with the total cost and the newest mark.
void KeyTable::Impl::convert_log(Slot& slot, const SlidingLog& from, const SlidingLog& to, RuleIndex rule,
                                 base::TimePoint now) noexcept {
  const LogReader reader(slot.cell, logs, from.cost_bits());
  const Cell lone{{reader.newest(), reader.total()}};
  const auto ring = reader.tail();
  try {
    std::vector<LogEntry> entries;
    reader.walk([&](const LogEntry& entry) {
      entries.push_back(entry);
      return true;
    });
    const auto converted = rescaled(from, entries, to, now);
    logs.give_back_ring(ring);
    slot.cell = {};
    fill(slot, rule, converted, to.cost_bits());
  } catch (const std::bad_alloc&) {
    logs.give_back_ring(ring);
    slot.cell = lone;
  }
}

void KeyTable::Impl::share_out() {
  const QuotaAccounts accounts = limiter_versions.accounts();
  const QuotaSplit slots = shape.split_of_slots(accounts.rules.count());
  for (std::size_t i = 0; i < shape.shards; ++i) {
    const std::lock_guard lock(shards[i].mutex);
    shards[i].quota.share_out(accounts, accounts.rules, slots);
  }
  logs.share_out(accounts, shape.split_of_chunks(accounts.logs.count()));
}

// Returns the overflow cells (states that keys without a slot share) of the rule's version before `index`,
// converted to the rule's present limiters.
std::vector<SharedCell> KeyTable::Impl::converted_overflow(RuleIndex index, const SavedRule& rule,
                                                           base::TimePoint now) const {
  RuleIndex before = index;
  const SavedRule* older = limiter_versions.newest(rule.name, before);
  std::vector<SharedCell> cells;
  if (older == nullptr || before == index) return cells;
  const std::lock_guard lock(overflow.mutex);
  overflow.for_each([&](RuleIndex of, LimiterId limiter_id, const Limiter& units, const Cell& cell) {
    const auto* was = of == before ? older->variant_of(limiter_id) : nullptr;
    if (was == nullptr || holds(units)) return;
    for (const auto& is : rule.variants)
      if (is.name == was->name && is.limiter != nullptr)
        cells.push_back({index, is.limiter_id, *is.limiter, rescaled(units, cell, *is.limiter, now)});
  });
  return cells;
}

void KeyTable::define_rules(std::span<const DefinedRule> rules, base::TimePoint now) {
  std::vector<SharedCell> shared;
  for (const auto& [index, rule] : rules) {
    const auto converted = impl_->converted_overflow(index, rule, now);
    shared.insert(shared.end(), converted.begin(), converted.end());
    impl_->limiter_versions.define_rule(index, rule);
  }
  impl_->share_out();
  for (const auto& cell : shared) restore(cell);
}

bool KeyTable::define_former_rule(RuleIndex index, const SavedRule& rule) {
  if (!impl_->limiter_versions.define_former_rule(index, rule)) return false;
  RuleIndex account = index;
  (void)impl_->limiter_versions.newest(rule.name, account);
  for (std::size_t i = 0; i < impl_->shape.shards; ++i) {
    const std::lock_guard lock(impl_->shards[i].mutex);
    impl_->shards[i].quota.add(index, account);
  }
  impl_->logs.add(index, account);
  return true;
}

bool KeyTable::is_current(RuleIndex index) const {
  return impl_->limiter_versions.is_current(index);
}

void KeyTable::forget_rules(const std::vector<RuleIndex>& indexes) {
  for (const auto index : indexes) impl_->limiter_versions.forget(index);
  impl_->share_out();
}

void KeyTable::migrate_cells(base::TimePoint now) {
  const auto cell_actions = impl_->limiter_versions.cell_actions();
  for (std::size_t i = 0; i < impl_->shape.shards; ++i) {
    Shard& shard = impl_->shards[i];
    const std::lock_guard lock(shard.mutex);
    shard.for_each([&](Slot& slot) {
      const auto& action = cell_actions[slot.due.rule()];
      if (action.forgotten)
        shard.release(slot);
      else if (action.from != nullptr && action.to != nullptr)
        impl_->convert(slot, action.from, *action.to, action.next, now);
    });
  }
}

void KeyTable::retire_rules(const std::vector<RuleIndex>& indexes) {
  for (const auto index : indexes) impl_->limiter_versions.retire(index);
  impl_->share_out();
  const std::lock_guard lock(impl_->overflow.mutex);
  for (const auto index : indexes) impl_->overflow.forget(index);
}

}  // namespace weir::limit
