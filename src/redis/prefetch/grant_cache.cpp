#include "redis/prefetch/grant_cache.hpp"

#include "weir/limit/limiter.hpp"

#include <algorithm>
#include <utility>

namespace weir::redis {

using limit::Cost;

GrantCache::GrantCache(std::size_t keys, base::Duration hold)
    : hold_(hold), span_(hold / 4), entries_((std::max<std::size_t>(keys, 1) + kWays - 1) / kWays * kWays) {}

Cost GrantCache::Entry::ready(Time now) const noexcept {
  Cost units = 0;
  for (const Grant& grant : grants) units += grant.ready(now);
  return units;
}

bool GrantCache::Entry::holds() const noexcept {
  return waits_for_grant ||
         std::any_of(grants.begin(), grants.end(), [](const Grant& grant) { return grant.left() > 0; });
}

// Limits `units`, the size of a grant. The upper bound is the rule's `lease`, or kFirst units if the lease is
// smaller. The lower bound is the cost of kFirst requests, or the upper bound if that is smaller.
Cost GrantCache::Entry::bounded(Cost units) const noexcept {
  return std::min(std::max(units, kFirst * request_cost), std::max(charge.lease, kFirst));
}

Grant* GrantCache::Entry::grant_of(Cost cost, Time now) noexcept {
  Grant* first = nullptr;
  for (Grant& grant : grants)
    if (grant.ready(now) >= cost && (first == nullptr || first->ends_later_than(grant))) first = &grant;
  return first;
}

// Returns the element of `grants` in which to put a new grant; null if every grant has enough units for a
// request. Prefers an element that never had a grant, then the oldest used-up grant, then the oldest grant
// with too few units for a request. A used-up grant is not the first choice, because a request may still put
// units back into this grant.
Grant* GrantCache::Entry::room(Time now) noexcept {
  Grant* best = nullptr;
  const auto before = [](const Grant& a, const Grant& b) {
    if ((a.left() == 0) != (b.left() == 0)) return a.left() == 0;
    return a.number() < b.number();
  };
  for (Grant& grant : grants)
    if (grant.ready(now) < request_cost && (best == nullptr || before(grant, *best))) best = &grant;
  return best;
}

GrantCache::Entry* GrantCache::find(const limit::Charge& charge) noexcept {
  for (std::size_t i = set_of(charge); i < set_of(charge) + kWays; ++i)
    if (entries_[i].charge.limiter == charge.limiter && entries_[i].charge.key == charge.key)
      return &entries_[i];
  return nullptr;
}

GrantCache::Entry* GrantCache::find_or_make(const limit::Charge& charge) noexcept {
  if (Entry* entry = find(charge)) return entry;
  Entry* oldest = nullptr;
  for (std::size_t i = set_of(charge); i < set_of(charge) + kWays; ++i)
    if (!entries_[i].holds() && (oldest == nullptr || entries_[i].used < oldest->used)) oldest = &entries_[i];
  if (oldest == nullptr) {
    ++stats_.rejected_keys;
    return nullptr;
  }
  for (const Grant& grant : oldest->grants) stats_.lost += grant.expired();
  *oldest = Entry{};
  oldest->charge = charge;
  return oldest;
}

bool GrantCache::spend(const limit::Charge& charge, Time now, limit::Outcome& outcome) {
  Entry* entry = find(charge);
  Grant* grant = entry != nullptr ? entry->grant_of(charge.cost, now) : nullptr;
  if (grant == nullptr) return false;
  stats_.spent += charge.cost;
  entry->used = now;
  const auto whole = grant->reset_after(now);
  // Both times are upper bounds: weir may prefetch more units earlier.
  outcome = {.allowed = true, .reset_after = whole, .more_after = whole};
  grant->spend(charge.cost, now, outcome);
  outcome.ahead = clock_ahead(grant->redis_now(now), outcome.debited_at);
  outcome.remaining = entry->ready(now);
  return true;
}

bool GrantCache::peek(const limit::Charge& charge, Time now, limit::Outcome& outcome) {
  Entry* entry = find(charge);
  const Grant* grant = entry != nullptr ? entry->grant_of(limit::units_to_fit(charge), now) : nullptr;
  if (grant == nullptr) return false;
  const auto whole = grant->reset_after(now);
  outcome = {.allowed = true, .remaining = entry->ready(now), .reset_after = whole, .more_after = whole};
  outcome.debited_at = grant->redis_now(now);
  return true;
}

void GrantCache::put_back(const limit::Charge& charge, const limit::Outcome& outcome,
                          std::vector<Refund>& back) {
  stats_.put_back += charge.cost;
  Entry* entry = find(charge);
  if (entry != nullptr && entry->put_back(charge, outcome, next_number(), stats_)) return;
  stats_.returned += charge.cost;
  back.push_back(refund_of(charge, outcome.debited_at, outcome));
}

bool GrantCache::Entry::put_back(const limit::Charge& units, const limit::Outcome& outcome,
                                 std::uint32_t number, GrantStats& stats) noexcept {
  Grant* empty = nullptr;
  for (Grant& grant : grants) {
    if (grant.put_back(units, outcome)) return true;
    if (grant.left() == 0 && (empty == nullptr || grant.number() < empty->number())) empty = &grant;
  }
  if (empty == nullptr) return false;
  for (const Grant& grant : grants)
    if (const auto new_grant = grant.grant_for_spent(number, units, outcome)) {
      stats.lost += empty->expired();
      *empty = *new_grant;
      return true;
    }
  return false;
}

void GrantCache::note_trip(const limit::Charge& charge, Time now) {
  Entry* entry = find_or_make(charge);
  if (entry == nullptr) return;
  entry->used = now;
  if (entry->trips == 0 || now - entry->trips_since > span_) {
    entry->trips_since = now;
    entry->trips = 0;
  }
  ++entry->trips;
  entry->request_cost = charge.cost;
  if (entry->size == 0 && entry->trips >= kHot) entry->size = entry->bounded(0);
}

void GrantCache::learn(const limit::Charge& charge, const limit::Outcome& outcome) {
  if (Entry* entry = find(charge)) entry->known = outcome.remaining;
}

Cost GrantCache::wanted(const limit::Charge& charge, Time now) {
  Entry* entry = find(charge);
  if (entry == nullptr || entry->size == 0 || entry->waits_for_grant || now < entry->paused_until) return 0;
  if (entry->grant_of(charge.cost, now) != nullptr && entry->ready(now) > entry->size / 4) return 0;
  entry->request_cost = charge.cost;
  if (entry->room(now) == nullptr) return 0;
  adapt(*entry, now);
  auto units = std::min({entry->size, charge.lease, entry->known / kShare});
  entry->size = entry->bounded(units);
  units -= units % charge.cost;
  if (units < kLeast * charge.cost) return 0;
  entry->waits_for_grant = true;
  entry->forgotten = false;
  entry->asked_at = now;
  return units;
}

// Sets the size of the next grant. Doubles the size if the last grant was requested less than a span ago.
// Halves the size if the last grant was requested more than four spans ago.
void GrantCache::adapt(Entry& entry, Time now) const noexcept {
  if (entry.asked_at == Time{}) return;
  const auto enough_for = now - entry.asked_at;
  if (enough_for < span_)
    entry.size = entry.bounded(2 * entry.size);
  else if (enough_for > 4 * span_)
    entry.size = entry.bounded(entry.size / 2);
}

std::uint32_t GrantCache::next_number() noexcept {
  if (++grants_ == 0) ++grants_;
  return grants_;
}

void GrantCache::arrived(const limit::Charge& charge, const RoundTrip& trip, const limit::Outcome& outcome,
                         std::vector<Refund>& back) {
  // The entry still exists, because no other key replaces an entry that waits for a grant
  // (`waits_for_grant`).
  Entry* entry = find(charge);
  if (entry == nullptr) return;
  entry->waits_for_grant = false;
  entry->known = outcome.remaining;
  if (!outcome.allowed) return;
  stats_.taken += charge.cost;
  // Drops the units if the key was reset meanwhile, because the reset may have erased their debit in Redis.
  if (std::exchange(entry->forgotten, false)) {
    stats_.lost += charge.cost;
    return;
  }
  keep(*entry, Grant(next_number(), charge, trip, outcome.reset_after), trip.received, back);
}

// Adds a grant (prefetched units) to the entry of its key. Merges grants of one window, because their units
// are interchangeable. Any other grant gets the element that room() chooses, or is disposed of if room()
// finds none.
void GrantCache::keep(Entry& entry, const Grant& fresh, Time now, std::vector<Refund>& back) {
  for (Grant& grant : entry.grants)
    if (grant.merge(fresh)) return;
  if (Grant* room = entry.room(now)) {
    dispose(entry.charge, *room, now, back);
    *room = fresh;
  } else {
    auto surplus = fresh;
    dispose(entry.charge, surplus, now, back);
  }
}

// Empties a grant (prefetched units). Appends a refund of its unspent units to `back`, if Redis would accept
// the refund.
void GrantCache::dispose(const limit::Charge& charge, Grant& grant, Time now, std::vector<Refund>& back) {
  if (const auto refund = grant.refund_of_unspent(charge, now)) {
    // If push_back() throws, the grant still has its units, because it is emptied only below.
    back.push_back(*refund);
    stats_.returned += grant.left();
  } else {
    stats_.lost += grant.left();
  }
  stats_.lost += grant.expired();
  grant = Grant();
}

void GrantCache::failed(const limit::Charge& charge, Time now) {
  Entry* entry = find(charge);
  if (entry == nullptr) return;
  entry->waits_for_grant = false;
  entry->paused_until = now + span_;
}

void GrantCache::forget(const limit::Charge& charge) noexcept {
  Entry* entry = find(charge);
  if (entry == nullptr) return;
  for (Grant& grant : entry->grants) {
    stats_.lost += grant.left() + grant.expired();
    grant = Grant{};
  }
  entry->size = 0;
  entry->trips = 0;
  entry->forgotten = entry->waits_for_grant;
}

void GrantCache::sweep(Time now, std::vector<Refund>& back, std::size_t most) {
  for (Entry& entry : entries_)
    if (entry.charge.limiter != nullptr && back.size() < most) sweep(entry, now, back);
}

// Disposes of grants of one key. Units that Redis would not take back are lost.
// * If no request has used the key for `hold`: disposes of all its grants, and frees the entry unless it
//   waits for a grant.
// * Otherwise: disposes of a grant whose units have all expired, and of a window's grant older than `hold`.
//   For each window's grant older than `hold`, halves the size of the key's next grant.
void GrantCache::sweep(Entry& entry, Time now, std::vector<Refund>& back) {
  const bool idle = now - entry.used >= hold_;
  const bool window = limit::gcra_core(*entry.charge.limiter) == nullptr;
  for (Grant& grant : entry.grants) {
    const bool old = window && grant.left() > 0 && now - grant.received() >= hold_;
    if (old) entry.size = entry.bounded(entry.size / 2);
    if (idle || old || (grant.left() > 0 && grant.ready(now) == 0)) dispose(entry.charge, grant, now, back);
  }
  if (idle && !entry.waits_for_grant) entry = Entry{};
}

void GrantCache::give_up(Time now, std::vector<Refund>& back, std::size_t most) {
  for (Entry& entry : entries_) {
    if (entry.charge.limiter == nullptr || back.size() >= most) continue;
    for (Grant& grant : entry.grants) dispose(entry.charge, grant, now, back);
  }
}

}  // namespace weir::redis
