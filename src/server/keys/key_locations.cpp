#include "server/keys/key_locations.hpp"

#include "weir/limit/slot_hash.hpp"

#include <algorithm>

namespace weir::server {

namespace {

KeyLocation location_of(const policy::Rule& rule, const policy::AppliedLimiter& applied,
                        const limit::Key& key) {
  return {applied,
          {.key = key,
           .limiter = applied.limiter,
           .rule = rule.rule_number,
           .limiter_id = policy::limiter_id_of(applied.variant, applied.elastic),
           .lease = rule.lease ? policy::units_of(*rule.lease, *applied.limiter) : 0,
           .penalty = policy::penalty_of(rule)}};
}

// Returns the location of the state that counts messages. weir always counts messages in the key table, even
// if the rule's store is Redis. The key for messages differs from the key for requests.
KeyLocation location_of_messages(const policy::Rule& rule, policy::AppliedLimiter applied,
                                 const limit::Key& requests) {
  applied.limiter = applied.advertised = rule.messages->limiter.get();
  KeyLocation location = location_of(rule, applied, policy::message_key(requests));
  location.charge.limiter_id = policy::message_limiter_id(rule);
  location.charge.lease = 0;
  location.charge.penalty = nullptr;
  location.messages = true;
  return location;
}

// Adds the locations of one limiter's state. `key`: the key that counts the requests. `local`: the key in the
// key table; nullopt if unknown.
void add_locations(KeyLocations& locations, const policy::Rule& rule, const policy::AppliedLimiter& applied,
                   const limit::Key& key, std::optional<limit::Key> local) {
  const bool remote = rule.store == policy::Store::Redis;
  (remote ? locations.there : locations.here).push_back(location_of(rule, applied, key));
  if (local) locations.forgotten_here.push_back(*local);
  if (!rule.messages || applied.elastic) return;
  locations.here.push_back(location_of_messages(rule, applied, key));
  locations.forgotten_here.push_back(locations.here.back().charge.key);
}

}  // namespace

bool holds(const policy::Rule& rule) {
  const auto all = policy::limiters_of(rule);
  return std::any_of(all.begin(), all.end(),
                     [](const auto& applied) { return limit::holds(*applied.limiter); });
}

KeyLocations find_locations(const policy::Rule& rule, std::span<const policy::KeyValue> values,
                            const policy::NamingKeys& names) {
  KeyLocations locations;
  const bool remote = rule.store == policy::Store::Redis;
  for (const auto& applied : policy::limiters_of(rule)) {
    const auto local = policy::name_values(rule, applied, values, names.table);
    auto key = remote ? policy::name_values(rule, applied, values, names.shared) : local;
    if (remote && names.slot_hashes)
      key = limit::with_slot_hash(key, policy::slot_hash_of_values(rule, values, names.shared));
    add_locations(locations, rule, applied, key, local);
  }
  return locations;
}

KeyLocations find_locations(const policy::Rule& rule, const limit::Key& name,
                            std::optional<limit::LimiterId> limiter_id, const policy::NamingKeys& names) {
  KeyLocations locations;
  const bool remote = rule.store == policy::Store::Redis;
  const auto all = policy::limiters_of(rule);
  const auto counts = [&](const auto& applied) {
    return limiter_id && policy::limiter_id_of(applied.variant, applied.elastic) == *limiter_id;
  };
  const auto named = all.size() == 1 ? all.begin() : std::find_if(all.begin(), all.end(), counts);
  for (const auto& applied : all) {
    auto key = named == all.end() ? name : policy::name_under(rule, *named, applied, name);
    if (remote && names.slot_hashes) key = limit::with_slot_hash(key, limit::slot_hash_of(name));
    add_locations(locations, rule, applied, key, remote ? std::nullopt : std::optional(key));
  }
  return locations;
}

}  // namespace weir::server
