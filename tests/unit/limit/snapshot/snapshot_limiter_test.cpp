#include "limit/snapshot/snapshot_limiter.hpp"

#include "unit/limit/random_case.hpp"

#include <array>

#include <gtest/gtest.h>

namespace weir::limit {
namespace {

std::optional<Limiter> through_words(const Limiter& limiter) {
  std::string bytes;
  const ByteSink sink = [&](std::string_view more) { bytes += more; };
  WordWriter out(sink);
  put_limiter(out, limiter);
  out.finish();
  std::string_view left = bytes;
  const ByteSource source = [&](std::span<char> into) { return left.copy(into.data(), into.size()); };
  WordReader in(source);
  return take_limiter(in);
}

TEST(SnapshotLimiter, ParametersOnWhichTheStateOfALimiterDependsAreRestored) {
  constexpr std::array<Calendar::Run, 1> kRuns{{{-1, std::chrono::hours(1)}}};
  const auto calendar = std::make_shared<const Calendar>("Europe/Berlin", kRuns);
  std::vector<Limiter> limiters = {
      FixedWindow::make(7, FixedWindow::Align::Month, calendar).value(),
      FixedWindow::make(7, FixedWindow::Align::Week, calendar).value(),
      LeakyBucket::make({10, 1s}, 5, 200ms).value(),
      LeakyBucket::make({10, 1s}, 5, base::kForever).value(),
      SteppedBucket::make({10, 1s}, 20).value(),
      Concurrency::make(3).value(),
      AdaptiveConcurrency::make(2, 50).value(),
  };
  Dice dice{new_seed()};
  for (int i = 0; i < 1'000; ++i) limiters.push_back(dice.limiter().limiter);
  for (const auto& limiter : limiters) {
    const auto back = through_words(limiter);
    ASSERT_TRUE(back) << describe(limiter);
    EXPECT_EQ(fingerprint(*back), fingerprint(limiter)) << describe(limiter);
  }
}

TEST(SnapshotLimiter, RejectsASavedLimiterWithImpossibleParameters) {
  const std::array<std::array<std::uint64_t, 4>, 5> all{
      {{99, 1, 1, 1}, {0, 0, 1, 1}, {0, 1, 0, 1}, {2, 1, 1, ~std::uint64_t{0}}, {8, 5, 4, 0}}};
  for (const auto& words : all) {
    std::string_view left(reinterpret_cast<const char*>(words.data()), sizeof words);
    const ByteSource source = [&](std::span<char> into) { return left.copy(into.data(), into.size()); };
    WordReader in(source);
    EXPECT_FALSE(take_limiter(in)) << words[0];
  }
}

}  // namespace
}  // namespace weir::limit
