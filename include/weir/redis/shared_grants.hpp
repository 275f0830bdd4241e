// Units of hot keys that this process has prefetched: Redis has debited the units already, so weir can admit
// requests without a round trip. The cost of a request is a number of units. This class holds the units of
// all workers; redis/prefetch/grant_cache.hpp decides how many units to take.
//
// The stores of all workers share one object, which must outlive the workers' event loops. Thread-safe.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weir::redis {

struct Refund;
struct RoundTrip;

// Returns true if units of this limiter can be prefetched now and spent later without exceeding the limit
// (redis/prefetch/grant.hpp).
[[nodiscard]] bool can_be_leased(const limit::Limiter& limiter) noexcept;

// Numbers of units since the start. Exceptions: held() is the number of units that this process holds now,
// and `rejected_keys` is not a number of units.
struct GrantStats {
  std::uint64_t taken = 0;
  std::uint64_t spent = 0;
  std::uint64_t put_back = 0;  // spent units that were put back because weir did not forward their request
  std::uint64_t returned = 0;  // unspent units that were refunded in Redis
  std::uint64_t lost = 0;      // units that expired, and units of keys that were reset
  std::uint64_t rejected_keys = 0;  // how often a key got no entry, because its set of entries was full

  [[nodiscard]] std::uint64_t held() const noexcept { return taken + put_back - spent - returned - lost; }
};

class SharedGrants {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Can hold units of at most `keys` keys (rounded up to a multiple of 64). A key's units are refunded in
  // Redis if no request has used the key for `hold`.
  SharedGrants(std::size_t keys, base::Duration hold);
  ~SharedGrants();
  SharedGrants(const SharedGrants&) = delete;
  SharedGrants& operator=(const SharedGrants&) = delete;

  [[nodiscard]] base::Duration hold() const noexcept { return hold_; }
  [[nodiscard]] GrantStats stats() const;

  // The functions from here to failed() call the GrantCache functions of the same names, which GrantCache
  // documents. REQUIRES: charge.lease != 0.
  bool spend(const limit::Charge& charge, Time now, limit::Outcome& outcome);
  bool peek(const limit::Charge& charge, Time now, limit::Outcome& outcome);
  void note_trip(const limit::Charge& charge, Time now);
  void learn(const limit::Charge& charge, const limit::Outcome& outcome);
  [[nodiscard]] limit::Cost wanted(const limit::Charge& charge, Time now);
  // put_back() and arrived() return refunds, which the caller must send to Redis.
  [[nodiscard]] std::vector<Refund> put_back(const limit::Charge& charge, const limit::Outcome& outcome);
  [[nodiscard]] std::vector<Refund> arrived(const limit::Charge& charge, const RoundTrip& trip,
                                            const limit::Outcome& outcome);
  void failed(const limit::Charge& charge, Time now);
  // Drops the key's units without a refund, because a reset has erased the key's state in Redis.
  void forget(const limit::Charge& charge);
  // sweep() and give_up() return refunds, which the caller must send to Redis. They stop at `most` refunds,
  // or a few more. The next call returns further refunds.
  [[nodiscard]] std::vector<Refund> sweep(Time now, std::size_t most = kAnyNumber);
  [[nodiscard]] std::vector<Refund> give_up(Time now, std::size_t most = kAnyNumber);

  // Each store must call enter() once and leave() once. leave() returns true for the last store that leaves.
  void enter() noexcept { ++sharers_; }
  [[nodiscard]] bool leave() noexcept { return --sharers_ == 0; }

 private:
  static constexpr std::size_t kAnyNumber = static_cast<std::size_t>(-1);
  struct Stripe;
  [[nodiscard]] Stripe& stripe_of(const limit::Charge& charge) const noexcept;

  base::Duration hold_;
  std::unique_ptr<Stripe[]> stripes_;
  std::atomic<unsigned> sharers_{0};
};

}  // namespace weir::redis
