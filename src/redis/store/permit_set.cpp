#include "redis/store/permit_set.hpp"

#include <algorithm>

namespace weir::redis {

namespace {

// The most permits that one call of refund.lua renews or releases. Redis needs less than a millisecond for so
// many.
constexpr std::size_t kAtOnce = 256;

}  // namespace

PermitSet::PermitSet(std::uint64_t holder, base::Duration lease) noexcept
    : holder_(holder % static_cast<std::uint64_t>(kMostMicros)), lease_(lease) {}

void PermitSet::hold(const limit::Charge& charge, std::uint64_t serial) {
  put(charge, serial, true);
}

void PermitSet::hold_without_redis(const limit::Charge& charge) {
  put(charge, ++serial_, false);
}

void PermitSet::put(const limit::Charge& charge, std::uint64_t serial, bool in_redis) {
  const auto [found, is_new] = entries_.try_emplace(charge.key);
  try {
    found->second.push_back({charge, serial, in_redis});
  } catch (...) {
    if (is_new) entries_.erase(found);  // a key in entries_ must have at least one entry
    throw;
  }
}

std::optional<Refund> PermitSet::release(const limit::Charge& charge) {
  const auto found = entries_.find(charge.key);
  if (found == entries_.end()) return std::nullopt;
  auto& entries = found->second;
  const auto last = std::find_if(entries.rbegin(), entries.rend(),
                                 [&](const Entry& entry) { return entry.charge.cost == charge.cost; });
  if (last == entries.rend()) return std::nullopt;
  const Entry entry = *last;
  *last = entries.back();
  entries.pop_back();
  if (entries.empty()) entries_.erase(found);
  if (!entry.in_redis) return std::nullopt;
  return refund_for(entry, 0);
}

bool PermitSet::is_released_since(const Refund& refund) const noexcept {
  if (!renews(refund)) return false;
  const auto found = entries_.find(refund.charge.key);
  return found == entries_.end() ||
         std::none_of(found->second.begin(), found->second.end(),
                      [&](const Entry& entry) { return entry.serial == refund.hold.serial; });
}

Refund PermitSet::refund_for(const Entry& entry, limit::Cost actual) const noexcept {
  return {entry.charge, {}, actual, of(entry.serial)};
}

template <class Take>
void PermitSet::visit(Take take, const std::function<void(std::span<const Refund>)>& send) {
  std::vector<Refund> lines;
  for (auto& [key, entries] : entries_) {
    for (Entry& entry : entries) {
      take(entry, lines);
      if (lines.size() < kAtOnce) continue;
      send(lines);
      lines.clear();
    }
  }
  if (!lines.empty()) send(lines);
}

void PermitSet::renew(const std::function<void(std::span<const Refund>)>& send) {
  visit(
      [this](Entry& entry, std::vector<Refund>& lines) {
        entry.in_redis = true;
        lines.push_back(refund_for(entry, entry.charge.cost));
      },
      send);
}

void PermitSet::give_up(const std::function<void(std::span<const Refund>)>& send) {
  visit(
      [this](const Entry& entry, std::vector<Refund>& lines) {
        if (entry.in_redis) lines.push_back(refund_for(entry, 0));
      },
      send);
  entries_.clear();
}

}  // namespace weir::redis
