// Units of hot keys that this process has taken from Redis in advance, already debited there: requests are
// admitted from them without a trip. What all of a weir's workers hold; the arithmetic is
// redis/prefetch/stock.hpp's.
//
// Shared by the stores of all workers and outlives their loops; any thread may call anything.
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
struct Trip;

// Whether what is debited now may be spent later with nobody admitted who should not be
// (redis/prefetch/lot.hpp).
[[nodiscard]] bool can_be_leased(const limit::Limiter& limiter) noexcept;

// In units, since the start. What is held now: taken + put_back − spent − returned − lost.
struct LeaseStats {
  std::uint64_t taken = 0;
  std::uint64_t spent = 0;
  std::uint64_t put_back = 0;  // of those spent: by requests that came to nothing
  std::uint64_t returned = 0;  // sent back to Redis
  std::uint64_t lost = 0;      // their time was over, or the key was reset
  std::uint64_t crowded = 0;   // not units: times that a key found no place

  [[nodiscard]] std::uint64_t held() const noexcept { return taken + put_back - spent - returned - lost; }
};

class UnitLeases {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Of so many keys at most (rounded up to a multiple of 64); none is held for longer than `hold` after its
  // key was last asked for.
  UnitLeases(std::size_t keys, base::Duration hold);
  ~UnitLeases();
  UnitLeases(const UnitLeases&) = delete;
  UnitLeases& operator=(const UnitLeases&) = delete;

  [[nodiscard]] base::Duration hold() const noexcept { return hold_; }
  [[nodiscard]] LeaseStats stats() const;

  // The rest is for stores, and as Stock has it. REQUIRES line.lease != 0.
  bool spend(const limit::Charge& line, Time now, limit::Outcome& outcome);
  bool peek(const limit::Charge& line, Time now, limit::Outcome& outcome);
  void note_trip(const limit::Charge& line, Time now);
  void learn(const limit::Charge& line, const limit::Outcome& outcome);
  [[nodiscard]] limit::Cost wanted(const limit::Charge& line, Time now);
  // These hand out what is to be given back in Redis.
  [[nodiscard]] std::vector<Refund> put_back(const limit::Charge& line, const limit::Outcome& outcome);
  [[nodiscard]] std::vector<Refund> arrived(const limit::Charge& line, const Trip& trip,
                                            const limit::Outcome& outcome);
  void failed(const limit::Charge& line, Time now);
  // What is held of the key is dropped: in Redis it is as if it had never been taken.
  void forget(const limit::Charge& line);
  // Some `most` lines of it; the rest stays for the next time.
  [[nodiscard]] std::vector<Refund> sweep(Time now, std::size_t most = kAnyNumber);
  [[nodiscard]] std::vector<Refund> give_up(Time now, std::size_t most = kAnyNumber);

  // Each of those that share it comes, and goes. True: it was the last to go.
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
