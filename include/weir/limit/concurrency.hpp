// The limiters of concurrent requests. A request holds its units until its exchange ends (limit/permit.hpp).
// Nobody can predict that end, so `retry_after` is a hint of one second and `reset_after` is zero.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/cell.hpp"
#include "weir/limit/rate.hpp"

#include <cstdint>
#include <optional>

namespace weir::limit {

// How an exchange (a request and its response) ended. An adaptive limit learns from these values.
struct Ending {
  // The time from sending the request to receiving the head of the answer. Absent if that time would not show
  // the load of the server: the client disconnected, no server was asked, or the server itself answered with
  // an error.
  std::optional<base::Duration> latency{};
  bool failed = false;  // true: the server sent no answer in time, or the connection broke
};

// The `retry_after` of a request that a concurrency limit rejects: one second.
inline constexpr base::Duration kHint{1'000'000};

// Admits a request if the units in flight, including its own cost, are at most `limit`. State: word 0 is the
// number of units in flight.
class Concurrency {
 public:
  [[nodiscard]] static base::Result<Concurrency> make(std::uint64_t limit);
  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  // Returns the key's state after a charge that this limiter would reject, but that the deciding limiter of
  // the pair admits (limit/pair.hpp).
  [[nodiscard]] Cell charge_over_limit(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  [[nodiscard]] Cell release(const Cell& cell, Cost cost) const noexcept;
  [[nodiscard]] base::TimePoint drained_at(const Cell& cell) const noexcept;
  [[nodiscard]] std::uint64_t in_flight(const Cell& cell) const noexcept { return cell.words[0]; }
  [[nodiscard]] std::uint64_t quota() const noexcept { return limit_; }
  friend bool operator==(const Concurrency&, const Concurrency&) = default;

 private:
  explicit Concurrency(std::uint64_t limit) noexcept : limit_(limit) {}
  std::uint64_t limit_;
};

// A concurrency limit that follows the latency of the upstream, between `min` and `max`.
//
// By Little's law the requests in flight equal latency × throughput. Once a server is saturated, more
// requests only queue and latency grows. So the limit follows the gradient, best ÷ present latency, as in TCP
// Vegas (Brakmo and Peterson, 1994) and Netflix's concurrency-limits (Gradient2, 2018).
//
// A single answer proves nothing: a cached 404 may be a hundred times as fast as its neighbours. So weir
// compares the mean latency of the present traffic with the lowest mean so far. Each answer updates the
// values below. There, w is 4 × limit, but at least 32 and at most 512:
//
// * quick: a mean latency. Each answer moves this mean by 1/w of its distance from the answer's latency. The
//   limit follows this mean.
// * slow: a second mean, which each answer moves by 1/8w, so that chance has little effect. With at most
//   `min` requests in flight, each answer moves this mean by 1/2w.
// * best: the latency with which weir compares the present one. Falls at once to the slow mean, or to 5/4 of
//   the quick mean, whichever is lower.
// * best, with at most `min` in flight: moves towards the slow mean by 1/32. At most `min` requests do not
//   queue at the server. So a higher latency means that the server has become slower, or that the mixture of
//   requests has changed.
// * best, with at most ¾ of the limit in flight and quick ≤ 5/4 × best: moves towards the quick mean by 1/8w.
//   This raises a best value that a few fast answers have made too low.
// * gradient = 3/2 × best ÷ quick, from ½ to 1. So weir tolerates a latency of 3/2 × best.
// * target, if the gradient is below 1: limit × gradient.
// * target, if the gradient is 1: limit + √limit. The limit rises only if at least half of it is in use,
//   because an unused limit proves nothing. With at most `min` in flight, it rises only if quick ≤ 9/8 ×
//   best, too.
// * limit: rises half way to the target within `limit` answers (about one round trip), and falls half way
//   within 2 × `limit` answers.
//
// The first 127 answers of a key have equal weight in both means. During the first 2 × limit answers, best
// equals the slow mean. A failed exchange counts as a gradient of ½, and its latency is ignored. weir never
// rejects requests in order to measure the best latency. If a server stays slower, the limit falls to `min`.
// At that limit weir learns the new best from ordinary traffic, and the limit rises again. A fresh key starts
// at √(min × max). A key forgets what it has learned after ten minutes without traffic.
//
// State, from the highest bit on (all zero is a fresh key):
// * word 0: last use in units of 16 s (28 bits, to the year 2106) | in flight (14) | 256 × limit (22)
// * word 1: best | slow | quick (19 bits each, floating point, in units of 1/64 µs) | answers seen (7)
class AdaptiveConcurrency {
 public:
  static constexpr std::uint64_t kMost = 10'000;
  static constexpr base::Duration kMemory{600'000'000};

  // Returns an error unless 1 ≤ min ≤ max ≤ kMost.
  [[nodiscard]] static base::Result<AdaptiveConcurrency> make(std::uint64_t min, std::uint64_t max);
  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  // Returns the key's state after a charge that this limiter would reject, but that the deciding limiter of
  // the pair admits (limit/pair.hpp).
  [[nodiscard]] Cell charge_over_limit(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  [[nodiscard]] Cell release(const Cell& cell, base::TimePoint now, Cost cost,
                             const Ending& ending) const noexcept;
  [[nodiscard]] base::TimePoint drained_at(const Cell& cell) const noexcept;
  [[nodiscard]] std::uint64_t in_flight(const Cell& cell) const noexcept;

  // Returns the present limit of a key.
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

  std::uint64_t min_, max_, start_;  // min_ and max_ in units; start_, of a fresh key, in 1/256 of a unit
};

}  // namespace weir::limit
