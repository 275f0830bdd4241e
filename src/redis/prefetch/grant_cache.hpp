// The units that one weir has prefetched from Redis, and the policy that decides how many more to take. Each
// key has several grants of units (redis/prefetch/grant.hpp). Pure: plain values, and time as an argument.
//
// weir prefetches no units for a cold key (a key with few requests), whose requests go to Redis one by one.
// For a hot key, weir first takes units for kFirst requests. Whenever a grant is used up within a span (a
// quarter of `hold`), the next grant is twice as large. A grant is a whole multiple of a request's cost. A
// grant is at most the rule's `lease`, and at most 1/kShare of the units that Redis had left at its last
// reply. So near the end of a limit, requests go to Redis one by one again.
#pragma once

#include "redis/prefetch/grant.hpp"
#include "redis/scripts/charge_numbers.hpp"

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/redis/shared_grants.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::redis {

class GrantCache {
 public:
  using Time = Grant::Time;

  // Allocates memory once, for `keys` keys. The number is rounded up to whole sets of kWays entries. If the
  // set of a new key is full, the new key replaces the least recently used key that holds no units. If all
  // keys of the set hold units, the new key gets no entry.
  GrantCache(std::size_t keys, base::Duration hold);

  // Spends prefetched units for `charge`. If they suffice, returns true and sets `outcome`, with
  // `outcome.prefetched` = true. `outcome.remaining` counts the key's units in this cache. It does not count
  // units left in Redis, because other weirs may spend them.
  bool spend(const limit::Charge& charge, Time now, limit::Outcome& outcome);
  // Returns what spend() would return, and sets `outcome` if the result is true. Spends nothing. For a
  // check, returns true if a unit is left.
  bool peek(const limit::Charge& charge, Time now, limit::Outcome& outcome);
  // Puts back units that spend() spent with `outcome`. Appends a refund to `back` if the cache cannot take
  // the units.
  void put_back(const limit::Charge& charge, const limit::Outcome& outcome, std::vector<Refund>& back);

  // note_trip() must be called when a request of the key is sent to Redis, and learn() when Redis has
  // answered that request.
  void note_trip(const limit::Charge& charge, Time now);
  void learn(const limit::Charge& charge, const limit::Outcome& outcome);

  // Returns how many units to take from Redis now; 0 for none. If the result is not 0, the caller must call
  // arrived() or failed() later.
  [[nodiscard]] limit::Cost wanted(const limit::Charge& charge, Time now);
  // Adds units that Redis has granted. `charge`: the charge that took the units; charge.cost is the number of
  // units. Appends a refund to `back` if the cache cannot take the units.
  void arrived(const limit::Charge& charge, const RoundTrip& trip, const limit::Outcome& outcome,
               std::vector<Refund>& back);
  void failed(const limit::Charge& charge, Time now);
  // Drops the key's units and makes the key cold (no more prefetching). Must be called when the key is reset
  // in Redis.
  void forget(const limit::Charge& charge) noexcept;

  // Appends refunds of unspent units to `back`. Stops after the key with which `back` reaches `most`
  // elements; the next call continues. Refunds and frees:
  // * the entries of keys that no request has used for `hold`;
  // * grants whose units have all expired;
  // * grants of windows that are older than `hold`.
  void sweep(Time now, std::vector<Refund>& back, std::size_t most);
  // Appends refunds of all units to `back`. Stops after the key with which `back` reaches `most` elements;
  // the next call continues.
  void give_up(Time now, std::vector<Refund>& back, std::size_t most);

  [[nodiscard]] const GrantStats& stats() const noexcept { return stats_; }

  // A key is hot if weir sent at least kHot requests of the key to Redis within a span. A span is a quarter
  // of `hold`.
  static constexpr unsigned kHot = 4;
  static constexpr limit::Cost kFirst = 8;  // size of a key's first grant, as a number of requests
  static constexpr limit::Cost kShare = 4;  // a grant takes at most 1/kShare of the units left in Redis
  // The size of the smallest grant (prefetched units), as a number of requests. A smaller grant is not worth
  // a round trip.
  static constexpr limit::Cost kLeast = 2;

 private:
  static constexpr std::size_t kWays = 4;
  // The most grants (prefetched units) of one key. Most of them come from Redis; a few consist of units that
  // requests have put back.
  static constexpr std::size_t kGrants = 8;

  struct Entry {
    // The charge for which units are prefetched; charge.limiter is null if the entry is free.
    limit::Charge charge{};
    std::array<Grant, kGrants> grants{};  // in no particular order
    limit::Cost size = 0;                 // number of units in the next grant; 0: the key is cold
    limit::Cost request_cost = 1;         // cost of the last request that was sent to Redis
    limit::Cost known = 0;                // units that Redis had left at its last reply about the key
    unsigned trips = 0;                   // requests that were sent to Redis since trips_since
    bool waits_for_grant = false;
    bool forgotten = false;  // true: the key was reset after the request for a grant was sent
    Time used{}, trips_since{}, asked_at{}, paused_until{};

    [[nodiscard]] limit::Cost ready(Time now) const noexcept;
    [[nodiscard]] bool holds() const noexcept;
    [[nodiscard]] limit::Cost bounded(limit::Cost units) const noexcept;  // limits the size of a grant
    // Returns the grant (prefetched units) that expires first, of those with at least `cost` units. Returns
    // null if no grant has enough units.
    [[nodiscard]] Grant* grant_of(limit::Cost cost, Time now) noexcept;
    // Puts back spent units into a grant (prefetched units). Returns true if a grant has taken them.
    [[nodiscard]] bool put_back(const limit::Charge& units, const limit::Outcome& outcome,
                                std::uint32_t number, GrantStats& stats) noexcept;
    // Returns a grant (prefetched units) that a new one may replace: an empty grant, or one with too few
    // units for a request. Returns null if there is none.
    [[nodiscard]] Grant* room(Time now) noexcept;
  };

  [[nodiscard]] std::size_t set_of(const limit::Charge& charge) const noexcept {
    return charge.key.lo % (entries_.size() / kWays) * kWays;
  }
  [[nodiscard]] Entry* find(const limit::Charge& charge) noexcept;
  [[nodiscard]] Entry* find_or_make(const limit::Charge& charge) noexcept;
  [[nodiscard]] std::uint32_t next_number() noexcept;
  void adapt(Entry& entry, Time now) const noexcept;
  void keep(Entry& entry, const Grant& fresh, Time now, std::vector<Refund>& back);
  void dispose(const limit::Charge& charge, Grant& grant, Time now, std::vector<Refund>& back);
  void sweep(Entry& entry, Time now, std::vector<Refund>& back);

  base::Duration hold_;
  base::Duration span_;
  std::vector<Entry> entries_;
  std::uint32_t grants_ = 0;
  GrantStats stats_;
};

}  // namespace weir::redis
