// The functions that read the state of keys. They charge nothing, but may convert a state after a reload
// (limit/table/limiter_versions.hpp).
#include "limit/table/checked_step.hpp"
#include "limit/table/key_table_impl.hpp"

namespace weir::limit {

Outcome KeyTable::current_outcome(const Charge& unresolved, base::TimePoint now, bool overflow) const {
  if (overflow) {
    const std::lock_guard lock(impl_->overflow.mutex);
    const Cell shared = impl_->overflow.cell(unresolved.rule, unresolved.limiter_id, *unresolved.limiter);
    auto outcome = limit::current_outcome(*unresolved.limiter, shared, now);
    outcome.overflow = true;
    return outcome;
  }
  const Shard& shard = impl_->shard_of(unresolved.key);
  const std::lock_guard lock(shard.mutex);
  Slot* slot = shard.find(unresolved.key);
  const Charge charge = slot == nullptr || slot->due.rule() == unresolved.rule
                            ? unresolved
                            : impl_->resolve(*slot, unresolved, now).charge;
  const auto* sliding = std::get_if<SlidingLog>(charge.limiter);
  if (slot == nullptr || slot->due.is_log() != (sliding != nullptr)) return full(*charge.limiter);
  if (sliding == nullptr) return limit::current_outcome(*charge.limiter, slot->cell, now);
  const LogReader log(slot->cell, impl_->logs, sliding->cost_bits());
  return checked_ask(*charge.limiter, log, now, 0).outcome;
}

Outcome KeyTable::peek(const Charge& charge, base::TimePoint now) const {
  Shard& shard = impl_->shard_of(charge.key);
  const std::lock_guard lock(shard.mutex);
  auto outcome = impl_->peek_at_limiter(shard, charge, now);
  if (charge.penalty != nullptr) Impl::check_penalty(shard, charge, now, outcome);
  return outcome;
}

Outcome KeyTable::Impl::peek_at_limiter(Shard& shard, const Charge& unresolved, base::TimePoint now) {
  Slot* slot = shard.find(unresolved.key);
  const Charge charge = slot == nullptr || slot->due.rule() == unresolved.rule
                            ? unresolved
                            : resolve(*slot, unresolved, now).charge;
  const auto* sliding = std::get_if<SlidingLog>(charge.limiter);
  if (slot != nullptr && slot->due.is_log() == (sliding != nullptr)) {
    if (sliding != nullptr)
      return checked_ask(*charge.limiter, LogReader(slot->cell, logs, sliding->cost_bits()), now, charge.cost)
          .outcome;
    return checked_step(*charge.limiter, slot->cell, now, charge.cost).outcome;
  }
  if (slot != nullptr) return checked_step(*charge.limiter, Cell{}, now, charge.cost).outcome;
  if (shard.has_room(charge.key, charge.rule, now)) {
    const Cell cell = fresh(charge, now);
    auto outcome = checked_step(*charge.limiter, cell, now, charge.cost).outcome;
    // The state is a copy of the overflow cell, which has charges of other keys. So a refusal is no violation
    // of this key.
    outcome.overflow = charge.penalty != nullptr && !outcome.allowed && cell != Cell{};
    return outcome;
  }
  const std::lock_guard last(overflow.mutex);
  const Cell shared = overflow.cell(charge.rule, charge.limiter_id, *charge.limiter);
  auto outcome = checked_step(*charge.limiter, shared, now, charge.cost).outcome;
  outcome.overflow = true;
  return outcome;
}

bool KeyTable::has_state(const Key& key) const {
  const Shard& shard = impl_->shard_of(key);
  const std::lock_guard lock(shard.mutex);
  return shard.find(key) != nullptr || shard.penalties.find(key) != nullptr;
}

KeyTable::Stats KeyTable::stats() const {
  Stats stats;
  stats.slots = impl_->shape.shards * impl_->shape.buckets * kBucketSlots;
  for (std::size_t i = 0; i < impl_->shape.shards; ++i) {
    const Shard& shard = impl_->shards[i];
    const std::lock_guard lock(shard.mutex);
    const auto keys = shard.keys_by_rule();
    for (std::size_t rule = 0; rule < keys.size(); ++rule) stats.keys_by_rule[rule] += keys[rule];
    stats.penalty_keys += shard.penalties.keys();
    stats.violations_lost += shard.penalties.lost();
  }
  for (const auto keys : stats.keys_by_rule) stats.keys += keys;
  stats.log_chunks = impl_->logs.size();
  stats.log_chunks_used = impl_->logs.in_use();
  stats.log_merged = impl_->logs.merged();
  const std::lock_guard lock(impl_->overflow.mutex);
  stats.overflowed = impl_->overflow.charges();
  stats.overflow_refused = impl_->overflow.refusals();
  return stats;
}

}  // namespace weir::limit
