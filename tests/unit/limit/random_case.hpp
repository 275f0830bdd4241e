// Random limiters and random traffic. Extreme values are frequent, because arithmetic most often fails with
// them.
#pragma once

#include "unit/limit/traffic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <vector>

namespace weir::limit {

// The algorithms under test. LoneLog is a sliding log that can store only one entry.
enum class Algorithm {
  TokenBucket,
  Gcra,
  LeakyBucket,
  SteppedBucket,
  FixedWindow,
  Calendar,
  SlidingWindow,
  BucketedWindow,
  LoneLog
};
inline constexpr auto kAlgorithms = static_cast<std::uint64_t>(Algorithm::LoneLog) + 1;

struct Case {
  Algorithm algorithm;
  Rate rate;
  std::uint64_t capacity;  // the units that a fresh key can spend at one instant, if max_wait is ignored
  Duration max_wait;
  Limiter limiter;

  // Returns true if the limiter's state is one instant: its spent units become available again one by one.
  [[nodiscard]] bool is_paced() const { return algorithm <= Algorithm::LeakyBucket; }
  // Returns true if the limiter's state may merge several admissions into the newest one.
  [[nodiscard]] bool merges() const { return algorithm >= Algorithm::BucketedWindow; }

  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << describe(c.limiter) << " (capacity " << c.capacity << ")";
  }
};

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}

  // Returns a random whole number from `least` to `most`. All orders of magnitude are equally likely.
  std::uint64_t magnitude(std::uint64_t least, std::uint64_t most) {
    const double low = std::log(static_cast<double>(least) + 1);
    const double high = std::log(static_cast<double>(most) + 1);
    const double value = std::exp(std::uniform_real_distribution(low, high)(engine_)) - 1;
    return std::clamp(static_cast<std::uint64_t>(value), least, most);
  }
  std::uint64_t between(std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(engine_);
  }
  bool one_in(std::uint64_t n) { return between(1, n) == 1; }
  template <class T, std::size_t N>
  T one_of(const std::array<T, N>& values) {
    return values[between(0, N - 1)];
  }

  Rate rate() {
    static constexpr auto kCentury = std::uint64_t{36'500} * 86'400 * 1'000'000;
    static constexpr std::array<Rate, 8> kExtremes = {{{3, 7s},
                                                       {1, Duration(kCentury)},
                                                       {1'000'000'000, 1us},
                                                       {1, 1us},
                                                       {1'000'000'000, Duration(kCentury)},
                                                       {10'000, 1h},
                                                       {999'999'937, 86'399'999'989us},
                                                       {10, 1s}}};
    if (one_in(2)) return one_of(kExtremes);
    return {magnitude(1, 1'000'000'000), Duration(magnitude(1, kCentury))};
  }

  // Returns the calendar of an imaginary zone. Its offset from UTC changes every 1 to 300 days, to any number
  // of half hours from 0 to 12 hours.
  std::shared_ptr<const Calendar> calendar() {
    std::vector<Calendar::Run> runs{{-1, std::chrono::seconds(between(0, 12) * 3'600)}};
    while (runs.size() < 400)
      runs.push_back({runs.back().first_day + static_cast<std::int32_t>(between(1, 300)),
                      std::chrono::seconds(between(0, 24) * 1'800)});
    return std::make_shared<Calendar>("Nowhere", std::move(runs));
  }

  // Returns a limiter with valid random parameters. Its capacity is below kMaxCost, so capacity + 1 is still
  // a valid cost.
  Case limiter() {
    for (;;) {
      static constexpr std::array<std::uint64_t, 5> kCapacities = {1, 2, 3, 10, kMaxCost - 1};
      const auto algorithm = static_cast<Algorithm>(between(0, kAlgorithms - 1));
      const auto capacity = one_in(2) ? one_of(kCapacities) : magnitude(1, kMaxCost - 1);
      const auto max_wait =
          one_in(2) ? base::kForever : Duration(one_in(4) ? 0 : magnitude(1, 100'000'000'000));
      if (const auto made = make(algorithm, rate(), capacity, max_wait)) return *made;
    }
  }

  TimePoint start() {
    static constexpr std::array<std::int64_t, 4> kStarts = {0, 1, 1'700'000'000'000'001,
                                                            9'000'000'000'000'000};
    return TimePoint(Duration(one_of(kStarts)));
  }

  // Returns the time until the next request: zero, a moment, about an interval, or about the time to drain.
  Duration pause(const Case& c) {
    const auto interval = static_cast<std::uint64_t>(c.rate.period.count()) / c.rate.count;
    switch (between(0, 4)) {
      case 0:
        return 0us;
      case 1:
        return 1us;
      case 2:
        return Duration(between(0, 2 * interval + 2));
      case 3:
        return Duration(magnitude(0, 2 * static_cast<std::uint64_t>(window(c.limiter).count()) + 2));
      default:
        return Duration(between(0, interval * 3 / 2 + 2) / between(1, 10));
    }
  }

  Cost cost(const Case& c) {
    switch (between(0, 5)) {
      case 0:
        return c.capacity;
      case 1:
        return c.capacity + (one_in(5) ? 1 : 0);
      case 2:
        return magnitude(1, c.capacity);
      case 3:
        return std::max<Cost>(1, c.capacity / between(1, 4));
      default:
        return 1;
    }
  }

 private:
  std::optional<Case> make(Algorithm algorithm, Rate rate, std::uint64_t capacity, Duration max_wait) {
    const auto wrap = [&](const auto& made, Duration wait) -> std::optional<Case> {
      if (!made) return std::nullopt;
      return Case{algorithm, rate, capacity, wait, *made};
    };
    const auto counted = [&](const auto& made) -> std::optional<Case> {
      if (!made) return std::nullopt;
      return Case{algorithm, made->rate(), made->quota(), base::kForever, *made};
    };
    switch (algorithm) {
      case Algorithm::SteppedBucket:
        return wrap(SteppedBucket::make(rate, capacity), base::kForever);
      case Algorithm::FixedWindow:
        return counted(FixedWindow::make(rate));
      case Algorithm::Calendar: {
        static constexpr std::array<FixedWindow::Align, 3> kAligns = {
            FixedWindow::Align::Day, FixedWindow::Align::Week, FixedWindow::Align::Month};
        return counted(FixedWindow::make(rate.count, one_of(kAligns), calendar()));
      }
      case Algorithm::SlidingWindow:
        return counted(SlidingWindow::make(rate));
      case Algorithm::BucketedWindow:
        return counted(SlidingLog::make(rate, magnitude(2, SlidingLog::kMostBuckets)));
      case Algorithm::LoneLog:
        return counted(SlidingLog::make(rate));
      case Algorithm::TokenBucket:
        return wrap(TokenBucket::make(rate, capacity), base::kForever);
      case Algorithm::Gcra:
        return wrap(Gcra::make(rate, capacity - 1), base::kForever);
      default:
        return wrap(LeakyBucket::make(rate, capacity - 1, max_wait), max_wait);
    }
  }

  std::mt19937_64 engine_;
};

// Returns the time that a client waits before it retries: a random time, exactly retry_after, or a
// microsecond less.
inline Duration patience(const Case& c, const Outcome& said, Dice& dice) {
  if (said.allowed || said.retry_after == base::kForever || dice.one_in(2)) return dice.pause(c);
  return said.retry_after - (dice.one_in(2) ? 1us : 0us);
}

// An admitted request.
struct Admission {
  TimePoint at;
  Cost cost;
};

}  // namespace weir::limit
