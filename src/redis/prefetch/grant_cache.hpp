// The units that one weir holds in advance, and how many more it should take: lots
// (redis/prefetch/grant.hpp) by key. Pure: plain values, and time as an argument.
//
// A cold key gets no units; its requests go to Redis one by one. A hot key gets units for kFirst requests. It
// gets twice as many each time that a grant is used up within a span. A grant holds whole requests. It is at
// most the rule's `lease`, and at most 1/kShare of what Redis had left at the last reply. So near the end of
// a limit every weir asks for single units again.
#pragma once

#include "redis/prefetch/grant.hpp"
#include "redis/scripts/line_numbers.hpp"

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

  // Allocates once, for `keys` keys rounded up to whole sets. In a full set, a new key replaces the least
  // recently used key that holds nothing. If all keys of the set hold something, the new key finds no place.
  GrantCache(std::size_t keys, base::Duration hold);

  // Spends the line's cost. Returns true if the line is admitted. The outcome then has in_advance set and
  // says what is left here, because only that is sure to be left.
  bool spend(const limit::Charge& line, Time now, limit::Outcome& outcome);
  // Returns true if spend() would.
  bool peek(const limit::Charge& line, Time now, limit::Outcome& outcome);
  // Takes back units that were spent here with `outcome`. Units that find no place here go to `back`.
  void put_back(const limit::Charge& line, const limit::Outcome& outcome, std::vector<Refund>& back);

  // note_trip() must be called when a request of the key goes to Redis, and learn() with its outcome.
  void note_trip(const limit::Charge& line, Time now);
  void learn(const limit::Charge& line, const limit::Outcome& outcome);

  // Returns how many units to take now; 0 for none. After another result, arrived() or failed() must be
  // called.
  [[nodiscard]] limit::Cost wanted(const limit::Charge& line, Time now);
  // `line`: the grant's own charge, whose cost is the units. Units that find no room go to `back`.
  void arrived(const limit::Charge& line, const RoundTrip& trip, const limit::Outcome& outcome,
               std::vector<Refund>& back);
  void failed(const limit::Charge& line, Time now);
  // Drops the key's units and makes the key cold, because the key is fresh in Redis.
  void forget(const limit::Charge& line) noexcept;

  // Gives back the units of keys that no request asked for during `hold`, and forgets cold keys. Once `back`
  // has `most` lines, leaves the remaining keys to the next call.
  void sweep(Time now, std::vector<Refund>& back, std::size_t most);
  // Gives back all units, in the same way.
  void give_up(Time now, std::vector<Refund>& back, std::size_t most);

  [[nodiscard]] const GrantStats& stats() const noexcept { return stats_; }

  // A key is hot if at least kHot of its requests went to Redis within a span, which is a quarter of `hold`.
  static constexpr unsigned kHot = 4;
  static constexpr limit::Cost kFirst = 8;  // in requests
  static constexpr limit::Cost kShare = 4;
  static constexpr limit::Cost kLeast = 2;  // in requests; fewer are not worth a trip

 private:
  static constexpr std::size_t kWays = 4;
  // Most lots are grants; refunds of single requests need the others.
  static constexpr std::size_t kGrants = 8;

  struct Entry {
    limit::Charge line{};                 // null limiter: the place is free
    std::array<Grant, kGrants> grants{};  // in no order
    limit::Cost size = 0;                 // of the next grant; 0: the key is cold
    limit::Cost request_cost = 1;         // of the last request that went to Redis
    limit::Cost known = 0;                // what Redis had left at its last reply
    unsigned trips = 0;                   // since trips_since
    bool taking = false;
    bool forgotten = false;  // the key was reset while a grant was on its way
    Time used{}, trips_since{}, taken{}, rest_until{};

    [[nodiscard]] limit::Cost ready(Time now) const noexcept;
    [[nodiscard]] bool holds() const noexcept;
    [[nodiscard]] limit::Cost bounded(limit::Cost units) const noexcept;  // bounds the size of a grant
    // Returns the lot to spend `cost` units from: among those with enough, the one that expires first. Null
    // if no lot has enough.
    [[nodiscard]] Grant* grant_of(limit::Cost cost, Time now) noexcept;
    // Takes back spent units. Returns false if there is no place for them.
    [[nodiscard]] bool put_back(const limit::Charge& units, const limit::Outcome& outcome,
                                std::uint32_t number, GrantStats& stats) noexcept;
    // Returns a lot that another may replace; null while each lot could pay for a request.
    [[nodiscard]] Grant* room(Time now) noexcept;
  };

  [[nodiscard]] std::size_t set_of(const limit::Charge& line) const noexcept {
    return line.key.lo % (entries_.size() / kWays) * kWays;
  }
  [[nodiscard]] Entry* find(const limit::Charge& line) noexcept;
  [[nodiscard]] Entry* find_or_make(const limit::Charge& line) noexcept;
  [[nodiscard]] std::uint32_t next_number() noexcept;
  void adapt(Entry& entry, Time now) const noexcept;
  void keep(Entry& entry, const Grant& fresh, Time now, std::vector<Refund>& back);
  void dispose(const limit::Charge& line, Grant& grant, Time now, std::vector<Refund>& back);
  void sweep(Entry& entry, Time now, std::vector<Refund>& back);

  base::Duration hold_;
  base::Duration span_;
  std::vector<Entry> entries_;
  std::uint32_t grants_ = 0;
  GrantStats stats_;
};

}  // namespace weir::redis
