// The limiters whose state is one instant (limit/gcra_core.hpp): token bucket, GCRA, leaky bucket.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/cell.hpp"
#include "weir/limit/gcra_core.hpp"
#include "weir/limit/rate.hpp"

#include <cstdint>

namespace weir::limit {

// Admits a request if the bucket holds at least the request's cost. The bucket starts full, with `burst`
// units, and refills continuously at `limit`.
class TokenBucket {
 public:
  [[nodiscard]] static base::Result<TokenBucket> make(Rate limit, std::uint64_t burst);
  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  [[nodiscard]] const GcraCore& gcra_core() const noexcept { return gcra_core_; }
  [[nodiscard]] std::uint64_t quota() const noexcept { return gcra_core_.capacity(); }
  friend bool operator==(const TokenBucket&, const TokenBucket&) = default;

 private:
  explicit TokenBucket(GcraCore gcra_core) noexcept : gcra_core_(gcra_core) {}
  GcraCore gcra_core_;
};

// Admits one request in each interval of period/count, and `burst` more requests at once. So the capacity is
// burst + 1 (ITU-T I.371, the Generic Cell Rate Algorithm with a tolerance of burst × T).
class Gcra {
 public:
  [[nodiscard]] static base::Result<Gcra> make(Rate limit, std::uint64_t burst);
  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  [[nodiscard]] const GcraCore& gcra_core() const noexcept { return gcra_core_; }
  [[nodiscard]] std::uint64_t quota() const noexcept { return gcra_core_.capacity(); }
  friend bool operator==(const Gcra&, const Gcra&) = default;

 private:
  explicit Gcra(GcraCore gcra_core) noexcept : gcra_core_(gcra_core) {}
  GcraCore gcra_core_;
};

// Queues requests: gives each admitted request a delay, so that requests depart at the steady rate `limit`.
// If all requests have the same cost, at most `queue` requests wait; a request that departs at once does not
// count. No request waits longer than `max_wait`.
//
// If costs differ, `queue` holds only approximately. The state is the time that all waiting requests need,
// and does not say how many they are. So a new request is checked as if each waiting request had the cost of
// the new one.
class LeakyBucket {
 public:
  [[nodiscard]] static base::Result<LeakyBucket> make(Rate limit, std::uint64_t queue,
                                                      base::Duration max_wait);
  // Makes the bucket of a pacer, whose units are octets. Only `max_wait` bounds how far ahead departures may
  // be, because the bucket has no queue length.
  [[nodiscard]] static base::Result<LeakyBucket> make_pacer(Rate limit, base::Duration max_wait) {
    return make(limit, kPacerQueue, max_wait);
  }
  // Returns true for the bucket of a pacer.
  [[nodiscard]] bool paces() const noexcept { return quota() == kPacerQueue; }
  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  // Cancels the departure of a request that will not depart. If that departure is the last one promised,
  // returns the state without it. Otherwise returns the state unchanged, so that no two requests get
  // the same departure.
  [[nodiscard]] Cell withdraw(const Cell& cell, base::TimePoint departure, Cost cost) const noexcept;
  [[nodiscard]] const GcraCore& gcra_core() const noexcept { return gcra_core_; }
  [[nodiscard]] std::uint64_t quota() const noexcept { return gcra_core_.capacity() - 1; }
  friend bool operator==(const LeakyBucket&, const LeakyBucket&) = default;

 private:
  static constexpr std::uint64_t kPacerQueue = 1 << 30;  // longer than the queue of any rule
  explicit LeakyBucket(GcraCore gcra_core) noexcept : gcra_core_(gcra_core) {}
  GcraCore gcra_core_;
};

}  // namespace weir::limit
