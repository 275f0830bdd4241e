#include "weir/proxy/shaper.hpp"

#include "unit/net/sockets.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using std::chrono::milliseconds;

constexpr limit::Key kLane{1, 1};
constexpr limit::Key kOtherLane{2, 1};

struct Waiter {
  explicit Waiter(net::Executor executor, int an_id) : ticket(executor), id(an_id) {}
  Shaper::Ticket ticket;
  int id;
  Shaper::Slot slot{};
  bool done = false;
  bool departed = false;
  base::TimePoint ended_at{};
};

class ShaperTest : public ::testing::Test {
 protected:
  ShaperTest() : shaper(context.get_executor(), clock), start(clock.now()) {}

  [[nodiscard]] Shaper::Slot after(base::Duration wait) const {
    return {start + wait, start + wait + std::chrono::hours(1)};
  }
  Waiter& join(Shaper::Slot slot, const limit::Key& key = kLane) {
    waiters.push_back(std::make_unique<Waiter>(context.get_executor(), static_cast<int>(waiters.size())));
    auto& waiter = *waiters.back();
    waiter.slot = slot;
    net::spawn(context.get_executor(), take_turn(waiter, key), [](const std::exception_ptr&) {});
    context.restart();
    context.poll();  // up to its wait
    return waiter;
  }
  net::Task<void> take_turn(Waiter& waiter, limit::Key key) {
    waiter.departed = co_await shaper.wait(waiter.ticket, key, waiter.slot);
    waiter.ended_at = clock.now();
    waiter.done = true;
    ended.push_back(waiter.id);
  }
  bool all_end() {
    return net::turn_until(context, [this] { return ended.size() == waiters.size(); });
  }

  net::asio::io_context context{1};
  net::Clock clock;
  Shaper shaper;
  base::TimePoint start;
  std::vector<std::unique_ptr<Waiter>> waiters;
  std::vector<int> ended;
};

// What a busy machine adds.
constexpr auto kPatience = milliseconds(500);

TEST_F(ShaperTest, DepartsInOrderAtThePromisedTimes) {
  for (int i = 0; i < 10; ++i) join(after((i + 2) * milliseconds(10)));
  EXPECT_EQ(shaper.waiting(), 10U);
  ASSERT_TRUE(all_end());
  EXPECT_EQ(ended, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  for (const auto& waiter : waiters) {
    EXPECT_TRUE(waiter->departed);
    EXPECT_GE(waiter->ended_at, waiter->slot.at);
    EXPECT_LE(waiter->ended_at, waiter->slot.at + kPatience);
  }
  EXPECT_EQ(shaper.waiting(), 0U);
}

TEST_F(ShaperTest, FirstComeTakesTheFirstDeparture) {
  join(after(milliseconds(60)));
  join(after(milliseconds(30)));
  join(after(milliseconds(45)));
  ASSERT_TRUE(all_end());
  EXPECT_EQ(ended, (std::vector<int>{0, 1, 2}));
  EXPECT_GE(waiters[0]->ended_at, after(milliseconds(30)).at);
  EXPECT_GE(waiters[1]->ended_at, after(milliseconds(45)).at);
  EXPECT_GE(waiters[2]->ended_at, after(milliseconds(60)).at);
}

TEST_F(ShaperTest, APromiseOfThePastIsKeptAtOnce) {
  join(after(-milliseconds(5)));
  EXPECT_TRUE(all_end());
  EXPECT_TRUE(waiters[0]->departed);
}

TEST_F(ShaperTest, ANewFirstDepartureIsNotSleptThrough) {
  join(after(std::chrono::hours(1)), kOtherLane);
  auto& soon = join(after(milliseconds(20)));
  ASSERT_TRUE(net::turn_until(context, [&] { return soon.done; }));
  EXPECT_TRUE(soon.departed);
  EXPECT_EQ(shaper.waiting(), 1U);
  waiters[0]->ticket.leave();
  EXPECT_TRUE(all_end());
}

TEST_F(ShaperTest, WhoLeavesFreesTheLastDepartureAndThoseBehindMoveUp) {
  for (int i = 0; i < 4; ++i) join(after((i + 3) * milliseconds(30)));
  const auto last = waiters[3]->slot;
  waiters[1]->ticket.leave();
  ASSERT_TRUE(net::turn_until(context, [&] { return waiters[1]->done; }));
  EXPECT_FALSE(waiters[1]->departed);
  EXPECT_EQ(waiters[1]->slot.at, last.at);
  EXPECT_EQ(waiters[1]->slot.promised, last.promised);
  EXPECT_EQ(shaper.waiting(), 3U);
  ASSERT_TRUE(all_end());
  EXPECT_EQ(ended, (std::vector<int>{1, 0, 2, 3}));
  EXPECT_LT(waiters[2]->ended_at, waiters[3]->ended_at);
  EXPECT_GE(waiters[2]->ended_at, after(4 * milliseconds(30)).at);
  EXPECT_GE(waiters[3]->ended_at, after(5 * milliseconds(30)).at);
}

// Nothing waits an hour here: who is second takes the first's departure.
TEST_F(ShaperTest, WhenTheFirstLeavesTheSecondLeavesInItsPlace) {
  join(after(milliseconds(40)));
  auto& second = join(after(std::chrono::hours(1)));
  waiters[0]->ticket.leave();
  ASSERT_TRUE(all_end());
  EXPECT_FALSE(waiters[0]->departed);
  EXPECT_EQ(waiters[0]->slot.at, after(std::chrono::hours(1)).at);
  EXPECT_TRUE(second.departed);
}

TEST_F(ShaperTest, LanesAreApart) {
  join(after(std::chrono::hours(1)), kLane);
  join(after(milliseconds(20)), kOtherLane);
  waiters[0]->ticket.leave();
  ASSERT_TRUE(all_end());
  EXPECT_FALSE(waiters[0]->departed);
  EXPECT_TRUE(waiters[1]->departed);
  EXPECT_GE(waiters[1]->ended_at, after(milliseconds(20)).at);
}

TEST_F(ShaperTest, WithNobodyLeftNoTimerGoesOn) {
  join(after(std::chrono::hours(1)));
  waiters[0]->ticket.leave();
  context.restart();
  context.run_for(std::chrono::seconds(10));
  EXPECT_TRUE(waiters[0]->done);
  EXPECT_TRUE(context.stopped()) << "the loop still has work";
  EXPECT_EQ(shaper.waiting(), 0U);
}

// Its departure is due and it leaves in one turn of the loop: it ends once, one way or the other, and so does
// the other.
TEST_F(ShaperTest, WhoLeavesAsItDepartsEndsOnce) {
  join(after(milliseconds(30)));
  join(after(milliseconds(60)));
  net::asio::post(context, [this] {
    std::this_thread::sleep_until(clock.steady(after(milliseconds(35)).at));
    waiters[0]->ticket.leave();
  });
  ASSERT_TRUE(all_end());
  EXPECT_TRUE(waiters[1]->departed);
  EXPECT_EQ(shaper.waiting(), 0U);
}

// Whoever comes and goes: everybody ends once, departures and freed ones together are those that were
// promised, none is early, and within a lane nobody overtakes.
TEST_F(ShaperTest, NoTicketAndNoDepartureIsLost) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::map<std::uint64_t, std::vector<Waiter*>> lanes;
  std::map<std::uint64_t, std::vector<base::TimePoint>> promised;
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t lane = random() % 3;
    const Shaper::Slot slot{clock.now() + milliseconds(random() % 40), {}};
    promised[lane].push_back(slot.at);
    lanes[lane].push_back(&join(slot, {lane, 7}));
    auto& any = *waiters[random() % waiters.size()];
    if (random() % 2 == 0 && !any.done) any.ticket.leave();
  }
  ASSERT_TRUE(all_end());
  EXPECT_EQ(shaper.waiting(), 0U);
  for (auto& [lane, members] : lanes) {
    auto& slots = promised[lane];
    std::sort(slots.begin(), slots.end());
    std::vector<base::TimePoint> departures;
    for (const auto* member : members) {
      if (member->departed) {
        departures.push_back(member->ended_at);
        continue;
      }
      const auto freed = std::find(slots.begin(), slots.end(), member->slot.at);
      ASSERT_NE(freed, slots.end()) << "a departure was freed twice, or never promised";
      slots.erase(freed);
    }
    ASSERT_TRUE(std::is_sorted(departures.begin(), departures.end())) << "somebody overtook";
    ASSERT_EQ(departures.size(), slots.size());
    for (std::size_t i = 0; i < slots.size(); ++i) ASSERT_GE(departures[i], slots[i]) << "early";
  }
}

}  // namespace
}  // namespace weir::proxy
