// The limiters whose whole state is one instant (limit/spacing.hpp): token bucket, GCRA, leaky bucket.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/cell.hpp"
#include "weir/limit/rate.hpp"
#include "weir/limit/spacing.hpp"

#include <cstdint>

namespace weir::limit {

// Admits while the bucket holds the cost. It starts full with `burst` and is refilled continuously at
// `limit`.
class TokenBucket {
 public:
  [[nodiscard]] static base::Result<TokenBucket> make(Rate limit, std::uint64_t burst);
  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  [[nodiscard]] const Spacing& spacing() const noexcept { return spacing_; }
  [[nodiscard]] std::uint64_t quota() const noexcept { return spacing_.capacity(); }
  friend bool operator==(const TokenBucket&, const TokenBucket&) = default;

 private:
  explicit TokenBucket(Spacing spacing) noexcept : spacing_(spacing) {}
  Spacing spacing_;
};

// Admits requests spaced by period/count, plus `burst` more than one at once (ITU-T I.371, the Generic Cell
// Rate Algorithm with a tolerance of burst × T).
class Gcra {
 public:
  [[nodiscard]] static base::Result<Gcra> make(Rate limit, std::uint64_t burst);
  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  [[nodiscard]] const Spacing& spacing() const noexcept { return spacing_; }
  [[nodiscard]] std::uint64_t quota() const noexcept { return spacing_.capacity(); }
  friend bool operator==(const Gcra&, const Gcra&) = default;

 private:
  explicit Gcra(Spacing spacing) noexcept : spacing_(spacing) {}
  Spacing spacing_;
};

// Queues: admits a request with the delay after which it may depart, so that departures are a steady `limit`.
// At most `queue` requests of one cost wait, whatever that cost is; one that departs at once does not count.
// None waits longer than `max_wait`. A request takes all that wait ahead to cost what it costs itself:
// the state is one instant, which tells how much is ahead, and not of how many requests.
class LeakyBucket {
 public:
  [[nodiscard]] static base::Result<LeakyBucket> make(Rate limit, std::uint64_t queue,
                                                      base::Duration max_wait);
  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  // Gives a departure back, which is possible only while it is the last one promised: two requests may never
  // hold one departure. Otherwise the cell comes back unchanged and the departure goes unused.
  [[nodiscard]] Cell withdraw(const Cell& cell, base::TimePoint departure, Cost cost) const noexcept;
  [[nodiscard]] const Spacing& spacing() const noexcept { return spacing_; }
  [[nodiscard]] std::uint64_t quota() const noexcept { return spacing_.capacity() - 1; }
  friend bool operator==(const LeakyBucket&, const LeakyBucket&) = default;

 private:
  explicit LeakyBucket(Spacing spacing) noexcept : spacing_(spacing) {}
  Spacing spacing_;
};

}  // namespace weir::limit
