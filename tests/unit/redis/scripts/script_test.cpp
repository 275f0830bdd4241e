// Runs charge.lua and refund.lua on a real Redis. The outcomes and states must equal those of limit::step and
// limit::refund.
#include "redis/scripts/bill.hpp"
#include "unit/redis/store/store_fixture.hpp"

#include <cstring>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using limit::Ticks;

Ticks tat_of(const limit::Cell& cell) {
  return (Ticks{cell.words[1]} << 64) | cell.words[0];
}
limit::Cell cell_of(Ticks tat) {
  return {{static_cast<std::uint64_t>(tat), static_cast<std::uint64_t>(tat >> 64)}};
}

std::uint64_t count_of(const limit::Limiter& limiter) {
  return limit::gcra_core(limiter)->rate().count;
}

std::string packed(Ticks tat, std::uint64_t count) {
  const double numbers[2] = {static_cast<double>(static_cast<std::uint64_t>(tat / count)),
                             static_cast<double>(static_cast<std::uint64_t>(tat % count))};
  return {reinterpret_cast<const char*>(numbers), sizeof numbers};
}

Ticks unpacked(const std::string& state, std::uint64_t count) {
  double numbers[2];
  EXPECT_EQ(state.size(), sizeof numbers);
  std::memcpy(numbers, state.data(), sizeof numbers);
  return Ticks(static_cast<std::uint64_t>(numbers[0])) * count + static_cast<std::uint64_t>(numbers[1]);
}

limit::Key key_number(std::uint64_t n) {
  return {n * 0x9E3779B97F4A7C15ULL, ~n};
}

class Script : public ::testing::Test {
 protected:
  Server server_;
  Worker worker_{Worker::settings_for(server_)};
  std::uint32_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};

  void SetUp() override { ASSERT_TRUE(worker_.turn_until_up()); }

  std::uint64_t up_to(std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(1, most)(random_);
  }
  // Returns a random number from 1 to `most`. All orders of magnitude are equally likely.
  std::uint64_t any_size(std::uint64_t most) { return up_to(std::min(most, std::uint64_t{1} << up_to(50))); }

  limit::Limiter any_limiter() {
    for (;;) {
      const limit::Rate rate{any_size(1'000'000'000),
                             base::Duration(any_size(36'525ULL * 86'400 * 1'000'000))};
      const auto size = any_size(limit::kMaxCost);
      if (up_to(3) == 1) {
        if (auto made = limit::TokenBucket::make(rate, size)) return *made;
      } else if (up_to(2) == 1) {
        if (auto made = limit::Gcra::make(rate, size - 1)) return *made;
      } else {
        const base::Duration longest(up_to(2) == 1 ? base::kForever.count() : any_size(1ULL << 50));
        if (auto made = limit::LeakyBucket::make(rate, size - 1, longest)) return *made;
      }
    }
  }

  // Returns a TAT near a boundary: in the past, slightly in the future, at the capacity, or beyond the
  // capacity, as after a reduction of the configured limit.
  Ticks any_tat(const limit::Limiter& limiter, base::TimePoint now) {
    const auto count = count_of(limiter);
    const auto at = Ticks(static_cast<std::uint64_t>(now.time_since_epoch().count())) * count;
    const auto window = static_cast<std::uint64_t>(limit::window(limiter).count());
    const Ticks ahead = Ticks(any_size(std::max<std::uint64_t>(window, 2) * 2)) * count + up_to(count) - 1;
    return up_to(4) == 1 ? at - std::min(at, ahead) : at + ahead;
  }

  // Returns the TAT that Redis has for the key; 0 if there is none.
  Ticks state_of(const limit::Charge& charge) {
    const auto reply = server_.ask({"GET", key_name("weir", charge.key)});
    return reply.kind == Reply::Kind::Nil ? 0 : unpacked(reply.text, count_of(*charge.limiter));
  }
  void set_state(const limit::Charge& charge, Ticks tat) {
    server_.ask({"SET", key_name("weir", charge.key), packed(tat, count_of(*charge.limiter))});
  }
};

// Uses random parameters, states and requests, and Redis's own clock.
TEST_F(Script, RedisGivesTheSameOutcomesAsTheLocalLimiters) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  const auto any = token_bucket({1, 1s}, 1);
  auto now = worker_.charge({{key_number(0), &any}}).now;
  int charged = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<limit::Limiter> limiters;
    std::vector<limit::Charge> bill;
    std::vector<limit::Cell> cells;
    const auto lines = up_to(4);
    for (std::size_t i = 0; i < lines; ++i) limiters.push_back(any_limiter());
    for (std::size_t i = 0; i < lines; ++i) {
      const auto cost = std::min(any_size(limit::quota(limiters[i]) + 2), limit::kMaxCost);
      bill.push_back({key_number(random_()), &limiters[i], cost, 0, up_to(4) != 1});
      cells.push_back(up_to(3) == 1 ? limit::Cell{} : cell_of(any_tat(limiters[i], now)));
      if (cells[i] != limit::Cell{}) set_state(bill[i], tat_of(cells[i]));
    }
    const auto answer = worker_.charge(bill);
    ASSERT_FALSE(answer.error) << answer.error.message() << " " << worker_.store.last_error();
    now = answer.now;
    bool fits = true;
    std::vector<limit::Step> steps;
    for (std::size_t i = 0; i < lines; ++i) {
      // Redis stores no TAT (theoretical arrival time) that lies in the past, because a limiter treats a past
      // TAT like the present time.
      steps.push_back(limit::step(limiters[i], cells[i], now, bill[i].cost));
      fits = fits && (steps[i].outcome.allowed || !bill[i].enforced);
    }
    charged += fits;
    for (std::size_t i = 0; i < lines; ++i) {
      EXPECT_EQ(answer.outcomes[i], steps[i].outcome)
          << limit::describe(limiters[i]) << " cost " << bill[i].cost;
      const bool pays = fits && steps[i].outcome.allowed;
      const auto after = tat_of(pays ? steps[i].next : cells[i]);
      const auto stored = state_of(bill[i]);
      // A key with a short time to live may have expired by now.
      const bool lives = limit::drained_at(limiters[i], cell_of(after)) > now + 10s;
      EXPECT_TRUE(stored == after || (stored == 0 && !lives)) << limit::describe(limiters[i]);
    }
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(charged, 200);
  EXPECT_LT(charged, 1800);
}

TEST_F(Script, RedisRefundsAsTheLocalLimitersDo) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  const auto any = token_bucket({1, 1s}, 1);
  const auto now = worker_.charge({{key_number(0), &any}}).now;
  int moved = 0;
  for (int round = 0; round < 1000; ++round) {
    const auto limiter = any_limiter();
    const auto capacity = limit::gcra_core(limiter)->capacity();
    const auto cost = any_size(std::min(capacity, limit::kMaxCost));  // weir never charges a higher cost
    const limit::Charge line{key_number(random_()), &limiter, cost};
    const auto before = any_tat(limiter, now);
    set_state(line, before);
    // Refunds the departure that the charge promised, or another departure.
    const auto paid_from = limit::gcra_core(limiter)->refund(before, cost);
    if (paid_from == 0) continue;  // the refund stopped at the epoch, so it is not exact
    const auto instant = limit::drained_at(limiter, cell_of(paid_from));
    const auto departure = up_to(3) == 1 ? instant + base::Duration(up_to(5)) : instant;
    worker_.store.refund(line, departure);
    // The reply to this charge shows that Redis has made the refund.
    const auto probe = worker_.charge({{key_number(0), &any}});
    const auto after = tat_of(limit::refund(limiter, cell_of(before), departure, cost));
    const auto drained = limit::drained_at(limiter, cell_of(after));
    const auto stored = state_of(line);
    EXPECT_TRUE(stored == after || (stored == 0 && drained <= probe.now + 10s))
        << limit::describe(limiter) << " cost " << cost;
    moved += after != before;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(moved, 400);
  EXPECT_EQ(worker_.store.stats().refunds_lost.load(), 0U);
}

}  // namespace
}  // namespace weir::redis
