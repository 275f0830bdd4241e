#include "redis/store/leases.hpp"

#include <algorithm>

namespace weir::redis {

namespace {

// Lines of one call, which take Redis less than a millisecond.
constexpr std::size_t kAtOnce = 256;

}  // namespace

Leases::Leases(std::uint64_t holder, base::Duration lease) noexcept
    : holder_(holder % static_cast<std::uint64_t>(kMostMicros)), lease_(lease) {}

void Leases::hold(const limit::Charge& charge, std::uint64_t serial) {
  put(charge, serial, true);
}

void Leases::hold_unasked(const limit::Charge& charge) {
  put(charge, ++serial_, false);
}

void Leases::put(const limit::Charge& charge, std::uint64_t serial, bool known) {
  const auto [found, is_new] = places_.try_emplace(charge.key);
  try {
    found->second.push_back({charge, serial, known});
  } catch (...) {
    if (is_new) places_.erase(found);  // so that no key without places remains
    throw;
  }
}

std::optional<Refund> Leases::release(const limit::Charge& charge) {
  const auto found = places_.find(charge.key);
  if (found == places_.end()) return std::nullopt;
  auto& places = found->second;
  const auto last = std::find_if(places.rbegin(), places.rend(),
                                 [&](const Place& place) { return place.charge.cost == charge.cost; });
  if (last == places.rend()) return std::nullopt;
  const Place place = *last;
  *last = places.back();
  places.pop_back();
  if (places.empty()) places_.erase(found);
  if (!place.known) return std::nullopt;
  return amendment(place, 0);
}

bool Leases::is_outlived(const Refund& line) const noexcept {
  if (!renews(line)) return false;
  const auto found = places_.find(line.charge.key);
  return found == places_.end() ||
         std::none_of(found->second.begin(), found->second.end(),
                      [&](const Place& place) { return place.serial == line.hold.serial; });
}

Refund Leases::amendment(const Place& place, limit::Cost actual) const noexcept {
  return {place.charge, {}, actual, of(place.serial)};
}

template <class Take>
void Leases::visit(Take take, const std::function<void(std::span<const Refund>)>& tell) {
  std::vector<Refund> lines;
  for (auto& [key, places] : places_) {
    for (Place& place : places) {
      take(place, lines);
      if (lines.size() < kAtOnce) continue;
      tell(lines);
      lines.clear();
    }
  }
  if (!lines.empty()) tell(lines);
}

void Leases::renew(const std::function<void(std::span<const Refund>)>& tell) {
  visit(
      [this](Place& place, std::vector<Refund>& lines) {
        place.known = true;
        lines.push_back(amendment(place, place.charge.cost));
      },
      tell);
}

void Leases::give_up(const std::function<void(std::span<const Refund>)>& tell) {
  visit(
      [this](const Place& place, std::vector<Refund>& lines) {
        if (place.known) lines.push_back(amendment(place, 0));
      },
      tell);
  places_.clear();
}

}  // namespace weir::redis
