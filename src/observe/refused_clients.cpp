#include "weir/observe/refused_clients.hpp"

#include <algorithm>
#include <utility>

namespace weir::observe {

RefusedClients::RuleClients* RefusedClients::find(limit::RuleIndex rule) noexcept {
  const auto found = std::find_if(watched_.begin(), watched_.end(),
                                  [&](const RuleClients& watched) { return watched.rule == rule; });
  return found == watched_.end() ? nullptr : &*found;
}

void RefusedClients::add(const policy::Rule& rule, const limit::Key& key, const policy::Request& request) {
  const std::lock_guard lock(mutex_);
  auto* const watched = find(rule.index);
  if (watched == nullptr) return;
  const auto write = [&](std::span<char> room) {
    return policy::write_client(room, rule.key, request).size();
  };
  watched->refusals.add(key, 1, write);
}

bool RefusedClients::watches(std::span<const limit::RuleIndex> rules) {
  const std::lock_guard lock(mutex_);
  return std::equal(rules.begin(), rules.end(), watched_.begin(), watched_.end(),
                    [](limit::RuleIndex rule, const RuleClients& watched) { return rule == watched.rule; });
}

// Allocates the new list before it takes the lock, so that the worker never waits for an allocation.
void RefusedClients::watch(std::span<const limit::RuleIndex> rules) {
  if (watches(rules)) return;
  std::vector<RuleClients> next;
  next.reserve(rules.size());
  for (const auto rule : rules) next.push_back({.rule = rule});
  const std::lock_guard lock(mutex_);
  for (auto& watched : next)
    if (auto* const before = find(watched.rule)) std::swap(watched.refusals, before->refusals);
  watched_.swap(next);
  on_.store(!watched_.empty(), std::memory_order_relaxed);
}

void RefusedClients::take(limit::RuleIndex rule, SpaceSaving& counts) {
  const std::lock_guard lock(mutex_);
  if (auto* const watched = find(rule)) std::swap(watched->refusals, counts);
}

void RefusedClients::forget(limit::RuleIndex rule) {
  const std::lock_guard lock(mutex_);
  if (auto* const watched = find(rule)) watched->refusals.clear();
}

}  // namespace weir::observe
