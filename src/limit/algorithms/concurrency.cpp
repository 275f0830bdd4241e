#include "weir/limit/concurrency.hpp"

#include "limit/algorithms/arithmetic.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

namespace weir::limit {

namespace {

// Returns the outcome of a request of `cost` units, for fixed and adaptive limits. `in_flight`: the units in
// use before the request. `limit`: the present limit. `most`: the highest limit that the key can reach.
Outcome outcome_for(std::uint64_t in_flight, std::uint64_t limit, std::uint64_t most, Cost cost) noexcept {
  Outcome out;
  const std::uint64_t room = beyond(limit, in_flight);
  out.allowed = cost <= room;
  out.remaining = out.allowed ? room - cost : room;
  if (out.allowed) return out;
  out.retry_after = cost > most ? base::kForever : kHint;
  out.more_after = out.retry_after;
  return out;
}

constexpr std::uint64_t kScale = 256;      // a limit of 1 is stored as this number
constexpr std::uint64_t kGradient = 1024;  // represents a gradient of 1
constexpr std::uint64_t kWorst = kGradient / 2;
constexpr std::uint64_t kGrain = 16'000'000;
constexpr unsigned kLimitBits = 22, kFlightBits = 14, kUsedBits = 28;
static_assert(kLimitBits + kFlightBits + kUsedBits == 64);
static_assert(AdaptiveConcurrency::kMost * kScale < (1U << kLimitBits));
static_assert(AdaptiveConcurrency::kMost < (1U << kFlightBits));

constexpr std::uint64_t low_bits(std::uint64_t word, unsigned bits) noexcept {
  return word & ((std::uint64_t{1} << bits) - 1);
}

// The unit of stored latencies is 1/64 µs. Latencies are stored as floating-point numbers, so 19 bits can
// store any latency from zero to years.
constexpr std::uint64_t kPerMicro = 64;
constexpr unsigned kMantissaBits = 14, kLatencyBits = 19, kSeenBits = 7;
static_assert(3 * kLatencyBits + kSeenBits == 64);

constexpr std::uint64_t packed(std::uint64_t latency) noexcept {
  const auto width = static_cast<unsigned>(std::bit_width(latency));
  if (width <= kMantissaBits) return latency;
  const unsigned shift = width - kMantissaBits;
  return (std::uint64_t{shift} << kMantissaBits) + (latency >> shift);
}
constexpr std::uint64_t unpacked(std::uint64_t bits) noexcept {
  return (bits & ((1U << kMantissaBits) - 1)) << (bits >> kMantissaBits);
}

// Returns pseudo-random bits for a moment. rounded() uses them to round a latency to 19 bits: the probability
// of rounding up is the fraction that does not fit. So even a step too small for 19 bits takes effect on
// average.
// (Multiplicative hashing by the golden ratio; Knuth, volume 3, §6.4.)
constexpr std::uint64_t chance_at(std::uint64_t moment) noexcept {
  const std::uint64_t mixed = moment * 0x9e37'79b9'7f4a'7c15;
  return mixed ^ (mixed >> 32);
}

constexpr std::uint64_t rounded(std::uint64_t latency, std::uint64_t chance) noexcept {
  const auto width = static_cast<unsigned>(std::bit_width(latency));
  const unsigned shift = width > kMantissaBits ? width - kMantissaBits : 0;
  return unpacked(packed(latency + low_bits(chance, shift)));
}

// Returns `from`, moved towards `to` by 1/window of the distance.
constexpr std::uint64_t moved_towards(std::uint64_t from, std::uint64_t to, std::uint64_t window,
                                      std::uint64_t chance) noexcept {
  const std::uint64_t distance = to > from ? to - from : from - to;
  const std::uint64_t step = (distance + (chance >> 40) % window) / window;
  return rounded(to > from ? from + step : from - step, chance);
}

// The quick mean covers the latencies of w = 4 × limit answers, about four round trips; w is from kFewest to
// kMostAnswers. The slow mean covers kSlower × w answers.
constexpr std::uint64_t kFewest = 32, kMostAnswers = 512, kSlower = 8;

constexpr std::uint64_t window_at(std::uint64_t limit) noexcept {
  return std::clamp(4 * limit, kFewest, kMostAnswers);
}

// Returns ⌊√n⌋, by Newton's method from above.
constexpr std::uint64_t root(std::uint64_t n) noexcept {
  if (n < 2) return n;
  std::uint64_t x = n;
  for (std::uint64_t y = (x + 1) / 2; y < x; y = (x + n / x) / 2) x = y;
  return x;
}

}  // namespace

base::Result<Concurrency> Concurrency::make(std::uint64_t limit) {
  if (limit == 0) return base::Error{"the limit must be at least 1"};
  return Concurrency(limit);
}

Step Concurrency::step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept {
  Step result{.outcome = outcome_for(cell.words[0], limit_, limit_, cost), .next = cell, .drained_at = now};
  if (result.outcome.allowed) result.next.words[0] += cost;
  if (result.next.words[0] != 0) result.drained_at = kNever;
  return result;
}

Cell Concurrency::charge_over_limit(const Cell& cell, base::TimePoint, Cost cost) const noexcept {
  return {{cell.words[0] + cost, 0}};
}

Cell Concurrency::release(const Cell& cell, Cost cost) const noexcept {
  return {{beyond(cell.words[0], cost), 0}};
}

base::TimePoint Concurrency::drained_at(const Cell& cell) const noexcept {
  return cell.words[0] != 0 ? kNever : base::TimePoint{};
}

base::Result<AdaptiveConcurrency> AdaptiveConcurrency::make(std::uint64_t min, std::uint64_t max) {
  if (min == 0) return base::Error{"min must be at least 1"};
  if (max < min) return base::Error{"max must be at least min"};
  if (max > kMost) return base::Error{"max must be at most " + std::to_string(kMost)};
  return AdaptiveConcurrency(min, max);
}

AdaptiveConcurrency::AdaptiveConcurrency(std::uint64_t min, std::uint64_t max) noexcept
    : min_(min), max_(max), start_(root(min * max) * kScale) {}

AdaptiveConcurrency::State AdaptiveConcurrency::state_of(const Cell& cell,
                                                         base::TimePoint now) const noexcept {
  const std::uint64_t word = cell.words[0];
  State state{.limit = low_bits(word, kLimitBits),
              .in_flight = in_flight(cell),
              .used = word >> (kLimitBits + kFlightBits),
              .best = unpacked(cell.words[1] >> (2 * kLatencyBits + kSeenBits)),
              .slow = unpacked(low_bits(cell.words[1] >> (kLatencyBits + kSeenBits), kLatencyBits)),
              .quick = unpacked(low_bits(cell.words[1] >> kSeenBits, kLatencyBits)),
              .seen = low_bits(cell.words[1], kSeenBits)};
  if (drained_at(cell) <= now) state = {start_, 0, 0, 0, 0, 0, 0};
  state.limit = std::clamp(state.limit, min_ * kScale, max_ * kScale);
  return state;
}

Cell AdaptiveConcurrency::cell_of(const State& state) noexcept {
  return {{(state.used << (kLimitBits + kFlightBits)) | (state.in_flight << kLimitBits) | state.limit,
           (packed(state.best) << (2 * kLatencyBits + kSeenBits)) |
               (packed(state.slow) << (kLatencyBits + kSeenBits)) | (packed(state.quick) << kSeenBits) |
               state.seen}};
}

std::uint64_t AdaptiveConcurrency::in_flight(const Cell& cell) const noexcept {
  return low_bits(cell.words[0] >> kLimitBits, kFlightBits);
}

base::TimePoint AdaptiveConcurrency::drained_at(const Cell& cell) const noexcept {
  if (cell == Cell{}) return {};
  if (in_flight(cell) != 0) return kNever;
  return instant(((cell.words[0] >> (kLimitBits + kFlightBits)) + 1) * kGrain) + kMemory;
}

std::uint64_t AdaptiveConcurrency::limit(const Cell& cell, base::TimePoint now) const noexcept {
  return state_of(cell, now).limit / kScale;
}

Step AdaptiveConcurrency::step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept {
  State state = state_of(cell, now);
  Step result{.outcome = outcome_for(state.in_flight, state.limit / kScale, max_, cost),
              .next = cell,
              .drained_at = drained_at(cell)};
  result.outcome.limit = static_cast<std::uint32_t>(state.limit / kScale);
  if (!result.outcome.allowed) return result;
  state.in_flight += cost;
  result.next = cell_of(state);
  result.drained_at = kNever;
  return result;
}

Cell AdaptiveConcurrency::charge_over_limit(const Cell& cell, base::TimePoint now, Cost cost) const noexcept {
  State state = state_of(cell, now);
  state.in_flight = std::min(state.in_flight + cost, (std::uint64_t{1} << kFlightBits) - 1);
  return cell_of(state);
}

// Returns the limit after one answer. A rising limit covers half the distance to its target within `limit`
// answers. A falling limit needs twice as many answers. Otherwise it would fall too far before the quick mean
// of the latency shows the effect of the lower limit. The limit changes by at least 1/kScale, so that
// rounding does not stop it.
std::uint64_t AdaptiveConcurrency::adapted(const State& state, std::uint64_t gradient) const noexcept {
  const std::uint64_t whole = state.limit / kScale;
  if (gradient < kGradient) {
    const std::uint64_t fall = state.limit * (kGradient - gradient) / kGradient / (4 * whole);
    return std::max(state.limit - std::max<std::uint64_t>(fall, 1), min_ * kScale);
  }
  if (2 * state.in_flight < whole) return state.limit;
  const std::uint64_t rise = root(whole) * kScale / (2 * whole);
  return std::min(state.limit + std::max<std::uint64_t>(rise, 1), max_ * kScale);
}

// Updates both means and the best latency after one answer. The first answers of a key have equal weight, so
// that none of them decides alone.
void AdaptiveConcurrency::learn(State& state, base::Duration latency, std::uint64_t chance) const noexcept {
  constexpr std::uint64_t kLongest = std::numeric_limits<std::uint32_t>::max();
  constexpr std::uint64_t kFirst = (std::uint64_t{1} << kSeenBits) - 1;
  const std::uint64_t sample = std::clamp<std::uint64_t>(micros(latency), 1, kLongest) * kPerMicro;
  const std::uint64_t whole = state.limit / kScale;
  const std::uint64_t window = window_at(whole);
  const bool first = state.seen < kFirst;
  const bool alone = state.in_flight <= min_;
  if (first) ++state.seen;
  const auto window_so_far = [&](std::uint64_t answers) {
    return first ? std::min(answers, state.seen) : answers;
  };
  state.quick = moved_towards(state.quick, sample, window_so_far(window), chance);
  state.slow =
      moved_towards(state.slow, sample, window_so_far(alone ? 2 * window : kSlower * window), chance);
  const bool far_below_limit = 4 * state.in_flight <= 3 * whole;
  if ((first && state.seen <= 2 * whole) || state.slow < state.best)
    state.best = state.slow;
  else if (alone)
    state.best = moved_towards(state.best, state.slow, kFewest, chance);
  else if (far_below_limit && 4 * state.quick <= 5 * state.best)
    state.best = moved_towards(state.best, state.quick, kSlower * window, chance);
  // A quick mean below 4/5 of the best latency is hardly chance: answers have become faster. So lowers the
  // best latency at once. Otherwise only the slow mean would lower it later, and the limit would rise too
  // high in the meantime.
  state.best = std::min(state.best, rounded(state.quick * 5 / 4, 0));
}

Cell AdaptiveConcurrency::release(const Cell& cell, base::TimePoint now, Cost cost,
                                  const Ending& ending) const noexcept {
  State state = state_of(cell, now);
  if (state.in_flight == 0) return cell;  // another call has released the permit already
  if (ending.failed) {
    state.limit = adapted(state, kWorst);  // a failure is treated like the slowest answer
  } else if (ending.latency) {
    learn(state, *ending.latency, chance_at(micros(now) + state.in_flight));
    const std::uint64_t gradient = kGradient * 3 / 2 * state.best / state.quick;
    // With at most `min_` units in flight, learn() moves the best latency towards the slow mean. The
    // limit then rises only if the quick mean is at most 9/8 of the best latency.
    const bool may_rise = state.in_flight > min_ || 8 * state.quick <= 9 * state.best;
    if (gradient < kGradient || may_rise)
      state.limit = adapted(state, std::clamp(gradient, kWorst, kGradient));
  }
  state.in_flight = beyond(state.in_flight, cost);
  if (state.in_flight == 0 && state.best == 0 && state.limit == start_)
    return {};  // the limit has learned nothing, so the key is fresh
  state.used = std::min(micros(now) / kGrain, (std::uint64_t{1} << kUsedBits) - 1);
  return cell_of(state);
}

}  // namespace weir::limit
