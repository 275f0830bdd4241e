// Reports permits to another process, and counts permits that another process reports.
#include "limit/table/key_table_locks.hpp"

#include <algorithm>
#include <cassert>
#include <mutex>
#include <utility>

namespace weir::limit {

void KeyTable::Impl::report_permits(const Charge& charge, const Limiter& limiter, const Cell& before,
                                    const Cell& after) const noexcept {
  const auto was = in_flight(limiter, before), is = in_flight(limiter, after);
  if (was != is) permit_observer({charge.key, charge.rule, static_cast<std::int64_t>(is - was)});
}

// A slot does not say which limiter its cell belongs to. But only the cells of concurrency limits never drain
// (return to the fresh state with time), and all concurrency limits of a rule have the same algorithm. So any
// of the rule's concurrency limits can read a cell that never drains.
void KeyTable::watch_permits(std::span<const SavedRule> rules, PermitObserver see) {
  unwatch_permits();
  impl_->permit_observer = std::move(see);
  for (std::size_t i = 0; i < impl_->shape.shards; ++i) {
    Shard& shard = impl_->shards[i];
    const std::lock_guard lock(shard.mutex);
    shard.watched = true;
    shard.for_each([&](const Slot& slot) {
      if (!slot.due.never_drains()) return;
      const auto& limiters = rules[slot.due.rule()].limiters;
      const auto holding = std::find_if(limiters.begin(), limiters.end(),
                                        [](const Limiter* limiter) { return holds(*limiter); });
      if (holding == limiters.end()) return;
      const auto units = static_cast<std::int64_t>(in_flight(**holding, slot.cell));
      if (units != 0) impl_->permit_observer({slot.key, slot.due.rule(), units});
    });
  }
}

void KeyTable::unwatch_permits() {
  for (std::size_t i = 0; i < impl_->shape.shards; ++i) {
    const std::lock_guard lock(impl_->shards[i].mutex);
    impl_->shards[i].watched = false;
  }
  impl_->permit_observer = {};
}

bool KeyTable::hold(const Charge& charge, base::TimePoint now) {
  assert(holds(*charge.limiter));
  Impl::Locks locks(*impl_, {&charge, 1});
  (void)locks.take_timestamp(now);
  Impl::ChargeCheck line = impl_->check(charge, now, locks);
  if (!line.step.outcome.allowed) {
    const Cell cell = line.slot != nullptr
                          ? line.slot->cell
                          : impl_->overflow.cell(charge.rule, charge.limiter_id, *line.limiter);
    line.step.next = charge_over_limit(*line.limiter, cell, now, charge.cost, 0);
    line.step.drained_at = drained_at(*line.limiter, line.step.next);
  }
  impl_->finish(charge, line, true);
  return line.step.outcome.overflow;
}

}  // namespace weir::limit
