// The penalties of keys: decides by them, notes violations, saves and restores them.
#include "limit/table/key_table_impl.hpp"

#include <mutex>
#include <vector>

namespace weir::limit {

void KeyTable::Impl::check_penalty(const Shard& shard, const Charge& charge, base::TimePoint now,
                                   Outcome& outcome) noexcept {
  const auto* state = shard.penalties.find(charge.key);
  if (state == nullptr) return;
  const auto left = penalty_left(*state, now);
  if (left.count() > 0) return refuse_by_penalty(outcome, left);
  outcome.violations = static_cast<std::uint8_t>(violations_at(*charge.penalty, *state, now));
}

void KeyTable::Impl::check_and_note_violation(Shard& shard, const Charge& charge, base::TimePoint now,
                                              Outcome& outcome) noexcept {
  check_penalty(shard, charge, now, outcome);
  // A refusal by the shared overflow cell may be due to other keys, so it is no violation.
  if (outcome.allowed || outcome.overflow || outcome.penalty_left.count() > 0) return;
  outcome.penalty_begins = shard.penalties.violate(charge.key, charge.rule, *charge.penalty, now);
  check_penalty(shard, charge, now, outcome);
}

void KeyTable::Impl::apply_penalty(const Charge& charge, base::TimePoint now, Violations violations,
                                   Outcome& outcome) const noexcept {
  const bool may_yield = charge.enforced && violations == Violations::ButFullQueues &&
                         std::holds_alternative<LeakyBucket>(*charge.limiter);
  if (may_yield || violations == Violations::None)
    check_penalty(shard_of(charge.key), charge, now, outcome);
  else
    check_and_note_violation(shard_of(charge.key), charge, now, outcome);
}

void KeyTable::violate(const Charge& charge, base::TimePoint now, Outcome& outcome) {
  Shard& shard = impl_->shard_of(charge.key);
  const std::lock_guard lock(shard.mutex);
  Impl::check_and_note_violation(shard, charge, now, outcome);
}

std::vector<SavedPenalty> KeyTable::penalties(base::TimePoint now) const {
  std::vector<SavedPenalty> found;
  for (std::size_t i = 0; i < impl_->shape.shards; ++i) {
    const std::lock_guard lock(impl_->shards[i].mutex);
    impl_->shards[i].penalties.for_each(
        [&](const Key& key, base::TimePoint forgotten_at, const PenaltyState& state) {
          if (forgotten_at > now) found.push_back({key, forgotten_at, state});
        });
  }
  return found;
}

bool KeyTable::restore(const SavedPenalty& saved) {
  Shard& shard = impl_->shard_of(saved.key);
  const std::lock_guard lock(shard.mutex);
  return shard.penalties.restore(saved);
}

}  // namespace weir::limit
