#include "limit/table/checked_step.hpp"
#include "limit/table/key_table_locks.hpp"

#include <cassert>
#include <limits>

#include <boost/container/static_vector.hpp>

namespace weir::limit {

// Resets a slot's cell (the state of its key) to a fresh state, and gives the chunks of its log back to the
// log store. Called if the key's rule has another algorithm now, which must not read the former cell.
void KeyTable::Impl::reset_cell(Slot& slot) noexcept {
  if (slot.due.is_log()) logs.give_back_ring(LogReader::tail_of(slot.cell));
  slot.cell = {};
}

// Finds the slot of a charge, or else its overflow cell (the state that keys without a slot share). Pins the
// slot, so that no other key takes it, and computes the step of the limiter.
auto KeyTable::Impl::check(const Charge& charge, base::TimePoint now, Locks& locks) -> ChargeCheck {
  Shard& shard = shard_of(charge.key);
  ChargeCheck line;
  line.slot = shard.find(charge.key);
  line.limiter = charge.limiter;
  line.rule = charge.rule;
  if (line.slot != nullptr) {
    if (line.slot->due.rule() != charge.rule) [[unlikely]] {
      const Resolved resolved = resolve(*line.slot, charge, now);
      if (resolved.uses_overflow_cell) return check_overflow_cell(charge, now, locks);
      line.limiter = resolved.charge.limiter;
      line.rule = resolved.charge.rule;
    }
    line.due = line.slot->due;
    if (line.due.is_log() != std::holds_alternative<SlidingLog>(*line.limiter)) [[unlikely]]
      reset_cell(*line.slot);
    line.slot->due = SlotInfo::pinned(line.due.rule());
  } else {
    line.slot = shard.claim(charge.key, charge.rule, now);
    if (line.slot == nullptr) return check_overflow_cell(charge, now, locks);
    line.claimed = true;
    if (overflow.may_be_live(charge.rule, now)) [[unlikely]] {
      locks.lock_overflow();
      line.slot->cell = inherited(charge, now);
      line.inherits = line.slot->cell != Cell{};
    }
    // The shard may have evicted this key at any time until forgotten_at(). Earlier, the key may not have
    // been drained, so the step must not use an earlier time. Queues are an exception: they compute
    // departures from the request's own time.
    if (!std::holds_alternative<LeakyBucket>(*charge.limiter)) now = std::max(now, shard.forgotten_at());
  }
  if (const auto* log = std::get_if<SlidingLog>(line.limiter)) [[unlikely]]
    check_log(*log, charge, now, line);
  else
    line.step = checked_step(*line.limiter, line.slot->cell, now, charge.cost);
  return line;
}

// Checks a charge against the overflow cell of its limiter ID: the state that keys without a slot share.
auto KeyTable::Impl::check_overflow_cell(const Charge& charge, base::TimePoint now, Locks& locks)
    -> ChargeCheck {
  ChargeCheck line;
  line.limiter = charge.limiter;
  line.rule = charge.rule;
  locks.lock_overflow();
  line.step = checked_step(*charge.limiter, locks.overflow_cell(charge), now, charge.cost);
  line.step.outcome.overflow = true;
  return line;
}

// Returns the state with which a new slot of this key starts. As long as the key had no slot, its charges
// went to the overflow cell of its limiter ID, the state that keys without a slot share. So the slot starts
// with a copy of that cell, unless the cell has drained. Otherwise a client could get a fresh limit by
// filling the table. Permits are not copied, because they are released in the overflow cell.
Cell KeyTable::Impl::inherited(const Charge& charge, base::TimePoint now) const noexcept {
  if (holds(*charge.limiter)) return {};
  const Cell shared = overflow.cell(charge.rule, charge.limiter_id, *charge.limiter);
  return drained_at(*charge.limiter, shared) > now ? shared : Cell{};
}

// Returns the state with which a new slot of this key starts, as inherited() does. Takes the lock of the
// overflow cells, but only if a cell of the rule may still hold a charge.
Cell KeyTable::Impl::fresh(const Charge& charge, base::TimePoint now) const {
  if (!overflow.may_be_live(charge.rule, now)) return {};
  const std::lock_guard lock(overflow.mutex);
  return inherited(charge, now);
}

// Checks a charge against a log. Reserves a chunk of the log store, in case the bill is admitted and its new
// entry needs one. If no chunk is free, the cost is added to the newest entry, which then expires as late as
// a new entry would. So the key may be refused for longer than necessary, but is never admitted too soon.
void KeyTable::Impl::check_log(const SlidingLog& limiter, const Charge& charge, base::TimePoint now,
                               ChargeCheck& line) {
  Log log(line.slot->cell, logs, limiter.cost_bits());
  log.forget(std::max(limiter.mark_of(now), log.newest()), limiter.marks());
  const auto answer = checked_ask(*line.limiter, log, now, charge.cost);
  line.step.outcome = answer.outcome;
  line.step.drained_at = answer.drained_at;
  line.mark = answer.mark;
  if (!answer.outcome.allowed || charge.cost == 0 || !log.wants_chunk(answer.mark)) return;
  line.spare = logs.take(line.rule);
  if (line.spare == 0 && log.tail() == 0) line.step.outcome.more_after = answer.outcome.reset_after;
}

void KeyTable::Impl::check_counted(const Charge& charge, const ChargeCheck& decider, base::TimePoint now,
                                   ChargeCheck& line, const Locks& locks) const {
  const Limiter& limiter = *line.limiter;
  const bool fits = line.step.outcome.allowed;
  line.step.outcome = counted(limiter, line.step.outcome, decider.step.outcome.allowed);
  if (fits || !line.step.outcome.allowed) return;
  line.most = most_counted(limiter, *decider.limiter);
  const auto* log = std::get_if<SlidingLog>(&limiter);
  if (log != nullptr && line.slot != nullptr) {
    line.step.drained_at = log->expiry_of(line.mark);
    return;  // finish() removes the oldest entries of the log, then adds the new one
  }
  const Cell cell = line.slot != nullptr ? line.slot->cell : locks.overflow_cell(charge);
  line.step.next = charge_over_limit(limiter, cell, now, charge.cost, line.most);
  line.step.drained_at = drained_at(limiter, line.step.next);
}

// Removes the oldest entries of a log that is charged beyond its limit. If the new entry needs a chunk, takes
// a free one from the log store. Returns that chunk; 0 if none is needed or free.
LogStore::Ref KeyTable::Impl::make_room(Log& log, const Charge& charge, const ChargeCheck& line) {
  log.refund_from({0, beyond(log.total() + charge.cost, line.most)});
  return log.wants_chunk(line.mark) ? logs.take(line.rule) : 0;
}

void KeyTable::Impl::add_log_entry(const SlidingLog& limiter, const Charge& charge, const ChargeCheck& line) {
  Log log(line.slot->cell, logs, limiter.cost_bits());
  const auto spare = line.most != 0 ? make_room(log, charge, line) : line.spare;
  if (spare == 0 && log.wants_chunk(line.mark)) logs.note_merged();
  log.push({line.mark, charge.cost}, spare);
  shard_of(charge.key).settle(*line.slot, line.slot->cell, SlotInfo(line.step.drained_at, line.rule, true));
}

void KeyTable::Impl::finish(const Charge& charge, const ChargeCheck& line, bool charged) {
  Shard& shard = shard_of(charge.key);
  if (line.slot == nullptr) {
    if (!charged) return;
    overflow.note_charge();
    overflow.put(charge.rule, charge.limiter_id, *charge.limiter, line.step.next);
  } else if (charged) {
    if (const auto* log = std::get_if<SlidingLog>(line.limiter)) [[unlikely]]
      return add_log_entry(*log, charge, line);
    if (shard.watched) [[unlikely]]
      report_permits(charge, *line.limiter, line.slot->cell, line.step.next);
    shard.settle(*line.slot, line.step.next, SlotInfo(line.step.drained_at, line.rule, false));
  } else {
    if (line.spare != 0) [[unlikely]]
      logs.give_back(line.spare);
    if (line.claimed)
      shard.release(*line.slot);
    else
      line.slot->due = line.due;
  }
}

template <class Change, class ChangeLog, class OnEvicted>
bool KeyTable::Impl::change_charged_state(const Charge& unresolved, const ChangeTarget& where, Change change,
                                          ChangeLog change_log, OnEvicted on_evicted) {
  if (where.overflow) {
    const Limiter& limiter = *unresolved.limiter;
    const std::lock_guard lock(overflow.mutex);
    const Cell before = overflow.cell(unresolved.rule, unresolved.limiter_id, limiter);
    const Cell after = change(unresolved, before);
    overflow.put(unresolved.rule, unresolved.limiter_id, limiter, after);
    return after != before;
  }
  Shard& shard = shard_of(unresolved.key);
  const std::lock_guard lock(shard.mutex);
  shard.timestamp = timestamp_after(shard.timestamp, where.now);
  if (where.timestamp != nullptr) *where.timestamp = shard.timestamp;
  if (where.charged <= shard.last_reset() && resets.noted_since(unresolved.key, where.charged)) return false;
  Slot* slot = shard.find(unresolved.key);
  if (slot == nullptr) {
    on_evicted(shard);
    return true;
  }
  if (slot->due.rule() != unresolved.rule && !is_same_generation(*slot, unresolved)) return false;
  const Charge charge =
      slot->due.rule() == unresolved.rule ? unresolved : resolve(*slot, unresolved, where.now).charge;
  const Limiter& limiter = *charge.limiter;
  const auto* sliding = std::get_if<SlidingLog>(&limiter);
  if (slot->due.is_log() != (sliding != nullptr)) return false;  // a reload has changed the key's algorithm
  if (sliding != nullptr) {
    Log log(slot->cell, logs, sliding->cost_bits());
    const bool changed = change_log(charge, *sliding, log);
    const auto drained = log.total() != 0 ? sliding->expiry_of(log.newest()) : base::TimePoint{};
    shard.settle(*slot, slot->cell, SlotInfo(drained, charge.rule, true));
    return changed;
  }
  const Cell cell = change(charge, slot->cell);
  const bool changed = cell != slot->cell;
  if (shard.watched) [[unlikely]]
    report_permits(charge, limiter, slot->cell, cell);
  shard.settle(*slot, cell, SlotInfo(drained_at(limiter, cell), charge.rule, false));
  return changed;
}

bool KeyTable::Impl::settle_log(const SlidingLog& limiter, RuleIndex rule, Log& log, const Settled& settled,
                                Cost reserved) {
  if (settled.actual == reserved) return false;  // the costs are equal in the units of the present limiter
  const auto mark = limiter.mark_of(settled.charged_at);
  if (mark + limiter.marks() <= std::max(limiter.mark_of(settled.now), log.newest()))
    return false;  // the charge has expired
  if (settled.actual < reserved) {
    log.refund_from({mark, reserved - settled.actual});
    return true;
  }
  if (log.add_from({mark, settled.actual - reserved}, limiter.most_entered())) return true;
  const LogEntry whole{
      mark, std::min({settled.actual, limiter.most_entered(), SlidingLog::kMostTotal - log.total()})};
  if (whole.cost == 0) return false;  // the log has its maximum cost already
  log.push(whole, log.wants_chunk(mark) ? logs.take(rule) : 0);
  return true;
}

// Settles a charge whose key was evicted because time had paid for the reserved cost. If the actual cost is
// higher than the reserved cost, charges the actual cost to a new state. Otherwise does nothing.
void KeyTable::Impl::settle_evicted(const Charge& charge, const Settled& settled, Shard& shard) {
  if (settled.actual <= charge.cost) return;
  const Limiter& limiter = *charge.limiter;
  const Cell cell =
      limit::settle(limiter, fresh(charge, settled.now), settled.charged_at, charge.cost, settled.actual);
  const auto drained = drained_at(limiter, cell);
  if (drained <= settled.now) return;
  if (Slot* slot = shard.claim(charge.key, charge.rule, settled.now)) {
    const bool is_log = std::holds_alternative<SlidingLog>(limiter);
    return shard.settle(*slot, cell, SlotInfo(drained, charge.rule, is_log));
  }
  const std::lock_guard last(overflow.mutex);
  const Cell shared = overflow.cell(charge.rule, charge.limiter_id, limiter);
  overflow.put(charge.rule, charge.limiter_id, limiter,
               limit::settle(limiter, shared, settled.charged_at, charge.cost, settled.actual));
}

KeyTable::KeyTable(std::size_t max_keys) : impl_(std::make_unique<Impl>(max_keys)) {}
KeyTable::~KeyTable() = default;

bool KeyTable::charge(std::span<const Charge> charges, base::TimePoint now, std::span<Outcome> outcomes,
                      HybridTimestamp* timestamp, Violations violations) {
  assert(charges.size() == outcomes.size() && charges.size() <= kMaxCharges);
  Impl::Locks locks(*impl_, charges);
  const HybridTimestamp taken = locks.take_timestamp(now);
  if (timestamp != nullptr) *timestamp = taken;
  boost::container::static_vector<Impl::ChargeCheck, kMaxCharges> lines;
  bool admitted = true;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    Impl::ChargeCheck& line = lines.emplace_back(impl_->check(charges[i], now, locks));
    if (follows(charges, i)) [[unlikely]]
      impl_->check_counted(charges[i], lines[i - 1], now, line, locks);
    // A slot that began as a copy of the overflow cell contains charges of other keys. So its refusal sets
    // Outcome::overflow, except for a check (cost 0). Otherwise an overdraft after the check would charge the
    // overflow cell instead of the key.
    if (line.inherits && !line.step.outcome.allowed && charges[i].cost != 0) [[unlikely]]
      line.step.outcome.overflow = true;
    if (charges[i].penalty != nullptr) [[unlikely]]
      impl_->apply_penalty(charges[i], now, charges[i].cost != 0 ? violations : Violations::None,
                           line.step.outcome);
    outcomes[i] = line.step.outcome;
    if (line.slot == nullptr && line.step.outcome.allowed) [[unlikely]]
      locks.note_overflow(charges[i], line.step.next);
    if (!charges[i].enforced || line.step.outcome.allowed) continue;
    admitted = false;
    if (outcomes[i].overflow) [[unlikely]]
      impl_->overflow.note_refusal();  // this thread holds the lock of the overflow cells
  }
  for (std::size_t i = 0; i < charges.size(); ++i)
    impl_->finish(charges[i], lines[i], admitted && lines[i].step.outcome.allowed && charges[i].cost != 0);
  return admitted;
}

void KeyTable::refund(std::span<const Charge> charges, base::TimePoint charged_at,
                      std::span<const Outcome> outcomes, base::TimePoint now) {
  for (std::size_t i = 0; i < charges.size(); ++i)
    if (outcomes[i].allowed) refund(charges[i], charged_at + outcomes[i].delay, now, outcomes[i].overflow);
}

namespace {

// Convert a cost from the units of the limiter of `unresolved` to the units of the limiter of `charge`. The
// units differ if a reload has changed the limiter since the charge. converted_refund() rounds down, and
// converted_debt() rounds up.
Cost converted_refund(const Charge& unresolved, const Charge& charge, Cost cost) noexcept {
  return unresolved.limiter == charge.limiter ? cost
                                              : rescaled_refund(*unresolved.limiter, cost, *charge.limiter);
}
Cost converted_debt(const Charge& unresolved, const Charge& charge, Cost cost) noexcept {
  return unresolved.limiter == charge.limiter ? cost
                                              : rescaled_debt(*unresolved.limiter, cost, *charge.limiter);
}

}  // namespace

bool KeyTable::refund(const Charge& unresolved, base::TimePoint departure, base::TimePoint now, bool overflow,
                      HybridTimestamp* timestamp) {
  return impl_->change_charged_state(
      unresolved, {timestamp_at(departure), overflow, now, timestamp},
      [&](const Charge& charge, const Cell& cell) {
        return limit::refund(*charge.limiter, cell, departure,
                             converted_refund(unresolved, charge, unresolved.cost));
      },
      [&](const Charge& charge, const SlidingLog& limiter, Log& log) {
        return impl_->settle_log(limiter, charge.rule, log, {departure, 0, now},
                                 converted_refund(unresolved, charge, unresolved.cost));
      });
}

void KeyTable::release(const Charge& unresolved, base::TimePoint now, const Ending& ending, bool overflow,
                       HybridTimestamp* timestamp) {
  // Passes the latest possible timestamp, because change_charged_state() ignores a charge from before a reset
  // of its key, and a release must never be ignored. (A key with permits is never reset.)
  constexpr HybridTimestamp kSinceAnyReset = std::numeric_limits<HybridTimestamp>::max();
  (void)impl_->change_charged_state(
      unresolved, {kSinceAnyReset, overflow, now, timestamp},
      [&](const Charge& charge, const Cell& cell) {
        return limit::release(*charge.limiter, cell, now, unresolved.cost, ending);
      },
      [](const Charge&, const SlidingLog&, Log&) { return false; });
}

void KeyTable::settle(const Charge& unresolved, const Settled& settled, bool overflow,
                      HybridTimestamp* timestamp) {
  if (settled.actual == unresolved.cost) return;
  const auto change = [&](const Charge& charge, const Cell& cell) {
    const auto reserved = converted_refund(unresolved, charge, unresolved.cost);
    const auto actual = converted_debt(unresolved, charge, settled.actual);
    // In the old units, the actual cost is lower than the reserved cost. It is higher here only because the
    // conversion to the new limiter's units rounds. So charges nothing more.
    if (actual > reserved && settled.actual < unresolved.cost) return cell;
    return limit::settle(*charge.limiter, cell, settled.charged_at, reserved, actual);
  };
  const auto change_log = [&](const Charge& charge, const SlidingLog& limiter, Log& log) {
    const auto reserved = converted_refund(unresolved, charge, unresolved.cost);
    const auto actual = converted_debt(unresolved, charge, settled.actual);
    if (actual > reserved && settled.actual < unresolved.cost) return false;
    return impl_->settle_log(limiter, charge.rule, log, {settled.charged_at, actual, settled.now}, reserved);
  };
  const auto on_evicted = [&](Shard& shard) { impl_->settle_evicted(unresolved, settled, shard); };
  (void)impl_->change_charged_state(unresolved,
                                    {timestamp_at(settled.charged_at), overflow, settled.now, timestamp},
                                    change, change_log, on_evicted);
}

bool KeyTable::forget(const Key& key, base::TimePoint now, HybridTimestamp* timestamp) {
  Shard& shard = impl_->shard_of(key);
  const std::lock_guard lock(shard.mutex);
  shard.timestamp = timestamp_after(shard.timestamp, now);
  if (timestamp != nullptr) *timestamp = shard.timestamp;
  // Notes the reset even if the key was evicted. Otherwise a charge from before the reset could still be
  // settled, in a new state of the key.
  impl_->resets.note(key, shard.timestamp);
  shard.note_reset();
  const bool had_penalty = shard.penalties.forget(key);
  Slot* slot = shard.find(key);
  if (slot == nullptr) return had_penalty;
  shard.release(*slot);
  return true;
}

std::size_t KeyTable::sweep(base::TimePoint now, std::size_t buckets) {
  const std::uint64_t all = impl_->shape.shards * impl_->shape.buckets;
  const std::uint64_t count = std::min<std::uint64_t>(buckets, all);
  const std::uint64_t first = impl_->next_bucket.fetch_add(count, std::memory_order_relaxed);
  std::size_t forgotten = 0;
  for (std::uint64_t i = first; i != first + count; ++i) {
    const std::uint64_t bucket = i % all;
    Shard& shard = impl_->shards[bucket / impl_->shape.buckets];
    const std::lock_guard lock(shard.mutex);  // held for one bucket only, so that requests wait briefly
    forgotten += shard.sweep(static_cast<std::uint32_t>(bucket % impl_->shape.buckets), now);
    if (bucket % impl_->shape.buckets == 0) shard.penalties.sweep(now);
  }
  return forgotten;
}

}  // namespace weir::limit
