// Helpers of the limiter tests: short functions that make rules, instants and random keys, and a function
// that prints its random seed.
#pragma once

#include "weir/base/siphash.hpp"
#include "weir/limit/charge.hpp"

#include <iostream>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace weir::limit {

using base::Duration;
using base::TimePoint;
using namespace std::chrono_literals;

inline constexpr TimePoint kStart{std::chrono::microseconds{1'700'000'000'000'000}};

inline std::uint64_t new_seed() {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "[     SEED ] " << seed << '\n';
  return seed;
}

inline Key key_of(std::uint64_t number, std::uint64_t rule = 0) {
  base::SipHash128 hash({0x1234, 0x5678});
  hash.part(rule);
  hash.part(number);
  return hash.digest();
}

inline Rate rate(std::string_view text) {
  return parse_rate(text).value();
}

inline Limiter token_bucket(std::string_view limit, std::uint64_t burst) {
  return TokenBucket::make(rate(limit), burst).value();
}
inline Limiter gcra(std::string_view limit, std::uint64_t burst) {
  return Gcra::make(rate(limit), burst).value();
}
inline Limiter leaky_bucket(std::string_view limit, std::uint64_t queue, Duration max_wait = base::kForever) {
  return LeakyBucket::make(rate(limit), queue, max_wait).value();
}
inline Limiter stepped_bucket(std::string_view limit, std::uint64_t burst) {
  return SteppedBucket::make(rate(limit), burst).value();
}
inline Limiter fixed_window(std::string_view limit) {
  return FixedWindow::make(rate(limit)).value();
}
inline Limiter sliding_window(std::string_view limit) {
  return SlidingWindow::make(rate(limit)).value();
}
inline Limiter bucketed_window(std::string_view limit, std::uint64_t buckets) {
  return SlidingLog::make(rate(limit), buckets).value();
}
inline Limiter sliding_log(std::string_view limit) {
  return SlidingLog::make(rate(limit)).value();
}

}  // namespace weir::limit
