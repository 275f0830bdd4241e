// What threads may do to one table at once. Run under ThreadSanitizer too.
#include "unit/limit/traffic.hpp"

#include "weir/limit/key_table.hpp"

#include <atomic>
#include <thread>
#include <vector>

namespace weir::limit {
namespace {

constexpr int kThreads = 4;
constexpr std::uint64_t kClients = 20;
constexpr std::uint64_t kBurst = 500;
constexpr RuleIndex kEverybody = 9;

template <class Work>
void in_parallel(Work work) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&work, i] { work(static_cast<std::uint64_t>(i)); });
}

TEST(KeyTableThreads, AdmitExactlyWhatOneThreadWould) {
  KeyTable table(1'000);
  const Limiter own = token_bucket("1/day", kBurst);
  const Limiter shared = token_bucket("1/day", kClients * kBurst / 2);
  std::atomic<std::uint64_t> admitted{0};
  in_parallel([&](std::uint64_t thread) {
    std::mt19937_64 random(thread);
    std::vector<Outcome> outcomes(2);
    for (int i = 0; i < 10'000; ++i) {
      const auto client = random() % kClients;
      const std::vector<Charge> bill = {{key_of(client), &own, 1, 0}, {key_of(0, 9), &shared, 1, kEverybody}};
      if (table.charge(bill, kStart, outcomes)) ++admitted;
    }
  });
  EXPECT_EQ(admitted, kClients * kBurst / 2) << "of 40,000 asked";
  std::uint64_t left = 0;
  for (std::uint64_t client = 0; client < kClients; ++client) {
    const auto outcome = table.peek({key_of(client), &own}, kStart);
    left += outcome.allowed ? outcome.remaining + 1 : 0;
  }
  EXPECT_EQ(left, kClients * kBurst - admitted) << "the two rules were charged differently";
}

TEST(KeyTableThreads, BillsOverManyShardsSweepsAndRefundsNeverWaitInACircle) {
  KeyTable table(300'000);  // all 256 shards
  const Limiter limiter = token_bucket("1000/s", 1'000'000);
  std::atomic<std::uint64_t> taken{0};
  in_parallel([&](std::uint64_t thread) {
    std::mt19937_64 random(thread);
    std::vector<Outcome> outcomes(kMaxCharges);
    for (int i = 0; i < 3'000; ++i) {
      std::vector<Charge> bill;
      const auto first = random() % 64;
      for (std::uint64_t line = 0; line < kMaxCharges; ++line)
        bill.push_back({key_of((first + line * 5) % 64), &limiter});
      if (table.charge(bill, kStart, outcomes)) taken += kMaxCharges;
      if (i % 3 == 0) table.refund(bill, kStart, outcomes, kStart), taken -= kMaxCharges;
      if (i % 100 == 0) table.sweep(kStart, 1'000);
      if (i % 500 == 0) static_cast<void>(table.stats());
    }
  });
  std::uint64_t charged = 0;
  for (std::uint64_t client = 0; client < 64; ++client)
    charged += 1'000'000 - 1 - table.peek({key_of(client), &limiter}, kStart).remaining;
  EXPECT_EQ(charged, taken);
  EXPECT_EQ(table.stats().keys, 64);
}

TEST(KeyTableThreads, AFullTableKeepsItsBoundUnderChurn) {
  KeyTable table(500);
  const Limiter limiter = token_bucket("1/day", 1);
  std::atomic<std::uint64_t> admitted{0};
  in_parallel([&](std::uint64_t thread) {
    Outcome outcome;
    for (std::uint64_t i = 0; i < 5'000; ++i) {
      const Charge charge{key_of(thread * 5'000 + i), &limiter};
      if (table.charge({&charge, 1}, kStart, {&outcome, 1})) ++admitted;
    }
  });
  const auto stats = table.stats();
  EXPECT_EQ(admitted, stats.keys + 1) << "one a slot, and one from the cell that all others share";
  EXPECT_EQ(stats.overflowed, 1);
}

}  // namespace
}  // namespace weir::limit
