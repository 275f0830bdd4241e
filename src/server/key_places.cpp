#include "server/key_places.hpp"

#include "weir/limit/place.hpp"

#include <algorithm>

namespace weir::app {

namespace {

KeyPlace place_of(const policy::Rule& rule, const policy::AppliedLimiter& applied, const limit::Key& key) {
  return {applied,
          {.key = key,
           .limiter = applied.limiter,
           .rule = rule.cells,
           .ledger = policy::ledger_of(applied.variant, applied.elastic),
           .lease = rule.lease ? policy::units_of(*rule.lease, *applied.limiter) : 0}};
}

// Returns the place for messages of a WebSocket. The table counts them for every store, under a name beside
// that of the requests.
KeyPlace place_of_messages(const policy::Rule& rule, policy::AppliedLimiter applied,
                           const limit::Key& requests) {
  applied.limiter = applied.told = rule.messages->limiter.get();
  KeyPlace place = place_of(rule, applied, policy::message_key(requests));
  place.charge.ledger = policy::message_ledger(rule);
  place.charge.lease = 0;
  place.messages = true;
  return place;
}

// Adds the places of one limiter. `key` counts its requests. `local`: the name in the table; absent if
// unknown.
void add_places(KeyPlaces& places, const policy::Rule& rule, const policy::AppliedLimiter& applied,
                const limit::Key& key, std::optional<limit::Key> local) {
  const bool remote = rule.store == policy::Store::Redis;
  (remote ? places.there : places.here).push_back(place_of(rule, applied, key));
  if (local) places.forgotten_here.push_back(*local);
  if (!rule.messages || applied.elastic) return;
  places.here.push_back(place_of_messages(rule, applied, key));
  places.forgotten_here.push_back(places.here.back().charge.key);
}

}  // namespace

bool holds(const policy::Rule& rule) {
  const auto all = policy::limiters_of(rule);
  return std::any_of(all.begin(), all.end(),
                     [](const auto& applied) { return limit::holds(*applied.limiter); });
}

KeyPlaces find_places(const policy::Rule& rule, std::span<const policy::KeyValue> values,
                      const policy::NamingKeys& names) {
  KeyPlaces places;
  const bool remote = rule.store == policy::Store::Redis;
  for (const auto& applied : policy::limiters_of(rule)) {
    const auto local = policy::name_values(rule, applied, values, names.table);
    auto key = remote ? policy::name_values(rule, applied, values, names.shared) : local;
    if (remote && names.places)
      key = limit::at_place(key, policy::place_of_values(rule, values, names.shared));
    add_places(places, rule, applied, key, local);
  }
  return places;
}

KeyPlaces find_places(const policy::Rule& rule, const limit::Key& name, std::optional<limit::Ledger> ledger,
                      const policy::NamingKeys& names) {
  KeyPlaces places;
  const bool remote = rule.store == policy::Store::Redis;
  const auto all = policy::limiters_of(rule);
  const auto counts = [&](const auto& applied) {
    return ledger && policy::ledger_of(applied.variant, applied.elastic) == *ledger;
  };
  const auto named = all.size() == 1 ? all.begin() : std::find_if(all.begin(), all.end(), counts);
  for (const auto& applied : all) {
    auto key = named == all.end() ? name : policy::name_under(rule, *named, applied, name);
    if (remote && names.places) key = limit::at_place(key, limit::place_of(name));
    add_places(places, rule, applied, key, remote ? std::nullopt : std::optional(key));
  }
  return places;
}

}  // namespace weir::app
