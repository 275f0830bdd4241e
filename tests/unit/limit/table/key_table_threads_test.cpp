// Threads use one table at once. Also runs under ThreadSanitizer.
#include "unit/limit/random_case.hpp"

#include "weir/limit/key_table.hpp"

#include <array>
#include <atomic>
#include <latch>
#include <memory>
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

// A set of charges that all threads make at the same instant of the test's clock, so that the order of the
// charges does not matter. Any limiter may occur, including concurrency limits.
struct Rush {
  explicit Rush(Dice& dice, RuleIndex first) : at(dice.start()) {
    const auto count = dice.between(1, kMost);
    for (RuleIndex i = 0; i < count; ++i) limiters.push_back(any(dice));
    for (RuleIndex i = 0; i < count; ++i) {
      const auto room = std::max<std::uint64_t>(quota(limiters[i]), 1);
      const auto rule = static_cast<RuleIndex>(first + i);
      bill.push_back({key_of(0, rule), &limiters[i], std::max<Cost>(1, room / dice.between(1, 20)), rule,
                      i == 0 || !dice.one_in(6)});
    }
  }
  static Limiter any(Dice& dice) {
    const auto limit = dice.between(1, 20);
    if (dice.one_in(8)) return Concurrency::make(limit).value();
    if (dice.one_in(8)) return AdaptiveConcurrency::make(limit, limit + dice.between(0, 400)).value();
    return dice.limiter().limiter;
  }
  void ask(KeyTable& table, std::uint64_t& admitted) const {
    std::array<Outcome, kMost> outcomes;
    for (int i = 0; i < kAsked; ++i)
      admitted += table.charge(bill, at, std::span(outcomes).first(bill.size()));
  }
  static constexpr std::uint64_t kMost = 3;
  static constexpr int kAsked = 4;  // requests of each thread
  TimePoint at;
  std::vector<Limiter> limiters;
  std::vector<Charge> bill;
};

// Lets all threads make many random sets of charges (Rush) on one table at once.
void rush(Dice& dice) {
  constexpr std::size_t kRushes = 50;
  std::vector<std::unique_ptr<Rush>> rushes;
  for (std::size_t i = 0; i < kRushes; ++i)
    rushes.push_back(std::make_unique<Rush>(dice, static_cast<RuleIndex>(i * Rush::kMost)));
  KeyTable table(1'000);
  std::array<std::array<std::uint64_t, kRushes>, kThreads> admitted{};
  std::latch all_there(kThreads);
  in_parallel([&](std::uint64_t thread) {
    all_there.arrive_and_wait();
    for (std::size_t i = 0; i < kRushes; ++i) rushes[i]->ask(table, admitted[thread][i]);
  });
  KeyTable lone(1'000);
  for (std::size_t i = 0; i < kRushes; ++i) {
    std::uint64_t together = 0, alone = 0;
    for (const auto& of_thread : admitted) together += of_thread[i];
    for (int thread = 0; thread < kThreads; ++thread) rushes[i]->ask(lone, alone);
    const auto& bill = rushes[i]->bill;
    ASSERT_EQ(together, alone) << "of " << kThreads * Rush::kAsked << ", by " << describe(*bill[0].limiter)
                               << " and " << bill.size() - 1 << " more";
    for (const auto& charge : bill)
      ASSERT_EQ(table.peek(charge, rushes[i]->at), lone.peek(charge, rushes[i]->at))
          << describe(*charge.limiter);
  }
}

TEST(KeyTableThreads, ManyThreadsAdmitExactlyAsManyRequestsAsOneThread) {
  const auto seed = new_seed();
  Dice dice(seed);
  for (int round = 0; round < 200 && !testing::Test::HasFatalFailure(); ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    rush(dice);
  }
}

TEST(KeyTableThreads, BothRulesOfARequestAreChargedEquallyByManyThreads) {
  const auto seed = new_seed();
  KeyTable table(1'000);
  const Limiter own = token_bucket("1/day", kBurst);
  const Limiter shared = token_bucket("1/day", kClients * kBurst / 2);
  std::atomic<std::uint64_t> admitted{0};
  in_parallel([&](std::uint64_t thread) {
    std::mt19937_64 random(seed + thread);
    std::vector<Outcome> outcomes(2);
    for (int i = 0; i < 10'000; ++i) {
      const auto client = random() % kClients;
      const std::vector<Charge> bill = {{key_of(client), &own, 1, 0}, {key_of(0, 9), &shared, 1, kEverybody}};
      if (table.charge(bill, kStart, outcomes)) ++admitted;
    }
  });
  EXPECT_EQ(admitted, kClients * kBurst / 2) << "of 40,000 asked, seed " << seed;
  std::uint64_t left = 0;
  for (std::uint64_t client = 0; client < kClients; ++client) {
    const auto outcome = table.peek({key_of(client), &own}, kStart);
    left += outcome.allowed ? outcome.remaining + 1 : 0;
  }
  EXPECT_EQ(left, kClients * kBurst - admitted) << "the two rules were charged differently";
}

TEST(KeyTableThreads, ThreadsThatChargeManySharedKeysNeverDeadlock) {
  const auto seed = new_seed();
  KeyTable table(300'000);  // uses all 256 shards
  const Limiter limiter = token_bucket("1000/s", 1'000'000);
  std::atomic<std::uint64_t> taken{0};
  in_parallel([&](std::uint64_t thread) {
    std::mt19937_64 random(seed + thread);
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

TEST(KeyTableThreads, TableThatThreadsFillAdmitsOneRequestForEachSlotAndOneForTheOverflowCell) {
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
  EXPECT_EQ(admitted, stats.keys + 1) << "one admission in each slot, and one in the shared overflow cell";
  EXPECT_EQ(stats.overflowed, 1);
}

}  // namespace
}  // namespace weir::limit
