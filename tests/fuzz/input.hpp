// Helpers of the fuzz targets. Input turns the fuzzer's bytes into numbers, and require() aborts if a
// condition does not hold.
#pragma once

#include "weir/limit/limiter.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace weir::fuzz {

inline void require(bool holds, const char* law) {
  if (holds) return;
  std::fprintf(stderr, "this does not hold: %s\n", law);
  std::abort();
}

// Reads numbers from the fuzzer's bytes. After the last byte, all numbers are zero and left() returns 0.
class Input {
 public:
  Input(const std::uint8_t* bytes, std::size_t size) : at_(bytes), left_(size) {}

  [[nodiscard]] std::size_t left() const noexcept { return left_; }
  std::uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *at_++;
  }
  std::uint64_t word() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }
  // Returns a number from `least` to `most`. The next byte of the input chooses the number's length in bits,
  // so small numbers are as frequent as large numbers.
  std::uint64_t between(std::uint64_t least, std::uint64_t most) {
    const unsigned bits = byte() % 64 + 1;
    const std::uint64_t value = bits <= 8 ? byte() : word();
    const std::uint64_t cut = value & (~std::uint64_t{0} >> (64 - bits));
    return least + (most - least == ~std::uint64_t{0} ? cut : cut % (most - least + 1));
  }

 private:
  const std::uint8_t* at_;
  std::size_t left_;
};

// Returns a limiter with random parameters; nullopt if the parameters are invalid. Never returns a limiter
// with calendar windows.
inline std::optional<limit::Limiter> limiter_from(Input& in) {
  constexpr std::uint64_t kCentury = std::uint64_t{36'500} * 86'400 * 1'000'000;
  const auto as_limiter = [](const auto& made) {
    return made ? std::optional<limit::Limiter>(*made) : std::nullopt;
  };
  const auto kind = in.byte() % 9;
  const limit::Rate rate{in.between(1, 1'000'000'000),
                         base::Duration(static_cast<base::Duration::rep>(in.between(1, kCentury)))};
  const std::uint64_t room = in.between(0, limit::kMaxCost - 1);
  switch (kind) {
    case 0:
      return as_limiter(limit::TokenBucket::make(rate, room));
    case 1:
      return as_limiter(limit::Gcra::make(rate, room));
    case 2: {
      const auto wait = in.between(0, kCentury);
      return as_limiter(limit::LeakyBucket::make(
          rate, room, wait == 0 ? base::kForever : base::Duration(static_cast<base::Duration::rep>(wait))));
    }
    case 3:
      return as_limiter(limit::SteppedBucket::make(rate, room));
    case 4:
      return as_limiter(limit::FixedWindow::make(rate));
    case 5:
      return as_limiter(limit::SlidingWindow::make(rate));
    case 6:
      return as_limiter(limit::SlidingLog::make(rate));
    case 7:
      return as_limiter(limit::SlidingLog::make(rate, in.between(0, 2'000)));
    default:
      return as_limiter(limit::Concurrency::make(room));
  }
}

}  // namespace weir::fuzz
