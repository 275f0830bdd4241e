#include "weir/limit/foreign_permits.hpp"

#include <algorithm>

namespace weir::limit {

void ForeignPermits::change(Charge charge, std::int64_t units, base::TimePoint now) {
  if (units > 0) {
    charge.cost = static_cast<Cost>(units);
    const auto entry = entries_.emplace(charge.key, Entry{charge, false});
    entry->second.overflow = table_.hold(charge, now);
    units_ += charge.cost;
    return;
  }
  auto fewer = static_cast<Cost>(-units);
  while (fewer != 0) {
    const auto found = entries_.find(charge.key);
    if (found == entries_.end()) return;
    auto& [held, overflow] = found->second;
    Charge back = held;
    back.cost = std::min(held.cost, fewer);
    table_.release(back, now, {}, overflow);
    fewer -= back.cost;
    held.cost -= back.cost;
    units_ -= back.cost;
    if (held.cost == 0) entries_.erase(found);
  }
}

std::vector<RuleIndex> ForeignPermits::rules() const {
  std::vector<RuleIndex> rules;
  rules.reserve(entries_.size());
  for (const auto& [key, entry] : entries_) rules.push_back(entry.charge.rule);
  return rules;
}

void ForeignPermits::release_all(base::TimePoint now) {
  for (const auto& [key, entry] : entries_) table_.release(entry.charge, now, {}, entry.overflow);
  entries_.clear();
  units_ = 0;
}

}  // namespace weir::limit
