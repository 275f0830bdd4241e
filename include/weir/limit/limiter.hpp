// A limiter: one algorithm with its parameters, immutable, shared by all its keys. A step is pure:
//
//   (parameters, state, now, cost) → (outcome, new state)
//
// and whoever keeps the state (the key table here, a script in Redis) applies it atomically to one key.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/limit/rate.hpp"
#include "weir/limit/spacing.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <variant>

namespace weir::limit {

// The state of one key: 16 bytes that only its limiter reads. All zero is fresh, for every algorithm.
struct Cell {
  std::array<std::uint64_t, 2> words{};
  friend bool operator==(const Cell&, const Cell&) = default;
};

struct Step {
  Outcome outcome;
  Cell next;                   // to be stored when the request is charged
  base::TimePoint drained_at;  // from then on `next` equals a fresh cell and may be forgotten
};

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
// At most `queue` wait (one that departs at once does not count), none longer than `max_wait`.
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

using Limiter = std::variant<TokenBucket, Gcra, LeakyBucket>;

[[nodiscard]] Step step(const Limiter& limiter, const Cell& cell, base::TimePoint now, Cost cost) noexcept;

// The cell as if an earlier charge had not happened. Exact unless the key would have stood full since without
// it; then it hands back what time had refilled already, at most the cost that was on hold. `departure`: the
// instant that was promised with the charge (the time of the charge where nothing was delayed); only a leaky
// bucket looks at it.
[[nodiscard]] Cell refund(const Limiter& limiter, const Cell& cell, base::TimePoint departure,
                          Cost cost) noexcept;

// A cell of one limiter as another's that drains at the same instant (rounded up): for limiters that share
// state, whose cells may count in different units.
[[nodiscard]] Cell carry_over(const Limiter& from, const Cell& cell, const Limiter& to) noexcept;

// When `cell` equals a fresh one.
[[nodiscard]] base::TimePoint drained_at(const Limiter& limiter, const Cell& cell) noexcept;

// What the headers call limit and `q`: the most that an idle client may spend (for a leaky bucket, `queue`).
[[nodiscard]] std::uint64_t quota(const Limiter& limiter) noexcept;
// What the headers call `w`: the time in which an empty one is whole again.
[[nodiscard]] base::Duration window(const Limiter& limiter) noexcept;
// The longest that it delays anybody; kForever where nothing but its queue bounds that, or it delays nobody.
[[nodiscard]] base::Duration longest_wait(const Limiter& limiter) noexcept;
// "token_bucket", "gcra", "leaky_bucket".
[[nodiscard]] const char* algorithm_name(const Limiter& limiter) noexcept;
// One line for people: "token_bucket 10/s, burst 100".
[[nodiscard]] std::string describe(const Limiter& limiter);

}  // namespace weir::limit
