// Memory that runs out at any step of holding a place leaves nothing that would be renewed for ever.
#include "redis/leases.hpp"
#include "unit/scarce_memory.hpp"

#include "weir/limit/concurrency.hpp"
#include "weir/limit/limiter.hpp"
#include "weir/redis/store.hpp"

#include <cstdlib>
#include <optional>

#include <gtest/gtest.h>

void* operator new(std::size_t size) {
  return weir::tests::take_memory(size);
}
// std::stable_sort does with less where there is none.
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

TEST(LeasesMemory, WhatCannotBeHeldIsNotThere) {
  Leases leases(1, std::chrono::seconds(10));
  const int made =
      fail_each_allocation([&] { leases.hold_unasked(kPlace); }, [&] { EXPECT_TRUE(leases.empty()); });
  EXPECT_GE(made, 2) << "a key, a place of it";
  EXPECT_FALSE(leases.empty());
  EXPECT_FALSE(leases.release(kPlace)) << "Redis has not heard of it";
  EXPECT_TRUE(leases.empty());
}

// A store and its loop, in which nothing but renewals happens.
struct Renewing {
  explicit Renewing(const RedisSettings& settings) : store(context.get_executor(), settings) {}
  net::asio::io_context context;
  Store store;
};

TEST(LeasesMemory, AStoreThatCouldNotHoldHasNothingToRenew) {
  RedisSettings settings;
  settings.lease_time = std::chrono::milliseconds(3);
  std::optional<Renewing> fresh(settings);
  const auto only_one_was_held = [&] {
    fresh->store.hold(kPlace);
    EXPECT_EQ(fresh->context.run_one(), 1U);
    EXPECT_EQ(fresh->context.run_one(), 1U) << "it is renewed again and again";
    fresh->store.release(kPlace);
    EXPECT_EQ(fresh->context.run_one(), 1U);
    EXPECT_EQ(fresh->context.run_one(), 0U) << "nothing is held";
    fresh.emplace(settings);
  };
  const int made = fail_each_allocation([&] { fresh->store.hold(kPlace); }, only_one_was_held);
  EXPECT_GE(made, 3) << "a timer's place, a key, a place of it";
}

}  // namespace
}  // namespace weir::redis
