#include "weir/limit/turn.hpp"

#include "unit/limit/traffic.hpp"

#include "weir/limit/key_table.hpp"

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

namespace weir::limit {
namespace {

TEST(Turn, GoesByTimeAndThenByCount) {
  EXPECT_EQ(turn_after(0, kStart), turn_at(kStart));
  EXPECT_EQ(turn_after(turn_at(kStart), kStart), turn_at(kStart) + 1);
  EXPECT_EQ(turn_after(turn_at(kStart), kStart + 1us), turn_at(kStart + 1us));
  EXPECT_EQ(turn_after(turn_at(kStart + 5us), kStart),
            turn_at(kStart + 5us) + 1);  // whose clock was read before
}

// What one thread asked of the table, and what it was told.
struct Deed {
  enum class Kind { Charge, Refund, Settle, Release } kind = Kind::Charge;
  std::vector<Charge> charges;
  std::vector<Outcome> outcomes;
  base::TimePoint at{}, charged_at{};
  Cost actual = 0;
  Turn turn = 0;
};

void carry_out(KeyTable& table, Deed& deed, Turn* turn) {
  const auto& charge = deed.charges.front();
  switch (deed.kind) {
    case Deed::Kind::Charge:
      deed.outcomes.assign(deed.charges.size(), {});
      table.charge(deed.charges, deed.at, deed.outcomes, turn);
      break;
    case Deed::Kind::Refund:
      (void)table.refund(charge, deed.charged_at, deed.at, false, turn);
      break;
    case Deed::Kind::Settle:
      table.settle(charge, {deed.charged_at, deed.actual, deed.at}, false, turn);
      break;
    case Deed::Kind::Release:
      table.release(charge, deed.at, {}, false, turn);
      break;
  }
}

// Workers whose clocks were read a while before they come to lock.
std::vector<Deed> work(KeyTable& table, const std::vector<Limiter>& limiters, std::uint64_t seed, int count) {
  std::mt19937_64 chance(seed);
  std::vector<Deed> deeds, later;
  for (int i = 0; i < count; ++i) {
    Deed deed;
    deed.at = kStart + base::Duration(i * 3 + static_cast<int>(chance() % 40));
    if (!later.empty() && chance() % 2 == 0) {
      std::swap(later[chance() % later.size()], later.back());
      deed = later.back();
      later.pop_back();
      deed.at += base::Duration(chance() % 50);
    } else {
      for (std::size_t limiter = 0; limiter < limiters.size(); ++limiter)
        if (chance() % 2 == 0)
          deed.charges.push_back({key_of(chance() % 3, static_cast<RuleIndex>(limiter)), &limiters[limiter],
                                  static_cast<Cost>(1 + chance() % 2), static_cast<RuleIndex>(limiter),
                                  chance() % 8 != 0});
      if (deed.charges.empty()) continue;
    }
    carry_out(table, deed, &deed.turn);
    deeds.push_back(deed);
    if (deed.kind != Deed::Kind::Charge) continue;
    const bool admitted =
        std::all_of(deed.outcomes.begin(), deed.outcomes.end(), [&](const Outcome& outcome) {
          return outcome.allowed ||
                 !deed.charges[static_cast<std::size_t>(&outcome - deed.outcomes.data())].enforced;
        });
    for (std::size_t line = 0; admitted && line < deed.charges.size(); ++line) {
      const auto& charge = deed.charges[line];
      if (!deed.outcomes[line].allowed || (!holds(*charge.limiter) && chance() % 2 == 0)) continue;
      Deed next{.charges = {charge}, .outcomes = {}, .at = deed.at, .charged_at = deed.at};
      next.kind = holds(*charge.limiter) ? Deed::Kind::Release
                  : chance() % 2 == 0    ? Deed::Kind::Refund
                                         : Deed::Kind::Settle;
      next.actual = static_cast<Cost>(chance() % 5);
      later.push_back(next);
    }
  }
  return deeds;
}

TEST(Turn, WhatWorkersDidAtOnceComesOutTheSameInTheOrderOfItsTurns) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const std::vector<Limiter> limiters{token_bucket("9/s", 5), *Concurrency::make(4),
                                      SlidingLog::make(rate("20/10s")).value(),
                                      FixedWindow::make(rate("7/min")).value()};
  KeyTable table(1000);
  constexpr int kWorkers = 4;
  std::vector<std::vector<Deed>> all(kWorkers);
  std::vector<std::thread> threads;
  for (int i = 0; i < kWorkers; ++i)
    threads.emplace_back([&, i] { all[i] = work(table, limiters, seed + static_cast<unsigned>(i), 3000); });
  for (auto& thread : threads) thread.join();

  std::vector<Deed> in_order;
  for (const auto& deeds : all) {
    EXPECT_TRUE(std::all_of(deeds.begin(), deeds.end(), [](const Deed& deed) {
      return deed.turn >= turn_at(deed.at) || deed.turn == 0;  // 0: there was nothing to settle
    }));
    in_order.insert(in_order.end(), deeds.begin(), deeds.end());
  }
  std::sort(in_order.begin(), in_order.end(), [](const Deed& a, const Deed& b) { return a.turn < b.turn; });
  KeyTable again(1000);
  std::size_t refused = 0;
  for (auto deed : in_order) {
    const auto told = deed.outcomes;
    carry_out(again, deed, nullptr);
    ASSERT_EQ(deed.outcomes, told);
    refused += std::any_of(told.begin(), told.end(), [](const Outcome& one) { return !one.allowed; }) ? 1 : 0;
  }
  EXPECT_GT(refused, in_order.size() / 100);
}

}  // namespace
}  // namespace weir::limit
