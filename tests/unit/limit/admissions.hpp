// Stores every admission, and decides about a request by plain arithmetic over all of them. Windows and logs
// store less than that; tests compare their decisions with those of this class.
#pragma once

#include "weir/limit/limiter.hpp"

#include <cstdint>
#include <vector>

namespace weir::limit {

struct Admissions {
  struct One {
    std::int64_t at;  // µs
    std::int64_t cost;
  };
  std::vector<One> all;

  void add(base::TimePoint at, Cost cost) {
    all.push_back({at.time_since_epoch().count(), static_cast<std::int64_t>(cost)});
  }

  // Returns true if `limiter`, a window or log, must by its definition admit a request of this cost.
  [[nodiscard]] bool fit(const Limiter& limiter, base::TimePoint now, Cost cost) const {
    const auto at = now.time_since_epoch().count();
    const auto asked = static_cast<std::int64_t>(cost);
    const auto limit = static_cast<std::int64_t>(quota(limiter));
    if (const auto* window = std::get_if<FixedWindow>(&limiter)) {
      const auto period = window->rate().period.count();
      return sum([&](std::int64_t then) { return then / period == at / period; }) + asked <= limit;
    }
    if (const auto* window = std::get_if<SlidingWindow>(&limiter)) {
      const auto period = window->rate().period.count();
      const auto current = sum([&](std::int64_t then) { return then / period == at / period; });
      const auto previous = sum([&](std::int64_t then) { return then / period == at / period - 1; });
      return previous * (period - at % period) + (current + asked) * period <= limit * period;
    }
    const auto& log = std::get<SlidingLog>(limiter);
    const auto period = log.rate().period.count();
    const auto marks = log.is_exact() ? period : static_cast<std::int64_t>(log.buckets());
    const auto mark = [&](std::int64_t then) {
      return log.is_exact() ? then : then / period * marks + then % period * marks / period;
    };
    return sum([&](std::int64_t then) { return mark(then) + marks > mark(at); }) + asked <= limit;
  }

 private:
  template <class Counts>
  [[nodiscard]] std::int64_t sum(Counts counts) const {
    std::int64_t total = 0;
    for (const auto& [at, cost] : all) total += counts(at) ? cost : 0;
    return total;
  }
};

}  // namespace weir::limit
