#include "redis/stock.hpp"

#include "weir/limit/limiter.hpp"

#include <algorithm>
#include <utility>

namespace weir::redis {

using limit::Cost;

Stock::Stock(std::size_t keys, base::Duration hold)
    : hold_(hold), span_(hold / 4), places_((std::max<std::size_t>(keys, 1) + kWays - 1) / kWays * kWays) {}

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
  *oldest = Place{};
  oldest->line = line;
  return oldest;
}

bool Stock::spend(const limit::Charge& line, Time now, limit::Outcome& outcome) {
  Place* place = find(line);
  if (place == nullptr) return false;
  for (Lot& lot : place->lots) {
    if (lot.ready(now) < line.cost) continue;
    lot.spend(line.cost, now);
    stats_.spent += line.cost;
    place->used = now;
    const auto whole = lot.whole_after(now);
    outcome = {.allowed = true,
               .remaining = place->ready(now),
               .reset_after = whole,
               .more_after = whole,  // sooner if more are taken, but who knows
               .lot = lot.number()};
    return true;
  }
  return false;
}

bool Stock::peek(const limit::Charge& line, Time now, limit::Outcome& outcome) {
  const Place* place = find(line);
  if (place == nullptr) return false;
  for (const Lot& lot : place->lots) {
    if (lot.ready(now) < line.cost) continue;
    const auto whole = lot.whole_after(now);
    outcome = {.allowed = true, .remaining = place->ready(now), .reset_after = whole, .more_after = whole};
    return true;
  }
  return false;
}

void Stock::put_back(const limit::Charge& line, std::uint32_t number) {
  stats_.put_back += line.cost;
  if (Place* place = find(line))
    for (Lot& lot : place->lots)
      if (lot.number() == number && lot.put_back(line.cost)) return;
  stats_.lost += line.cost;
}

void Stock::adopt(const limit::Charge& line, base::TimePoint charged_at, std::vector<Refund>& back) {
  Place* place = find(line);
  const bool is_last = place != nullptr && place->last_charged && place->last.charged_at == charged_at &&
                       place->last_cost == line.cost;
  if (!is_last) {
    auto plain = line;
    plain.lease = 0;
    return back.push_back({plain, charged_at});
  }
  place->last_charged = false;
  for (Lot& lot : place->lots) {
    if (place->size == 0 || lot.left() != 0) continue;
    stats_.taken += line.cost;
    stats_.lost += lot.gone();
    lot = Lot(next_number(), line, place->last, base::Duration(0));
    return;
  }
  back.push_back({line, limit::spacing(*line.limiter)->instant(place->last.tat)});
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
  if (place->size == 0 && place->trips >= kHot) place->size = kFirst;
}

void Stock::learn(const limit::Charge& line, const Trip& trip, const limit::Outcome& outcome) {
  Place* place = find(line);
  if (place == nullptr) return;
  place->known = outcome.remaining;
  place->last = trip;
  place->last_cost = line.cost;
  place->last_charged = outcome.allowed;
}

Cost Stock::wanted(const limit::Charge& line, Time now) {
  Place* place = find(line);
  if (place == nullptr || place->size == 0 || place->taking || now < place->rest_until) return 0;
  if (place->ready(now) > place->size / 4) return 0;
  if (place->lots[0].ready(now) > 0 && place->lots[1].ready(now) > 0) return 0;  // no room for a third
  adapt(*place, now);
  const auto units = std::min({place->size, line.lease, place->known / kShare});
  place->size = std::max(units, kFirst);
  if (units < kLeast) return 0;
  place->taking = true;
  place->forgotten = false;
  place->taken = now;
  return units;
}

// By how long the last lease was enough.
void Stock::adapt(Place& place, Time now) const noexcept {
  if (place.taken == Time{}) return;
  const auto enough_for = now - place.taken;
  if (enough_for < span_)
    place.size = std::min(2 * place.size, std::max(place.line.lease, kFirst));
  else if (enough_for > 4 * span_)
    place.size = std::max(place.size / 2, kFirst);
}

std::uint32_t Stock::next_number() noexcept {
  if (++lots_ == 0) ++lots_;
  return lots_;
}

void Stock::arrived(const limit::Charge& line, const Trip& trip, const limit::Outcome& outcome,
                    std::vector<Refund>& back) {
  Place* place = find(line);  // nobody takes the place of one that is taking
  if (place == nullptr) return;
  place->taking = false;
  place->known = outcome.remaining;
  if (!outcome.allowed) return;
  stats_.taken += line.cost;
  if (std::exchange(place->forgotten, false)) {  // the reset may have taken the debit with it
    stats_.lost += line.cost;
    return;
  }
  keep(*place, Lot(next_number(), line, trip, outcome.reset_after), trip.received, back);
}

// Units of one window are alike. An empty lot stays while there is room: something may be put back.
void Stock::keep(Place& place, const Lot& fresh, Time now, std::vector<Refund>& back) {
  auto& [older, newer] = place.lots;
  if (older.merge(fresh) || newer.merge(fresh)) return;
  if (newer.number() != 0) {
    if (older.ready(now) > 0 && newer.ready(now) > 0) {
      auto surplus = fresh;
      return dispose(place, surplus, now, back);
    }
    if (older.ready(now) > 0) std::swap(older, newer);
    dispose(place, older, now, back);
    older = newer;
  }
  (older.number() == 0 ? older : newer) = fresh;
}

// Ends a lot: what is left goes back, where Redis can have it.
void Stock::dispose(const Place& place, Lot& lot, Time now, std::vector<Refund>& back) {
  if (const auto refund = lot.return_of(place.line, now)) {
    stats_.returned += lot.left();
    back.push_back(*refund);
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
  place->last_charged = false;
  place->forgotten = place->taking;
}

void Stock::sweep(Time now, std::vector<Refund>& back) {
  for (Place& place : places_)
    if (place.line.limiter != nullptr) sweep(place, now, back);
}

// What a window has debited can always go back; the units of a bucket that is asked for keep.
void Stock::sweep(Place& place, Time now, std::vector<Refund>& back) {
  const bool idle = now - place.used >= hold_;
  const bool window = limit::spacing(*place.line.limiter) == nullptr;
  for (Lot* lot : place.to_return()) {
    const bool old = window && lot->left() > 0 && now - lot->received() >= hold_;
    if (old) place.size = std::max(place.size / 2, kFirst);
    if (idle || old || (lot->left() > 0 && lot->ready(now) == 0)) dispose(place, *lot, now, back);
  }
  if (idle && !place.taking) place = Place{};
}

void Stock::give_up(Time now, std::vector<Refund>& back) {
  for (Place& place : places_) {
    if (place.line.limiter == nullptr) continue;
    for (Lot* lot : place.to_return()) dispose(place, *lot, now, back);
  }
}

}  // namespace weir::redis
