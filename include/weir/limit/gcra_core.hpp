// The shared arithmetic of token bucket, GCRA and leaky bucket: virtual scheduling (ITU-T I.371, Annex A).
//
// The state of a key is one instant, the theoretical arrival time (TAT). It is the instant at which elapsed
// time will have paid for all admitted requests. Each unit of cost moves the TAT forward by one emission
// interval T = period / count. A TAT in the past counts as `now`. A request fits if the TAT, moved by the
// request's cost, is then at most `now` + depth, where depth = capacity × T. The capacity is `burst` for a
// token bucket, `burst` + 1 for GCRA (limit/paced.hpp), and `queue` + 1 for a leaky bucket, because one
// request departs at once.
//
//   now                    TAT                          now + depth
//    |—— already spent ————|———— still to be spent ————|
//
// Exactness. T is rarely a whole number of microseconds ("3/7s"), so instants are counted in ticks of 1/count
// µs. In ticks T is the period in µs, a whole number. So the state is never rounded, and long-run counts are
// exact. 128 bits hold any instant: 2^63 µs × 2^30 ticks. Only values for clients are rounded: durations up,
// remaining units down. So weir never promises a client too much.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/limit/rate.hpp"

namespace weir::limit {

class GcraCore {
 public:
  // Returns an error unless capacity ≥ 1 and capacity × T ≤ 100 years. `max_wait`: how far the TAT may be
  // ahead of now when a request arrives. This bound is the same for requests of any cost.
  [[nodiscard]] static base::Result<GcraCore> make(Rate rate, std::uint64_t capacity,
                                                   base::Duration max_wait = base::kForever);
  // Makes the GcraCore of a queue. `capacity`: the most requests in the queue, the new one included. The
  // requests ahead are counted as if all had the cost of the new request.
  [[nodiscard]] static base::Result<GcraCore> make_queue(Rate rate, std::uint64_t capacity,
                                                         base::Duration max_wait);

  struct Step {
    Outcome outcome;      // the step does not set the member `delay`
    Ticks tat;            // the new state if the request is allowed, otherwise the old state
    base::Duration wait;  // how far the TAT was ahead of now before the charge; rounded up
  };
  // Returns the outcome of a request and the new TAT. A fresh key has `tat` 0. A cost of 0 only reads the
  // state. REQUIRES: cost ≤ kMaxCost, now ≥ the epoch.
  [[nodiscard]] Step step(Ticks tat, base::TimePoint now, Cost cost) const noexcept;

  // Returns the TAT after the refund of an earlier charge.
  [[nodiscard]] Ticks refund(Ticks tat, Cost cost) const noexcept;

  // Returns the TAT after the cost of an earlier charge has risen from `reserved` to `actual`
  // (limit/settle.hpp).
  [[nodiscard]] Ticks raise_cost(Ticks tat, base::TimePoint charged_at, Cost reserved,
                                 Cost actual) const noexcept;

  // Returns the instant of the TAT, rounded up. From this instant on, the state equals that of a fresh key.
  [[nodiscard]] base::TimePoint instant(Ticks tat) const noexcept;
  // Returns the instant `at` in ticks.
  [[nodiscard]] Ticks ticks(base::TimePoint at) const noexcept {
    return Ticks(static_cast<std::uint64_t>(at.time_since_epoch().count())) * rate_.count;
  }

  friend bool operator==(const GcraCore&, const GcraCore&) = default;

  [[nodiscard]] const Rate& rate() const noexcept { return rate_; }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  // Returns the longest wait allowed; kForever if only the depth (capacity × T) bounds the wait.
  [[nodiscard]] base::Duration max_wait() const noexcept { return max_wait_; }
  // Returns the time to fill an empty bucket, or to empty a full queue whose requests all have this cost.
  // Rounded up.
  [[nodiscard]] base::Duration window(Cost cost = 1) const noexcept;
  // Returns the largest cost that fits a fresh key. For a queue: the larger of 1000 and `capacity`, but at
  // most the units that depart in 100 years.
  [[nodiscard]] std::uint64_t largest_cost() const noexcept;
  // Returns the most by which the TAT may be ahead of now if a request of this cost is to fit.
  // REQUIRES: cost ≤ largest_cost().
  [[nodiscard]] Ticks room(Cost cost) const noexcept;

 private:
  GcraCore() = default;
  // The numbers with which step() decides about a request of a given cost.
  struct Measure {
    Ticks unit;     // the ticks of one unit of `remaining`: T; in a queue, T × the request's cost
    Ticks depth;    // how far ahead of now the TAT may be after the charge
    Ticks longest;  // how far ahead of now the TAT may be before the charge; at most depth
  };
  [[nodiscard]] Measure measure(Cost cost) const noexcept;
  [[nodiscard]] static Ticks spendable(Ticks wait, const Measure& by) noexcept;

  Rate rate_;
  std::uint64_t capacity_ = 1;
  std::uint64_t interval_ = 1;    // T in ticks
  Ticks depth_ = 1;               // capacity × T
  Ticks longest_ = 1;             // max_wait in ticks
  bool counts_requests_ = false;  // true: made by make_queue(), so capacity_ is a number of requests
  base::Duration max_wait_{base::kForever};
  base::Duration window_{};
};

}  // namespace weir::limit
