// The law of leases: whatever several weirs take in advance, spend late, put back and give back, one exact
// limiter would have admitted all that they admit, at the moments at which they do.
//
// A Redis of one key, played by the limiters themselves and by the rules of refund.lua, and weirs whose
// clocks run apart; a request takes its time to reach it and back.
#include "redis/stock.hpp"

#include "weir/limit/limiter.hpp"
#include "weir/limit/sliding_log.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using namespace std::chrono_literals;
using limit::Cost;
using limit::Limiter;
using limit::Ticks;
using Us = base::Duration;

constexpr limit::Key kKey{1, 2};

Ticks tat_of(const limit::Cell& cell) {
  return Ticks{cell.words[1]} << 64 | cell.words[0];
}
limit::Cell cell_of(Ticks tat) {
  return {{static_cast<std::uint64_t>(tat), static_cast<std::uint64_t>(tat >> 64)}};
}

// A log keeps all its entries here, as in Redis.
class Exact {
 public:
  explicit Exact(const Limiter& limiter) : limiter_(limiter) {}

  limit::Outcome charge(base::TimePoint now, Cost cost) {
    if (const auto* log = std::get_if<limit::SlidingLog>(&limiter_)) return enter(*log, now, cost);
    const auto step = limit::step(limiter_, cell_, now, cost);
    if (step.outcome.allowed) cell_ = step.next;
    return step.outcome;
  }

  // What charge.lua would have said of the state before.
  std::array<std::int64_t, kAnswerNumbers> answer(base::TimePoint now) const {
    const auto* spacing = limit::spacing(limiter_);
    if (spacing == nullptr) return {};
    const auto tat = tat_of(cell_), at = spacing->ticks(now);
    const auto wait = tat > at ? tat - at : 0;
    return {static_cast<std::int64_t>(wait / spacing->rate().count),
            static_cast<std::int64_t>(wait % spacing->rate().count), 0};
  }

  // As refund.lua does it for a line with a lease.
  void refund(const Refund& back) {
    if (const auto* spacing = limit::spacing(limiter_)) {
      const auto length =
          Ticks{back.charge.cost} * static_cast<std::uint64_t>(spacing->rate().period.count());
      const auto tat = tat_of(cell_);
      if (tat > length && spacing->instant(tat - length) == back.departure) cell_ = cell_of(tat - length);
      return;
    }
    if (const auto* log = std::get_if<limit::SlidingLog>(&limiter_)) {
      const auto mark = log->mark_of(back.departure);
      for (auto& entry : entries_)
        if (entry.mark == mark) entry.cost -= std::min(entry.cost, back.charge.cost);
      return;
    }
    cell_ = limit::refund(limiter_, cell_, back.departure, back.charge.cost);
  }

  [[nodiscard]] std::uint64_t newest() const { return entries_.empty() ? 0 : entries_.back().mark; }
  [[nodiscard]] Cost total() const {
    Cost sum = 0;
    for (const auto& entry : entries_) sum += entry.cost;
    return sum;
  }
  void walk(auto visit) const {
    for (const auto& entry : entries_)
      if (entry.cost != 0 && !visit(entry)) return;
  }

 private:
  limit::Outcome enter(const limit::SlidingLog& log, base::TimePoint now, Cost cost) {
    std::erase_if(entries_, [&](const auto& entry) { return entry.mark + log.marks() <= log.mark_of(now); });
    const auto answer = log.ask(*this, now, cost);
    if (!answer.outcome.allowed) return answer.outcome;
    if (entries_.empty() || entries_.back().mark != answer.mark) entries_.push_back({answer.mark, 0});
    entries_.back().cost += cost;
    return answer.outcome;
  }

  const Limiter& limiter_;
  limit::Cell cell_{};
  std::vector<limit::LogEntry> entries_;
};

struct Admission {
  base::TimePoint at;
  Cost cost;
  bool came_to_nothing = false;
};

struct Case {
  const char* name;
  Limiter limiter;
  Us step;  // the mean time between two requests
};

class World {
 public:
  World(const Limiter& limiter, std::uint64_t seed, std::size_t weirs)
      : random_(seed), limiter_(limiter), redis_(limiter) {
    for (std::size_t i = 0; i < weirs; ++i)
      weirs_.push_back({.stock = std::make_unique<Stock>(64, 200ms), .offset = Us(below(1'000'000))});
  }

  void run(std::size_t requests, Us mean) {
    for (std::size_t i = 0; i < requests; ++i) {
      now_ += Us(below(static_cast<std::uint64_t>(2 * mean.count())));
      if (below(200) == 0) now_ += Us(below(600'000));  // a lull
      auto& weir = weirs_[below(hot_ ? 1 : weirs_.size())];
      if (below(100) == 0) hot_ = !hot_;
      request(weir);
      if (below(20) == 0) sweep(weirs_[below(weirs_.size())]);
    }
    for (auto& weir : weirs_) {
      hear_of_refusals(weir);
      std::vector<Refund> back;
      weir.stock->give_up(local(weir), back, 1000);
      refund(back);
    }
  }

  [[nodiscard]] LeaseStats stats() const {
    LeaseStats sum;
    for (const auto& weir : weirs_) {
      const auto& stats = weir.stock->stats();
      sum.taken += stats.taken;
      sum.spent += stats.spent;
      sum.put_back += stats.put_back;
      sum.returned += stats.returned;
      sum.lost += stats.lost;
    }
    return sum;
  }
  [[nodiscard]] std::size_t trips() const { return trips_; }

  // Feeds what was admitted, in its order, to a limiter that knows nothing of leases.
  void check_law() const {
    auto admitted = admitted_;
    std::erase_if(admitted, [](const auto& one) { return one.came_to_nothing; });
    std::stable_sort(admitted.begin(), admitted.end(),
                     [](const auto& a, const auto& b) { return a.at < b.at; });
    Exact exact(limiter_);
    for (std::size_t i = 0; i < admitted.size(); ++i)
      ASSERT_TRUE(exact.charge(admitted[i].at, admitted[i].cost).allowed)
          << "admission " << i << " of " << admitted.size();
  }

 private:
  struct Weir {
    std::unique_ptr<Stock> stock;
    Us offset;                                              // of its steady clock
    std::vector<std::pair<limit::Charge, Trip>> refused{};  // by another node, which has not told yet
  };

  std::uint64_t below(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(random_);
  }

  // A weir's clock is slow by a part in 2000.
  [[nodiscard]] Stock::Time local(const Weir& weir) const {
    const auto since = now_.time_since_epoch();
    return Stock::Time(since - since / 2000 + weir.offset);
  }

  // The way there and back; nothing else happens meanwhile.
  struct Answer {
    limit::Outcome outcome;
    Trip trip;
  };
  Answer ask(const Weir& weir, const limit::Charge& line) {
    const auto sent = local(weir);
    now_ += Us(below(800));
    const auto at = now_;
    const auto answer = redis_.answer(at);
    const auto outcome = redis_.charge(at, line.cost);
    ++trips_;
    now_ += Us(below(800));
    return {outcome, trip_of(line, sent, local(weir), at, answer)};
  }

  void request(Weir& weir) {
    if (below(2) == 0) hear_of_refusals(weir);
    limit::Charge line{.key = kKey, .limiter = &limiter_};
    line.cost = below(10) == 0 ? 3 : 1;
    line.lease = limit::quota(limiter_) / 4;
    limit::Outcome outcome;
    base::TimePoint charged_at = now_;
    if (!weir.stock->spend(line, local(weir), outcome)) {
      weir.stock->note_trip(line, local(weir));
      auto answer = ask(weir, line);
      if (limit::spacing(limiter_) != nullptr && answer.outcome.allowed && below(8) == 0) {
        weir.refused.push_back({line, answer.trip});
        answer.outcome.allowed = false;
      }
      weir.stock->learn(line, answer.trip, answer.outcome);
      outcome = answer.outcome;
      charged_at = answer.trip.charged_at;
    }
    if (outcome.allowed) settle(weir, line, outcome, charged_at);
    if (const auto units = weir.stock->wanted(line, local(weir))) take(weir, line, units);
  }

  void hear_of_refusals(Weir& weir) {
    std::vector<Refund> back;
    for (const auto& [line, trip] : weir.refused) weir.stock->keep_unused(line, trip, back);
    if (!weir.refused.empty()) weir.stock->return_cold(weir.refused.front().first, local(weir), back);
    weir.refused.clear();
    refund(back);
  }

  // One in ten comes to nothing, and says so after a while.
  void settle(Weir& weir, const limit::Charge& line, const limit::Outcome& outcome,
              base::TimePoint charged_at) {
    const bool fails = below(10) == 0;
    admitted_.push_back({outcome.lot != 0 ? now_ : charged_at, line.cost, fails});
    if (!fails) return;
    now_ += Us(below(3000));
    if (outcome.lot != 0)
      weir.stock->put_back(line, outcome.lot);
    else if (limit::spacing(limiter_) != nullptr)
      give_back(weir, line, charged_at);
    else
      redis_.refund({line, charged_at});
  }

  void give_back(Weir& weir, const limit::Charge& line, base::TimePoint charged_at) {
    std::vector<Refund> back;
    weir.stock->adopt(line, charged_at, back);
    ASSERT_TRUE(back.empty() || back[0].charge.lease != 0) << "requests come one after another";
    refund(back);
  }

  void take(Weir& weir, limit::Charge line, Cost units) {
    line.cost = units;
    if (below(20) == 0) return weir.stock->failed(line, local(weir));
    const auto answer = ask(weir, line);
    std::vector<Refund> back;
    weir.stock->arrived(line, answer.trip, answer.outcome, back);
    refund(back);
  }

  void sweep(Weir& weir) {
    std::vector<Refund> back;
    weir.stock->sweep(local(weir), back, 1000);
    refund(back);
  }

  void refund(const std::vector<Refund>& back) {
    now_ += Us(below(800));
    for (const auto& line : back) redis_.refund(line);
  }

  std::mt19937_64 random_;
  const Limiter& limiter_;
  Exact redis_;
  std::vector<Weir> weirs_;
  std::vector<Admission> admitted_;
  base::TimePoint now_{Us(1'700'000'000'123'456)};
  std::size_t trips_ = 0;
  bool hot_ = false;
};

std::vector<Case> cases() {
  using namespace limit;
  const auto rate = [](std::uint64_t count, Us period) { return Rate{count, period}; };
  return {{"bucket, never empty", TokenBucket::make(rate(2000, 1s), 2000).value(), 1000us},
          {"bucket, overloaded", TokenBucket::make(rate(300, 1s), 200).value(), 1500us},
          {"bucket of odd numbers", TokenBucket::make(rate(700, 3s), 64).value(), 4000us},
          {"bucket, nearly even", TokenBucket::make(rate(1000, 1s), 100).value(), 900us},
          {"gcra", Gcra::make(rate(1000, 1s), 60).value(), 1200us},
          {"fixed", FixedWindow::make(rate(300, 500ms)).value(), 1200us},
          {"weighted", SlidingWindow::make(rate(400, 700ms)).value(), 1100us},
          {"buckets", SlidingLog::make(rate(500, 1s), 5).value(), 1200us}};
}

TEST(StockLaw, WhatIsAdmittedOneExactLimiterAdmits) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  for (const auto& [name, limiter, mean] : cases()) {
    SCOPED_TRACE(name);
    LeaseStats all;
    for (std::uint64_t round = 0; round < 20; ++round) {
      World world(limiter, seed + round, 1 + round % 4);
      world.run(2500, mean);
      world.check_law();
      if (HasFatalFailure()) return;
      const auto stats = world.stats();
      EXPECT_EQ(stats.held(), 0U);
      all.taken += stats.taken;
      all.spent += stats.spent;
      all.put_back += stats.put_back;
      all.returned += stats.returned;
    }
    EXPECT_GT(all.spent, 1000U) << "else nothing was tried";
    EXPECT_GT(all.put_back, 50U);
    EXPECT_GT(all.returned, 50U);
  }
}

}  // namespace
}  // namespace weir::redis
