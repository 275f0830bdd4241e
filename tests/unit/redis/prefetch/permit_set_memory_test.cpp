// Makes memory run out at each step of two operations. While a permit is being stored: no part of the permit
// may remain, because weir would renew it forever. While a request is being sent to Redis: the prefetched
// units that paid for the request must be put back.
#include "redis/store/permit_set.hpp"
#include "unit/redis/store/store_fixture.hpp"
#include "unit/scarce_memory.hpp"

#include "weir/limit/concurrency.hpp"
#include "weir/limit/limiter.hpp"
#include "weir/redis/shared_grants.hpp"
#include "weir/redis/store.hpp"

#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

void* operator new(std::size_t size) {
  return weir::tests::take_memory(size);
}
// Never fails, because std::stable_sort would then use another algorithm, which needs no extra memory.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace weir::redis {
namespace {

using tests::fail_each_allocation;

const limit::Limiter kTenAtOnce = limit::Concurrency::make(10).value();
const limit::Charge kPlace{.key = {7, 7}, .limiter = &kTenAtOnce, .cost = 1};

TEST(PermitSetMemory, PermitIsNotStoredIfMemoryRunsOut) {
  PermitSet leases(1, std::chrono::seconds(10));
  const int made =
      fail_each_allocation([&] { leases.hold_without_redis(kPlace); }, [&] { EXPECT_TRUE(leases.empty()); });
  EXPECT_GE(made, 2) << "allocations: a key and its permit";
  EXPECT_FALSE(leases.empty());
  EXPECT_FALSE(leases.release(kPlace)) << "Redis does not have the permit";
  EXPECT_TRUE(leases.empty());
}

// A store that was not started, and its event loop. The only handlers in the loop are those of the timer that
// renews permits.
struct Renewing {
  explicit Renewing(const RedisSettings& settings) : store(context.get_executor(), settings) {}
  net::asio::io_context context;
  Store store;
};

TEST(PermitSetMemory, PermitThatCouldNotBeStoredIsNotRenewed) {
  RedisSettings settings;
  settings.lease_time = std::chrono::milliseconds(3);
  std::optional<Renewing> fresh(settings);
  const auto only_one_was_held = [&] {
    fresh->store.hold(kPlace);
    EXPECT_EQ(fresh->context.run_one(), 1U);
    EXPECT_EQ(fresh->context.run_one(), 1U) << "the permit is renewed repeatedly";
    fresh->store.release(kPlace);
    EXPECT_EQ(fresh->context.run_one(), 1U);
    EXPECT_EQ(fresh->context.run_one(), 0U) << "no permit is held";
    fresh.emplace(settings);
  };
  const int made = fail_each_allocation([&] { fresh->store.hold(kPlace); }, only_one_was_held);
  EXPECT_GE(made, 3) << "allocations: a timer, a key, its permit";
}

struct Asked {
  std::vector<limit::Charge> bill;
  Answer answer{};
  std::exception_ptr thrown{};
};

net::Task<void> ask(Store& store, Asked& asked) {
  auto& [error, outcomes, now, unanswered, done, took] = asked.answer;
  outcomes.resize(asked.bill.size());
  error = co_await store.charge(asked.bill, outcomes, now, unanswered);
}

// Starts to charge a request. Every allocation after the first `allocations` fails, until the request waits
// for Redis. Returns true if an allocation has failed.
bool fails_after(long allocations, Worker& worker, Asked& asked) {
  tests::allocations_left = allocations;
  try {
    net::spawn(worker.loop.get_executor(), ask(worker.store, asked), [&](const std::exception_ptr& thrown) {
      asked.thrown = thrown;
      asked.answer.done = true;
    });
  } catch (const std::bad_alloc&) {  // the coroutine was not started
    asked.thrown = std::current_exception();
    asked.answer.done = true;
  }
  tests::allocations_left = -1;
  EXPECT_TRUE(worker.turn_until([&] { return asked.answer.done; }));
  return asked.thrown != nullptr || asked.answer.error;
}

TEST(PermitSetMemory, PrefetchedUnitsArePutBackIfMemoryRunsOutWhileARequestIsSent) {
  const limit::Limiter bucket = token_bucket({1, 24h}, 10'000);
  const limit::Limiter window = limit::FixedWindow::make({10'000, std::chrono::hours(24 * 365 * 30)}).value();
  Server server;
  SharedGrants units(64, 10s);
  Worker worker(Worker::settings_for(server), Worker::quick(), nullptr, &units);
  ASSERT_TRUE(worker.turn_until_up());
  const std::vector<limit::Charge> leased{{.key = {1, 1}, .limiter = &window, .lease = 1000}};
  while (units.stats().held() < 100) ASSERT_TRUE(worker.charge(leased).outcomes[0].allowed);

  const std::vector<limit::Charge> bill{leased[0], {.key = {2, 2}, .limiter = &bucket}};
  const auto spent = [&] { return units.stats().spent - units.stats().put_back; };
  const auto before = spent();
  long allocations = 0;
  for (bool failed = true; failed; ++allocations) {
    // A worker that has not sent any request to Redis.
    Worker fresh(Worker::settings_for(server), Worker::quick(), nullptr, &units);
    ASSERT_TRUE(fresh.turn_until_up());
    Asked asked{bill};
    failed = fails_after(allocations, fresh, asked);
    ASSERT_EQ(spent(), before + (failed ? 0 : 1)) << "after " << allocations;
  }
  EXPECT_GE(allocations, 4) << "a charge that Redis makes allocates at least four times";
}

}  // namespace
}  // namespace weir::redis
