#include "redis/prefetch/stock.hpp"

#include "weir/limit/limiter.hpp"

#include <algorithm>
#include <utility>

namespace weir::redis {

using limit::Cost;

Stock::Stock(std::size_t keys, base::Duration hold)
    : hold_(hold), span_(hold / 4), places_((std::max<std::size_t>(keys, 1) + kWays - 1) / kWays * kWays) {}

Cost Stock::Place::ready(Time now) const noexcept {
  Cost units = 0;
  for (const Lot& lot : lots) units += lot.ready(now);
  return units;
}

bool Stock::Place::holds() const noexcept {
  return taking || std::any_of(lots.begin(), lots.end(), [](const Lot& lot) { return lot.left() > 0; });
}

// At least kFirst requests. At most the rule's `lease`, or kFirst units if that is more.
Cost Stock::Place::bounded(Cost units) const noexcept {
  return std::min(std::max(units, kFirst * request_cost), std::max(line.lease, kFirst));
}

Lot* Stock::Place::lot_of(Cost cost, Time now) noexcept {
  Lot* first = nullptr;
  for (Lot& lot : lots)
    if (lot.ready(now) >= cost && (first == nullptr || first->stands_behind(lot))) first = &lot;
  return first;
}

// Prefers an unused lot, then the oldest empty lot, then the oldest that is too small.
Lot* Stock::Place::room(Time now) noexcept {
  Lot* best = nullptr;
  const auto before = [](const Lot& a, const Lot& b) {
    if ((a.left() == 0) != (b.left() == 0)) return a.left() == 0;
    return a.number() < b.number();
  };
  for (Lot& lot : lots)
    if (lot.ready(now) < request_cost && (best == nullptr || before(lot, *best))) best = &lot;
  return best;
}

Stock::Place* Stock::find(const limit::Charge& line) noexcept {
  for (std::size_t i = set_of(line); i < set_of(line) + kWays; ++i)
    if (places_[i].line.limiter == line.limiter && places_[i].line.key == line.key) return &places_[i];
  return nullptr;
}

Stock::Place* Stock::find_or_make(const limit::Charge& line) noexcept {
  if (Place* place = find(line)) return place;
  Place* oldest = nullptr;
  for (std::size_t i = set_of(line); i < set_of(line) + kWays; ++i)
    if (!places_[i].holds() && (oldest == nullptr || places_[i].used < oldest->used)) oldest = &places_[i];
  if (oldest == nullptr) {
    ++stats_.crowded;
    return nullptr;
  }
  for (const Lot& lot : oldest->lots) stats_.lost += lot.gone();
  *oldest = Place{};
  oldest->line = line;
  return oldest;
}

bool Stock::spend(const limit::Charge& line, Time now, limit::Outcome& outcome) {
  Place* place = find(line);
  Lot* lot = place != nullptr ? place->lot_of(line.cost, now) : nullptr;
  if (lot == nullptr) return false;
  stats_.spent += line.cost;
  place->used = now;
  const auto whole = lot->whole_after(now);
  // `whole` is a bound: both come sooner if more units are taken.
  outcome = {.allowed = true, .reset_after = whole, .more_after = whole};
  lot->spend(line.cost, now, outcome);
  outcome.ahead = clock_ahead(lot->now_there(now), outcome.debited_at);
  outcome.remaining = place->ready(now);
  return true;
}

bool Stock::peek(const limit::Charge& line, Time now, limit::Outcome& outcome) {
  Place* place = find(line);
  const Lot* lot = place != nullptr ? place->lot_of(line.cost, now) : nullptr;
  if (lot == nullptr) return false;
  const auto whole = lot->whole_after(now);
  outcome = {.allowed = true, .remaining = place->ready(now), .reset_after = whole, .more_after = whole};
  outcome.debited_at = lot->now_there(now);
  return true;
}

void Stock::put_back(const limit::Charge& line, const limit::Outcome& outcome, std::vector<Refund>& back) {
  stats_.put_back += line.cost;
  Place* place = find(line);
  if (place != nullptr && place->put_back(line, outcome, next_number(), stats_)) return;
  stats_.returned += line.cost;
  back.push_back(refund_of(line, outcome.debited_at, outcome));
}

bool Stock::Place::put_back(const limit::Charge& units, const limit::Outcome& outcome, std::uint32_t number,
                            LeaseStats& stats) noexcept {
  Lot* empty = nullptr;
  for (Lot& lot : lots) {
    if (lot.put_back(units, outcome)) return true;
    if (lot.left() == 0 && (empty == nullptr || lot.number() < empty->number())) empty = &lot;
  }
  if (empty == nullptr) return false;
  for (const Lot& lot : lots)
    if (const auto apart = lot.apart(number, units, outcome)) {
      stats.lost += empty->gone();
      *empty = *apart;
      return true;
    }
  return false;
}

void Stock::note_trip(const limit::Charge& line, Time now) {
  Place* place = find_or_make(line);
  if (place == nullptr) return;
  place->used = now;
  if (place->trips == 0 || now - place->trips_since > span_) {
    place->trips_since = now;
    place->trips = 0;
  }
  ++place->trips;
  place->request_cost = line.cost;
  if (place->size == 0 && place->trips >= kHot) place->size = place->bounded(0);
}

void Stock::learn(const limit::Charge& line, const limit::Outcome& outcome) {
  if (Place* place = find(line)) place->known = outcome.remaining;
}

Cost Stock::wanted(const limit::Charge& line, Time now) {
  Place* place = find(line);
  if (place == nullptr || place->size == 0 || place->taking || now < place->rest_until) return 0;
  if (place->lot_of(line.cost, now) != nullptr && place->ready(now) > place->size / 4) return 0;
  place->request_cost = line.cost;
  if (place->room(now) == nullptr) return 0;
  adapt(*place, now);
  auto units = std::min({place->size, line.lease, place->known / kShare});
  place->size = place->bounded(units);
  units -= units % line.cost;
  if (units < kLeast * line.cost) return 0;
  place->taking = true;
  place->forgotten = false;
  place->taken = now;
  return units;
}

// Adapts the size of the next grant to how long the last one was enough.
void Stock::adapt(Place& place, Time now) const noexcept {
  if (place.taken == Time{}) return;
  const auto enough_for = now - place.taken;
  if (enough_for < span_)
    place.size = place.bounded(2 * place.size);
  else if (enough_for > 4 * span_)
    place.size = place.bounded(place.size / 2);
}

std::uint32_t Stock::next_number() noexcept {
  if (++lots_ == 0) ++lots_;
  return lots_;
}

void Stock::arrived(const limit::Charge& line, const Trip& trip, const limit::Outcome& outcome,
                    std::vector<Refund>& back) {
  Place* place = find(line);  // a key that waits for a grant is not replaced
  if (place == nullptr) return;
  place->taking = false;
  place->known = outcome.remaining;
  if (!outcome.allowed) return;
  stats_.taken += line.cost;
  if (std::exchange(place->forgotten, false)) {  // the reset may have removed the debit
    stats_.lost += line.cost;
    return;
  }
  keep(*place, Lot(next_number(), line, trip, outcome.reset_after), trip.received, back);
}

// Units of one window are alike, so their lots merge. An empty lot stays while there is room, because units
// may be put back into it.
void Stock::keep(Place& place, const Lot& fresh, Time now, std::vector<Refund>& back) {
  for (Lot& lot : place.lots)
    if (lot.merge(fresh)) return;
  if (Lot* room = place.room(now)) {
    dispose(place.line, *room, now, back);
    *room = fresh;
  } else {
    auto surplus = fresh;
    dispose(place.line, surplus, now, back);
  }
}

// Ends a lot. Its units go back if Redis accepts them.
void Stock::dispose(const limit::Charge& line, Lot& lot, Time now, std::vector<Refund>& back) {
  if (const auto refund = lot.return_of(line, now)) {
    back.push_back(*refund);  // first, because if it throws, the lot still has the units
    stats_.returned += lot.left();
  } else {
    stats_.lost += lot.left();
  }
  stats_.lost += lot.gone();
  lot = Lot();
}

void Stock::failed(const limit::Charge& line, Time now) {
  Place* place = find(line);
  if (place == nullptr) return;
  place->taking = false;
  place->rest_until = now + span_;
}

void Stock::forget(const limit::Charge& line) noexcept {
  Place* place = find(line);
  if (place == nullptr) return;
  for (Lot& lot : place->lots) {
    stats_.lost += lot.left() + lot.gone();
    lot = Lot{};
  }
  place->size = 0;
  place->trips = 0;
  place->forgotten = place->taking;
}

void Stock::sweep(Time now, std::vector<Refund>& back, std::size_t most) {
  for (Place& place : places_)
    if (place.line.limiter != nullptr && back.size() < most) sweep(place, now, back);
}

// Units of a window can go back at any time. Units of a bucket are kept while requests ask for the key.
void Stock::sweep(Place& place, Time now, std::vector<Refund>& back) {
  const bool idle = now - place.used >= hold_;
  const bool window = limit::spacing(*place.line.limiter) == nullptr;
  for (Lot& lot : place.lots) {
    const bool old = window && lot.left() > 0 && now - lot.received() >= hold_;
    if (old) place.size = place.bounded(place.size / 2);
    if (idle || old || (lot.left() > 0 && lot.ready(now) == 0)) dispose(place.line, lot, now, back);
  }
  if (idle && !place.taking) place = Place{};
}

void Stock::give_up(Time now, std::vector<Refund>& back, std::size_t most) {
  for (Place& place : places_) {
    if (place.line.limiter == nullptr || back.size() >= most) continue;
    for (Lot& lot : place.lots) dispose(place.line, lot, now, back);
  }
}

}  // namespace weir::redis
