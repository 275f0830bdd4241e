// The arithmetic that token bucket, GCRA and leaky bucket share: virtual scheduling (ITU-T I.371, Annex A).
//
// The whole state of a key is one instant, the theoretical arrival time (TAT): when everything admitted so
// far will have been paid for at the rate. A unit of cost moves it by one emission interval T = period /
// count. A request fits while the TAT, moved by its cost, lies no further ahead of now than the depth =
// capacity × T.
//
//   now                    TAT                          now + depth
//    |—— already spent ————|———— still to be spent ————|
//
// Exactness. T is rarely a whole number of microseconds ("3/7s"), so instants are counted in ticks of 1/count
// µs. In ticks T is `period` in µs, a whole number: no rounding ever happens on the way in, and long-run
// counts are exact. 128 bits hold any instant: 2^63 µs × 2^30 ticks. Rounding happens only towards the
// reader, always so that a promise is kept: durations up, remaining down.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/limit/rate.hpp"

namespace weir::limit {

class Spacing {
 public:
  // REQUIRES of the values, else an error in words: capacity ≥ 1, and capacity × T ≤ 100 years.
  // `max_wait`: the longest that a TAT may lie ahead before a request is refused, whatever its cost.
  [[nodiscard]] static base::Result<Spacing> make(Rate rate, std::uint64_t capacity,
                                                  base::Duration max_wait = base::kForever);
  // The same of a queue: its capacity counts requests, each of the cost of whoever asks. A request fits while
  // at most `capacity` requests of its own cost, itself among them, lie between now and the TAT.
  [[nodiscard]] static base::Result<Spacing> make_queue(Rate rate, std::uint64_t capacity,
                                                        base::Duration max_wait);

  struct Step {
    Outcome outcome;      // without `delay`
    Ticks tat;            // the new state when allowed; the old one otherwise
    base::Duration wait;  // how far the TAT lay ahead of now before the charge, rounded up
  };
  // REQUIRES 1 ≤ cost ≤ kMaxCost, now ≥ the epoch. A fresh key has tat 0.
  [[nodiscard]] Step step(Ticks tat, base::TimePoint now, Cost cost) const noexcept;

  // Takes one earlier charge back.
  [[nodiscard]] Ticks refund(Ticks tat, Cost cost) const noexcept;

  // The TAT once a charge of `reserved` at an instant has turned out to be one of `actual`, which is more
  // (limit/settle.hpp).
  [[nodiscard]] Ticks owe(Ticks tat, base::TimePoint charged_at, Cost reserved, Cost actual) const noexcept;

  // When the TAT is reached, rounded up; from then on the state equals a fresh one.
  [[nodiscard]] base::TimePoint instant(Ticks tat) const noexcept;
  // The TAT that is reached at an instant.
  [[nodiscard]] Ticks ticks(base::TimePoint at) const noexcept {
    return Ticks(static_cast<std::uint64_t>(at.time_since_epoch().count())) * rate_.count;
  }

  friend bool operator==(const Spacing&, const Spacing&) = default;

  [[nodiscard]] const Rate& rate() const noexcept { return rate_; }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  // Longest wait allowed; kForever when the depth alone bounds it.
  [[nodiscard]] base::Duration max_wait() const noexcept { return max_wait_; }
  // The time in which an empty bucket is whole again, or a queue full of requests of this cost has emptied,
  // rounded up.
  [[nodiscard]] base::Duration window(Cost cost = 1) const noexcept;
  // The largest cost that fits while nothing is spent. Of a queue: 1000, or `capacity` if that is more.
  [[nodiscard]] std::uint64_t largest_cost() const noexcept;
  // How far the TAT may lie ahead for a request of this cost to fit. REQUIRES cost ≤ largest_cost().
  [[nodiscard]] Ticks room(Cost cost) const noexcept;

 private:
  Spacing() = default;
  // The bounds that apply to a request of one cost.
  struct Measure {
    Ticks unit;     // what remains is counted in: T, or in a queue the request's cost × T
    Ticks depth;    // how far ahead the TAT may come to lie
    Ticks longest;  // how far ahead it may lie before; at most depth
  };
  [[nodiscard]] Measure measure(Cost cost) const noexcept;
  [[nodiscard]] static Ticks spendable(Ticks wait, const Measure& by) noexcept;

  Rate rate_;
  std::uint64_t capacity_ = 1;
  std::uint64_t interval_ = 1;  // T in ticks
  Ticks depth_ = 1;             // capacity × T
  Ticks longest_ = 1;           // max_wait in ticks
  bool counts_requests_ = false;
  base::Duration max_wait_{base::kForever};
  base::Duration window_{};
};

}  // namespace weir::limit
