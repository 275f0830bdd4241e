// The limiters whose state is one instant (limit/spacing.hpp): token bucket, GCRA, leaky bucket.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/cell.hpp"
#include "weir/limit/rate.hpp"
#include "weir/limit/spacing.hpp"

#include <cstdint>

namespace weir::limit {

// Admits a request while the bucket holds its cost. The bucket starts full with `burst` units and refills
// continuously at `limit`.
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

// Admits one request each period/count, and `burst` more at once (ITU-T I.371, the Generic Cell Rate
// Algorithm with a tolerance of burst × T).
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

// Queues requests: admits a request with a delay, so that departures have the steady rate `limit`. At most
// `queue` requests of equal cost wait, whatever that cost; a request that departs at once does not count.
// None waits longer than `max_wait`. The state says how much work is ahead, not how many requests. So a
// request assumes that all requests ahead have its own cost.
class LeakyBucket {
 public:
  [[nodiscard]] static base::Result<LeakyBucket> make(Rate limit, std::uint64_t queue,
                                                      base::Duration max_wait);
  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  // Returns the cell without the departure if it was the last one promised. Otherwise returns the cell
  // unchanged, and the departure stays unused: two requests may never hold one departure.
  [[nodiscard]] Cell withdraw(const Cell& cell, base::TimePoint departure, Cost cost) const noexcept;
  [[nodiscard]] const Spacing& spacing() const noexcept { return spacing_; }
  [[nodiscard]] std::uint64_t quota() const noexcept { return spacing_.capacity() - 1; }
  friend bool operator==(const LeakyBucket&, const LeakyBucket&) = default;

 private:
  explicit LeakyBucket(Spacing spacing) noexcept : spacing_(spacing) {}
  Spacing spacing_;
};

}  // namespace weir::limit
