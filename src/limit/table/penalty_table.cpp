#include "limit/table/penalty_table.hpp"

#include <chrono>
#include <new>
#include <utility>

namespace weir::limit {

std::size_t PenaltyTable::bytes_of(const Entry& entry) noexcept {
  return kEntryBytes + kBytesPerTime * (entry.state.violations.size() + entry.state.begins.size());
}

bool PenaltyTable::has_room(std::uint16_t account, std::size_t bytes) const noexcept {
  const auto found = by_account_.find(account);
  const std::size_t own = found != by_account_.end() ? found->second : kAccountBytes;
  return used() + own + bytes <= bytes_;
}

void PenaltyTable::release_bytes(const Entry& entry) noexcept {
  const auto bytes = bytes_of(entry);
  used_ -= bytes;
  by_account_.find(entry.account)->second -= bytes;
  drop_unused(entry.account);
}

void PenaltyTable::drop_unused(std::uint16_t account) noexcept {
  const auto found = by_account_.find(account);
  if (found != by_account_.end() && found->second == 0) by_account_.erase(found);
}

const PenaltyState* PenaltyTable::find(const Key& key) const noexcept {
  if (entries_.empty()) return nullptr;
  const auto found = entries_.find(key);
  return found != entries_.end() ? &found->second.state : nullptr;
}

bool PenaltyTable::violate(const Key& key, RuleIndex rule, const Penalty& penalty,
                           base::TimePoint now) noexcept {
  constexpr std::size_t kMostAdded = kEntryBytes + kBytesPerTime;
  constexpr std::chrono::seconds kBetweenSweeps{1};
  try {
    if (!has_room(rule, kMostAdded) && now >= next_sweep_) {
      sweep(now);
      next_sweep_ = now + kBetweenSweeps;
    }
    if (has_room(rule, kMostAdded)) return violate_or_throw(key, rule, penalty, now);
  } catch (const std::bad_alloc&) {
    // Before it threw, violate_or_throw() may have added an empty account for the rule. It has changed
    // nothing else, because its other changes follow its last allocation.
    drop_unused(rule);
  }
  ++lost_;
  return false;
}

bool PenaltyTable::violate_or_throw(const Key& key, RuleIndex rule, const Penalty& penalty,
                                    base::TimePoint now) {
  PenaltyState next;
  if (const auto* const present = find(key)) next = *present;
  const bool begins = limit::violate(penalty, next, now);
  Entry entry{std::move(next), {}, rule};
  entry.forgotten_at = penalty_forgotten_at(penalty, entry.state);
  const auto bytes = bytes_of(entry);
  auto& account = by_account_[rule];
  const auto [at, is_new] = entries_.try_emplace(key);
  account += bytes;
  used_ += bytes;
  if (!is_new) release_bytes(at->second);
  at->second = std::move(entry);
  return begins;
}

bool PenaltyTable::forget(const Key& key) noexcept {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  release_bytes(found->second);
  entries_.erase(found);
  return true;
}

void PenaltyTable::sweep(base::TimePoint now) noexcept {
  if (entries_.empty()) return;
  erase_if(entries_, [&](const auto& each) {
    const bool is_forgotten = each.second.forgotten_at <= now;
    if (is_forgotten) release_bytes(each.second);
    return is_forgotten;
  });
}

bool PenaltyTable::restore(const SavedPenalty& saved) noexcept {
  try {
    if (entries_.contains(saved.key)) return true;
    Entry entry{saved.state, saved.forgotten_at, kRestored};
    const auto bytes = bytes_of(entry);
    if (used() + kAccountBytes + bytes > bytes_) return false;
    auto& account = by_account_[kRestored];
    entries_.emplace(saved.key, std::move(entry));
    account += bytes;
    used_ += bytes;
    return true;
  } catch (const std::bad_alloc&) {
    drop_unused(kRestored);
    return false;
  }
}

}  // namespace weir::limit
