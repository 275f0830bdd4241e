#include "app/key_places.hpp"

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

// Messages of a WebSocket count here, whatever the rule's store, beside the name of the requests.
KeyPlace place_of_messages(const policy::Rule& rule, policy::AppliedLimiter applied,
                           const limit::Key& requests) {
  applied.limiter = applied.told = rule.messages->limiter.get();
  KeyPlace place = place_of(rule, applied, policy::message_key(requests));
  place.charge.ledger = policy::message_ledger(rule);
  place.charge.lease = 0;
  place.messages = true;
  return place;
}

}  // namespace

bool KeyPlaces::holds() const {
  const auto held = [](const KeyPlace& place) { return limit::holds(*place.charge.limiter); };
  return std::any_of(there.begin(), there.end(), held) || std::any_of(here.begin(), here.end(), held);
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
    (remote ? places.there : places.here).push_back(place_of(rule, applied, key));
    places.forgotten_here.push_back(local);
    if (!rule.messages || applied.elastic) continue;
    places.here.push_back(place_of_messages(rule, applied, key));
    places.forgotten_here.push_back(places.here.back().charge.key);
  }
  return places;
}

}  // namespace weir::app
