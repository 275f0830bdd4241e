// What one weir holds of keys in advance, and how much more it should take: lots (redis/prefetch/lot.hpp) by
// key. Pure: plain values, and time as an argument.
//
// A cold key gets nothing, its requests go to Redis one by one. A hot one gets units for kFirst requests,
// then twice as many each time that a lease is gone within a span; whole requests, never more than its rule
// allows, nor than a kShare-th of what was left when Redis was last heard, so that near the end of a limit
// everybody asks for single units again.
#pragma once

#include "redis/prefetch/lot.hpp"
#include "redis/scripts/line.hpp"

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/redis/unit_leases.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::redis {

class Stock {
 public:
  using Time = Lot::Time;

  // Memory is claimed once, for `keys` keys rounded up to whole sets; of those that meet in a set the one
  // that was used longest ago gives way, unless all of them hold something.
  Stock(std::size_t keys, base::Duration hold);

  // Takes what the line costs. True: it is admitted, and the outcome says what is left here, which is all
  // that is sure to be left; the outcome says so (in_advance).
  bool spend(const limit::Charge& line, Time now, limit::Outcome& outcome);
  // Whether it could.
  bool peek(const limit::Charge& line, Time now, limit::Outcome& outcome);
  // What was spent here with that outcome came to nothing. What has no place here any more goes to `back`.
  void put_back(const limit::Charge& line, const limit::Outcome& outcome, std::vector<Refund>& back);

  // A request of the key goes to Redis, and what came of it.
  void note_trip(const limit::Charge& line, Time now);
  void learn(const limit::Charge& line, const limit::Outcome& outcome);

  // How many units to take now; 0: none. Else arrived() or failed() has to follow.
  [[nodiscard]] limit::Cost wanted(const limit::Charge& line, Time now);
  // `line`: the lease's own charge, its cost being the units. What finds no room goes to `back`.
  void arrived(const limit::Charge& line, const Trip& trip, const limit::Outcome& outcome,
               std::vector<Refund>& back);
  void failed(const limit::Charge& line, Time now);
  // The key is fresh in Redis: what is held of it is dropped, and it is cold again.
  void forget(const limit::Charge& line) noexcept;

  // What has to go back because nobody has asked for it for so long; forgets cold keys. Leaves keys for the
  // next time once `back` has `most` lines.
  void sweep(Time now, std::vector<Refund>& back, std::size_t most);
  // The same of everything.
  void give_up(Time now, std::vector<Refund>& back, std::size_t most);

  [[nodiscard]] const LeaseStats& stats() const noexcept { return stats_; }

  // A key is hot once so many of its requests had to go to Redis within a span, a quarter of `hold`.
  static constexpr unsigned kHot = 4;
  static constexpr limit::Cost kFirst = 8;  // times what a request costs
  static constexpr limit::Cost kShare = 4;
  static constexpr limit::Cost kLeast = 2;  // requests: fewer are not worth a trip

 private:
  static constexpr std::size_t kWays = 4;
  // Few of them leases; more where requests come to nothing here and there.
  static constexpr std::size_t kLots = 8;

  struct Place {
    limit::Charge line{};           // its limiter is null: nobody's
    std::array<Lot, kLots> lots{};  // in no order
    limit::Cost size = 0;           // of the next lease; 0: the key is cold
    limit::Cost request_cost = 1;   // of the last one that went to Redis
    limit::Cost known = 0;          // what was left in Redis when it was last heard
    unsigned trips = 0;             // since trips_since
    bool taking = false;
    bool forgotten = false;  // since it began to take
    Time used{}, trips_since{}, taken{}, rest_until{};

    [[nodiscard]] limit::Cost ready(Time now) const noexcept;
    [[nodiscard]] bool holds() const noexcept;
    [[nodiscard]] limit::Cost bounded(limit::Cost units) const noexcept;  // as a size
    // The one to spend so much from: of several the one whose units run out first. Null: none has as many.
    [[nodiscard]] Lot* lot_of(limit::Cost cost, Time now) noexcept;
    // What was spent so and came to nothing. False: there is no place for it.
    [[nodiscard]] bool put_back(const limit::Charge& units, const limit::Outcome& outcome,
                                std::uint32_t number, LeaseStats& stats) noexcept;
    // Where another one finds room: null while a request could be paid from each of them.
    [[nodiscard]] Lot* room(Time now) noexcept;
  };

  [[nodiscard]] std::size_t set_of(const limit::Charge& line) const noexcept {
    return line.key.lo % (places_.size() / kWays) * kWays;
  }
  [[nodiscard]] Place* find(const limit::Charge& line) noexcept;
  [[nodiscard]] Place* find_or_make(const limit::Charge& line) noexcept;
  [[nodiscard]] std::uint32_t next_number() noexcept;
  void adapt(Place& place, Time now) const noexcept;
  void keep(Place& place, const Lot& fresh, Time now, std::vector<Refund>& back);
  void dispose(const limit::Charge& line, Lot& lot, Time now, std::vector<Refund>& back);
  void sweep(Place& place, Time now, std::vector<Refund>& back);

  base::Duration hold_;
  base::Duration span_;
  std::vector<Place> places_;
  std::uint32_t lots_ = 0;
  LeaseStats stats_;
};

}  // namespace weir::redis
