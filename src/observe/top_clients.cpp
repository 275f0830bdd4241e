#include "weir/observe/top_clients.hpp"

#include <algorithm>
#include <utility>

namespace weir::observe {

void TopClients::turn(std::unique_ptr<Generations>& generations, base::TimePoint now) {
  if (!generations) {
    generations = std::make_unique<Generations>(capacity_);
    generations->before.since = generations->now.since = now;
    return;
  }
  auto& [current, before] = *generations;
  std::swap(current, before);
  current.admitted.clear();
  current.refused.clear();
  current.since = now;
  if (now - before.since < 2 * kGeneration) return;
  before.admitted.clear();  // the rule had no request for a whole generation
  before.refused.clear();
  before.since = now;
}

void TopClients::read(limit::RuleIndex rule, base::TimePoint now, std::optional<TopOfRule>& all) const {
  // Allocates the copy before it takes the lock, so that the worker never waits for an allocation.
  Generations copy(capacity_);
  {
    const std::lock_guard lock(mutex_);
    if (!rules_[rule]) return;
    copy = *rules_[rule];
  }
  for (const auto* one : {&copy.before, &copy.now}) {
    if (now - one->since >= 2 * kGeneration) continue;
    if (!all) all.emplace(TopOfRule{SpaceSaving(capacity_), SpaceSaving(capacity_), one->since});
    all->admitted.merge(one->admitted);
    all->refused.merge(one->refused);
    all->since = std::min(all->since, one->since);
  }
}

void TopClients::forget(limit::RuleIndex rule) {
  const std::lock_guard lock(mutex_);
  rules_[rule].reset();
}

std::size_t TopClients::memory() const {
  const std::lock_guard lock(mutex_);
  const auto used =
      std::count_if(rules_.begin(), rules_.end(), [](const auto& rule) { return rule != nullptr; });
  return sizeof *this + static_cast<std::size_t>(used) * 4 * SpaceSaving::size_of(capacity_);
}

}  // namespace weir::observe
