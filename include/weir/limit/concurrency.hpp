// The limiters of what is under way at once. They know no time: what a request holds comes back when its
// exchange ends (limit/permit.hpp), which nobody can foresee; so `retry_after` is a hint of one second, and
// `reset_after` is zero.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/cell.hpp"
#include "weir/limit/rate.hpp"

#include <cstdint>
#include <optional>

namespace weir::limit {

// How an exchange ended, for those who learn from it.
struct Ending {
  // From the request sent to the answer's head; absent where nothing can be learned (the client left, no
  // upstream was asked, or it answered an error of its own, which takes as long as it takes).
  std::optional<base::Duration> latency{};
  bool failed = false;  // the upstream gave no answer: late, or gone
};

// What a refused request is told to wait.
inline constexpr base::Duration kHint{1'000'000};

// Admits while fewer than `limit` are in flight. State: word 0 the count.
class Concurrency {
 public:
  [[nodiscard]] static base::Result<Concurrency> make(std::uint64_t limit);
  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  // A cost that does not fit, charged all the same (limit/pair.hpp).
  [[nodiscard]] Cell charge_beyond(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  [[nodiscard]] Cell release(const Cell& cell, Cost cost) const noexcept;
  [[nodiscard]] base::TimePoint drained_at(const Cell& cell) const noexcept;
  [[nodiscard]] std::uint64_t in_flight(const Cell& cell) const noexcept { return cell.words[0]; }
  [[nodiscard]] std::uint64_t quota() const noexcept { return limit_; }
  friend bool operator==(const Concurrency&, const Concurrency&) = default;

 private:
  explicit Concurrency(std::uint64_t limit) noexcept : limit_(limit) {}
  std::uint64_t limit_;
};

// The same with a limit that follows the latency of the upstream, between `min` and `max`.
//
// Little's law ties what is in flight to latency × throughput; once a server is saturated, more in flight
// only queue, and latency grows. So the limit follows the gradient best ÷ present latency, as TCP Vegas
// (Brakmo and Peterson, 1994) and Netflix's concurrency-limits (Gradient2, 2018) do.
//
// A single answer proves nothing: a 404 out of a cache takes a hundredth of the time of its neighbours. So
// like is compared with like, a mean over the mixture of what passes with the least such mean (Envoy compares
// a percentile with the same percentile, for the same reason). Each answer, with w = 4 × limit, 32 to 512:
//
//   quick     the mean latency: moves by 1/w of the distance. What the limit goes by.
//   slow      the same by 1/8w, which chance moves little; while at most `min` are in flight, by 1/2w.
//   best      falls with the slow mean, and at once to 5/4 of the quick one. While at most `min` are in
//   flight
//             it rises to the slow mean by 1/32: then it is not our requests that queue, the server has
//             become slower, or the mixture is another. While less than ¾ of the limit is used it follows a
//             quick mean of up to 5/4 of it by 1/8w, so that what chance took away comes back.
//   gradient  = 3/2 × best ÷ quick, from ½ to 1: half as much again as the best is tolerated.
//   target    = limit × gradient when below 1, else limit + √limit where at least half the limit is in use
//             (unused room proves nothing) and, with at most `min` in flight, quick is within 9/8 of best.
//   limit     rises half way to the target in as many answers as it admits at once, about one round trip,
//             and falls half way in two.
//
// The first 127 answers of a key count alike in both means, and best is what those of the first two round
// trips say. An exchange that failed counts as a gradient of ½, and as no latency. There is no probe: nothing
// is shed to measure the best. A lastingly slower server brings the limit down to `min`, where the new best
// is learned from ordinary traffic and the limit rises again. A fresh key starts at √(min × max); what was
// learned is forgotten after ten minutes without traffic.
//
// State, packed: word 0 = when last used, in 16 s (28 bits, to the year 2106) | in flight (14) | limit in
// 1/256 (22); word 1 = best | slow | quick (19 each, floating, 1/64 µs) | answers seen (7). All zero stands
// for a fresh key.
class AdaptiveConcurrency {
 public:
  static constexpr std::uint64_t kMost = 10'000;
  static constexpr base::Duration kMemory{600'000'000};

  // REQUIRES of the values, else an error in words: 1 ≤ min ≤ max ≤ kMost.
  [[nodiscard]] static base::Result<AdaptiveConcurrency> make(std::uint64_t min, std::uint64_t max);
  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  // A cost that does not fit, charged all the same (limit/pair.hpp).
  [[nodiscard]] Cell charge_beyond(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  [[nodiscard]] Cell release(const Cell& cell, base::TimePoint now, Cost cost,
                             const Ending& ending) const noexcept;
  [[nodiscard]] base::TimePoint drained_at(const Cell& cell) const noexcept;
  [[nodiscard]] std::uint64_t in_flight(const Cell& cell) const noexcept;

  // Where the limit of a key stands.
  [[nodiscard]] std::uint64_t limit(const Cell& cell, base::TimePoint now) const noexcept;
  [[nodiscard]] std::uint64_t quota() const noexcept { return max_; }
  [[nodiscard]] std::uint64_t min() const noexcept { return min_; }
  friend bool operator==(const AdaptiveConcurrency&, const AdaptiveConcurrency&) = default;

 private:
  struct State {
    std::uint64_t limit, in_flight, used, best, slow, quick, seen;
  };
  AdaptiveConcurrency(std::uint64_t min, std::uint64_t max) noexcept;
  [[nodiscard]] State state_of(const Cell& cell, base::TimePoint now) const noexcept;
  [[nodiscard]] static Cell cell_of(const State& state) noexcept;
  [[nodiscard]] std::uint64_t adapted(const State& state, std::uint64_t gradient) const noexcept;
  void learn(State& state, base::Duration latency, std::uint64_t chance) const noexcept;

  std::uint64_t min_, max_, start_;  // start in 1/256
};

}  // namespace weir::limit
