#include "weir/limit/held_elsewhere.hpp"

#include <algorithm>

namespace weir::limit {

void HeldElsewhere::change(Charge charge, std::int64_t units, base::TimePoint now) {
  if (units > 0) {
    charge.cost = static_cast<Cost>(units);
    const auto place = places_.emplace(charge.key, Place{charge, false});
    place->second.overflow = table_.hold(charge, now);
    units_ += charge.cost;
    return;
  }
  auto fewer = static_cast<Cost>(-units);
  while (fewer != 0) {
    const auto found = places_.find(charge.key);
    if (found == places_.end()) return;
    auto& [held, overflow] = found->second;
    Charge back = held;
    back.cost = std::min(held.cost, fewer);
    table_.release(back, now, {}, overflow);
    fewer -= back.cost;
    held.cost -= back.cost;
    units_ -= back.cost;
    if (held.cost == 0) places_.erase(found);
  }
}

std::vector<RuleIndex> HeldElsewhere::rules() const {
  std::vector<RuleIndex> rules;
  rules.reserve(places_.size());
  for (const auto& [key, place] : places_) rules.push_back(place.charge.rule);
  return rules;
}

void HeldElsewhere::give_back_all(base::TimePoint now) {
  for (const auto& [key, place] : places_) table_.release(place.charge, now, {}, place.overflow);
  places_.clear();
  units_ = 0;
}

}  // namespace weir::limit
