// Units of hot keys that this process has taken from Redis in advance. Redis has debited them already, so
// weir admits requests from them without a round trip. This class holds the units of all workers;
// redis/prefetch/grant_cache.hpp has the arithmetic.
//
// Shared by the stores of all workers, and outlives their loops. Thread-safe.
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

// Returns true if units of this limiter can be debited now and spent later without exceeding the limit
// (redis/prefetch/grant.hpp).
[[nodiscard]] bool can_be_leased(const limit::Limiter& limiter) noexcept;

// Counters in units, since the start. taken + put_back − spent − returned − lost are held now.
struct GrantStats {
  std::uint64_t taken = 0;
  std::uint64_t spent = 0;
  std::uint64_t put_back = 0;  // spent units that came back because their request did not proceed
  std::uint64_t returned = 0;  // sent back to Redis
  std::uint64_t lost = 0;      // expired, or their key was reset
  std::uint64_t crowded = 0;   // a count of events, not units: a key found no place

  [[nodiscard]] std::uint64_t held() const noexcept { return taken + put_back - spent - returned - lost; }
};

class SharedGrants {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Holds units of at most `keys` keys (rounded up to a multiple of 64). Gives units back `hold` after the
  // last request for their key.
  SharedGrants(std::size_t keys, base::Duration hold);
  ~SharedGrants();
  SharedGrants(const SharedGrants&) = delete;
  SharedGrants& operator=(const SharedGrants&) = delete;

  [[nodiscard]] base::Duration hold() const noexcept { return hold_; }
  [[nodiscard]] GrantStats stats() const;

  // The functions below are for stores; Stock documents them. REQUIRES line.lease != 0.
  bool spend(const limit::Charge& line, Time now, limit::Outcome& outcome);
  bool peek(const limit::Charge& line, Time now, limit::Outcome& outcome);
  void note_trip(const limit::Charge& line, Time now);
  void learn(const limit::Charge& line, const limit::Outcome& outcome);
  [[nodiscard]] limit::Cost wanted(const limit::Charge& line, Time now);
  // put_back() and arrived() return the units that the caller must refund in Redis.
  [[nodiscard]] std::vector<Refund> put_back(const limit::Charge& line, const limit::Outcome& outcome);
  [[nodiscard]] std::vector<Refund> arrived(const limit::Charge& line, const RoundTrip& trip,
                                            const limit::Outcome& outcome);
  void failed(const limit::Charge& line, Time now);
  // Drops the units of the key without a refund, because the key's state in Redis was reset.
  void forget(const limit::Charge& line);
  // sweep() and give_up() return `most` lines or slightly more; the rest remains for the next call.
  [[nodiscard]] std::vector<Refund> sweep(Time now, std::size_t most = kAnyNumber);
  [[nodiscard]] std::vector<Refund> give_up(Time now, std::size_t most = kAnyNumber);

  // Each store calls enter() once and leave() once. leave() returns true for the last store.
  void enter() noexcept { ++sharers_; }
  [[nodiscard]] bool leave() noexcept { return --sharers_ == 0; }

 private:
  static constexpr std::size_t kAnyNumber = static_cast<std::size_t>(-1);
  struct Stripe;
  [[nodiscard]] Stripe& stripe_of(const limit::Charge& line) const noexcept;

  base::Duration hold_;
  std::unique_ptr<Stripe[]> stripes_;
  std::atomic<unsigned> sharers_{0};
};

}  // namespace weir::redis
