#include "limit/table/penalty_table.hpp"

#include <new>

namespace weir::limit {

std::size_t PenaltyTable::bytes_of(const Entry& entry) noexcept {
  return kEntryBytes + kBytesPerTime * (entry.state.violations.size() + entry.state.begins.size());
}

bool PenaltyTable::has_room(std::uint16_t account, std::size_t bytes) const noexcept {
  const std::size_t own = by_account_.empty() ? 0 : by_account_[account];
  return used_ + own + bytes <= bytes_;
}

void PenaltyTable::pay(std::uint16_t account, std::size_t bytes) noexcept {
  by_account_[account] += bytes;
  used_ += bytes;
}

void PenaltyTable::give_back(std::uint16_t account, std::size_t bytes) noexcept {
  by_account_[account] -= bytes;
  used_ -= bytes;
}

const PenaltyState* PenaltyTable::find(const Key& key) const noexcept {
  if (entries_.empty()) return nullptr;
  const auto found = entries_.find(key);
  return found != entries_.end() ? &found->second.state : nullptr;
}

bool PenaltyTable::violate(const Key& key, RuleIndex rule, const Penalty& penalty,
                           base::TimePoint now) noexcept {
  constexpr std::size_t kMostAdded = kEntryBytes + kBytesPerTime;
  try {
    if (!has_room(rule, kMostAdded)) sweep(now);
    if (has_room(rule, kMostAdded)) return violate_or_throw(key, rule, penalty, now);
  } catch (const std::bad_alloc&) {  // nothing has changed
  }
  ++lost_;
  return false;
}

bool PenaltyTable::violate_or_throw(const Key& key, RuleIndex rule, const Penalty& penalty,
                                    base::TimePoint now) {
  if (by_account_.empty()) by_account_.resize(kMaxRules + std::size_t{1});
  PenaltyState next;
  const auto found = entries_.find(key);
  if (found != entries_.end()) next = found->second.state;
  const bool begins = limit::violate(penalty, next, now);
  Entry entry{std::move(next), {}, rule};
  entry.forgotten_at = penalty_forgotten_at(penalty, entry.state);
  const auto bytes = bytes_of(entry);
  if (found != entries_.end()) {
    give_back(found->second.account, bytes_of(found->second));
    found->second = std::move(entry);
  } else {
    entries_.emplace(key, std::move(entry));
  }
  pay(rule, bytes);
  return begins;
}

bool PenaltyTable::forget(const Key& key) noexcept {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  give_back(found->second.account, bytes_of(found->second));
  entries_.erase(found);
  return true;
}

void PenaltyTable::sweep(base::TimePoint now) noexcept {
  if (entries_.empty()) return;
  erase_if(entries_, [&](const auto& each) {
    const bool gone = each.second.forgotten_at <= now;
    if (gone) give_back(each.second.account, bytes_of(each.second));
    return gone;
  });
}

bool PenaltyTable::restore(const SavedPenalty& saved) noexcept {
  try {
    if (entries_.contains(saved.key)) return true;
    if (by_account_.empty()) by_account_.resize(kMaxRules + std::size_t{1});
    Entry entry{saved.state, saved.forgotten_at, kRestored};
    const auto bytes = bytes_of(entry);
    if (used_ + bytes > bytes_) return false;
    entries_.emplace(saved.key, std::move(entry));
    pay(kRestored, bytes);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace weir::limit
