// Tests the memory for a million keys, the effect of more than a million clients, and that the table decides
// without allocations.
#include "unit/limit/traffic.hpp"
#include "unit/scarce_memory.hpp"

#include "weir/limit/key_table.hpp"

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <new>
#include <vector>

namespace {
std::atomic<std::uint64_t> allocations{0};
}

// Counts every allocation of this program.
void* operator new(std::size_t size) {
  ++allocations;
  return weir::tests::take_memory(size);
}
void operator delete(void* at) noexcept {
  std::free(at);
}
void operator delete(void* at, std::size_t) noexcept {
  std::free(at);
}

namespace weir::limit {
namespace {

// With sanitizers the bound is higher, because their shadow memory counts as resident. ThreadSanitizer uses
// up to four bytes for each byte of the program.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kShadow = 5;
constexpr std::uint64_t kHaste = 20;  // builds with sanitizers divide the number of keys by this number
#else
constexpr std::uint64_t kShadow = 1;
constexpr std::uint64_t kHaste = 1;
#endif
constexpr std::uint64_t kBoundKiB = 64 * 1024 * kShadow;

std::uint64_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == "VmRSS:" && status >> kib) return kib;
  }
  return 0;
}

TEST(KeyTableMemory, MillionKeysTakeLessThan64MiB) {
  constexpr std::uint64_t kKeys = 1'000'000;
  const Limiter limiter = token_bucket("1/day", 2);
  const auto before = resident_kib();
  ASSERT_GT(before, 0);
  KeyTable table(kKeys);
  EXPECT_LT(resident_kib() - before, 4 * 1024 * kShadow) << "an empty table is not resident";
  Outcome outcome;
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    const Charge charge{key_of(i), &limiter};
    ASSERT_TRUE(table.charge({&charge, 1}, kStart, {&outcome, 1}));
  }
  const auto grown = resident_kib() - before;
  std::cout << "[   MEMORY ] " << grown << " KiB for " << kKeys << " keys, " << table.stats().slots
            << " slots\n";
  EXPECT_LE(grown, kBoundKiB);
  EXPECT_EQ(table.stats().keys, kKeys);
  EXPECT_EQ(table.stats().overflowed, 0);
}

// Ten million clients send one request each to a table with a million keys in use. An attacker can have no
// greater effect than these clients.
TEST(KeyTableMemory, TenMillionNewKeysTakeNoMemoryAndEvictNoKeyInUse) {
  constexpr std::uint64_t kKeys = 1'000'000 / kHaste;
  constexpr std::uint64_t kAttackers = 10 * kKeys;
  const Limiter limiter = token_bucket("1/day", 1);
  const auto before = resident_kib();
  KeyTable table(kKeys);
  Outcome outcome;
  const auto admits = [&](std::uint64_t client, TimePoint now) {
    const Charge charge{key_of(client), &limiter};
    return table.charge({&charge, 1}, now, {&outcome, 1});
  };
  for (std::uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(admits(i, kStart));
  ASSERT_EQ(table.stats().overflowed, 0);

  const std::clock_t began = std::clock();
  std::uint64_t admitted = 0, answered_together = 0;
  for (std::uint64_t i = 0; i < kAttackers; ++i) {
    admitted += admits(kKeys + i, kStart + Duration(i)) ? 1 : 0;
    answered_together += outcome.overflow ? 1 : 0;
  }
  const auto nanoseconds = static_cast<double>(std::clock() - began) * 1e9 / CLOCKS_PER_SEC;
  const auto grown = resident_kib() - before;
  const auto stats = table.stats();
  std::cout << "[   ATTACK ] " << nanoseconds / kAttackers << " ns of CPU a newcomer, " << grown << " KiB, "
            << admitted << " of " << kAttackers << " admitted, " << answered_together
            << " answered together\n";
  EXPECT_LE(grown, kBoundKiB);
  EXPECT_LE(stats.keys, stats.slots);
  EXPECT_EQ(stats.overflowed, 1) << "keys without a slot shared more than one admission";
  EXPECT_EQ(admitted, stats.keys - kKeys + stats.overflowed);
  EXPECT_EQ(answered_together, kAttackers - (stats.keys - kKeys));
  const auto then = kStart + 24h - 1us;
  for (std::uint64_t i = 0; i < kKeys; i += 97) ASSERT_FALSE(admits(i, then)) << i << " was forgotten";
}

TEST(KeyTableMemory, DecisionAllocatesNothing) {
  KeyTable table(1'000);  // small enough to overflow
  const Limiter bucket = token_bucket("10/s", 5);
  const Limiter queue = leaky_bucket("10/s", 5);
  const Limiter log = SlidingLog::make(rate("5000/s")).value();
  const Limiter window = SlidingWindow::make(rate("5000/s")).value();
  const Limiter in_flight = Concurrency::make(8).value();
  std::vector<Outcome> outcomes(6);
  const auto before = allocations.load();
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const auto now = kStart + Duration(i * 10);
    const std::array bill = {Charge{key_of(i), &bucket},
                             Charge{key_of(i % 7, 1), &queue, 1, 1},
                             Charge{key_of(i % 5, 2), &bucket, 1, 2},
                             Charge{key_of(i % 3, 3), &log, 1, 3},
                             Charge{key_of(i % 3, 4), &window, 1, 4},
                             Charge{key_of(i % 3, 5), &in_flight, 1, 5}};
    const bool charged = table.charge(bill, now, outcomes);
    if (charged && i % 2 == 0) table.refund(bill, now, outcomes, now);
    if (charged && i % 2 == 1) table.release(bill[5], now, {}, outcomes[5].overflow);
    table.sweep(now, 1);
    static_cast<void>(table.peek(bill[0], now));
    // The other limits soon refuse the whole bill. The log is also charged alone, so that it grows.
    table.charge({&bill[3], 1}, now + Duration(1), {outcomes.data(), 1});
  }
  EXPECT_EQ(allocations.load(), before);
  EXPECT_GT(std::vector<int>(1).size() + allocations.load(), before + 1)
      << "the allocation counter does not work";
}

}  // namespace
}  // namespace weir::limit
