// Memory runs out while a request takes permits, in this process or in Redis. All permits must still be
// released.
#include "proxy/admission/admission_controller.hpp"
#include "redis/prefetch/grant_cache.hpp"
#include "unit/proxy/lone_worker.hpp"
#include "unit/scarce_memory.hpp"

#include "weir/limit/concurrency.hpp"

#include <chrono>
#include <deque>
#include <exception>
#include <memory>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

Configuration two_places(policy::Store store,
                         policy::OnStoreFailure on_failure = policy::OnStoreFailure::Open) {
  Configuration config;
  for (const char* name : {"each", "all"}) {
    policy::Rule rule{.name = name,
                      .index = static_cast<limit::RuleIndex>(config.rules.size()),
                      .rule_number = static_cast<limit::RuleIndex>(config.rules.size()),
                      .limiter = limit::Concurrency::make(10).value()};
    rule.store = store;
    rule.on_store_failure = on_failure;
    config.rules.push_back(rule);
  }
  return config;
}

// A worker with an unreachable Redis, and one request.
struct Asking : LoneWorker {
  explicit Asking(const Configuration& a_config) : LoneWorker(a_config, &settings()) {
    buffers->request.head = &head;
    buffers->rules = config.rules;
    if (config.rules.front().store == policy::Store::Redis) {
      EXPECT_FALSE(decide());
    }
  }
  bool decide() { return admission->decide_here(clock.now(), policy::kDefaultPriority, result); }
  // Ends the exchange, and begins another exchange with new buffers.
  void end() {
    admission->abandon();
    admission.reset();
    buffers = std::make_unique<ExchangeBuffers>(worker);
    buffers->request.head = &head;
    buffers->rules = config.rules;
    admission = std::make_unique<AdmissionController>(worker, config, *buffers);
  }
  void ask() {
    std::exception_ptr thrown;
    net::spawn(context.get_executor(), until_decided(),
               [&](const std::exception_ptr& what) { thrown = what; });
    if (thrown) std::rethrow_exception(thrown);
  }
  net::Task<void> until_decided() { result = co_await admission->ask_redis(); }
  static const redis::RedisSettings& settings() {
    static const auto settings = [] {
      redis::RedisSettings quick;
      quick.lease_time = std::chrono::milliseconds(3);
      return quick;
    }();
    return settings;
  }

  http::RequestHead head;
  std::unique_ptr<ExchangeBuffers> buffers = std::make_unique<ExchangeBuffers>(worker);
  std::unique_ptr<AdmissionController> admission =
      std::make_unique<AdmissionController>(worker, config, *buffers);
  AdmissionResult result{};
};

// Checks that the last decision admitted the request, and that nobody else held any of the ten permits.
void expect_nobody_else_holds(const Asking& asking) {
  EXPECT_EQ(asking.result.decision.verdict, policy::Verdict::Forward);
  EXPECT_EQ(asking.result.decision.outcome.remaining, 9U);
}

// Redis is unreachable. For rules with a lease, this process has taken units in advance.
struct PrefetchingStore : Asking {
  explicit PrefetchingStore(const Configuration& a_config) : Asking(a_config) {
    for (const auto& charge : buffers->evaluation.remote.charges())
      if (charge.lease != 0) take(charge);
  }
  void take(limit::Charge line) {
    const auto now = std::chrono::steady_clock::now();
    const redis::RoundTrip trip{.sent = now, .received = now, .charged_at = clock.now()};
    for (unsigned i = 0; i < redis::GrantCache::kHot; ++i) units.note_trip(line, now);
    units.learn(line, {.allowed = true, .remaining = 1000});
    line.cost = units.wanted(line, now);
    (void)units.arrived(line, trip, {.allowed = true, .remaining = 1000});
  }
};

void lease(policy::Rule& rule) {
  rule.limiter = limit::FixedWindow::make({1000, std::chrono::hours(24 * 365 * 30)}).value();
  rule.lease = policy::Lease{.units = 100};
}

TEST(AdmissionMemory, PrefetchedUnitIsReturnedIfMemoryForTheAdmissionRunsOut) {
  auto config = two_places(policy::Store::Redis, policy::OnStoreFailure::Local);
  lease(config.rules.front());
  PrefetchingStore asking(config);
  ASSERT_EQ(asking.units.stats().held(), 8U);
  const int made = tests::fail_each_allocation([&] { asking.ask(); },
                                               [&] {
                                                 asking.end();
                                                 EXPECT_EQ(asking.units.stats().held(), 8U);
                                                 EXPECT_FALSE(asking.decide());
                                               });
  EXPECT_GE(made, 4) << "allocations: permits, a renewal, a permit in Redis, local permits";
  EXPECT_EQ(asking.result.decision.verdict, policy::Verdict::Forward);
  EXPECT_EQ(asking.units.stats().held(), 7U);
}

// Two units must be returned. Memory runs out while the second unit is being returned.
TEST(AdmissionMemory, EachPrefetchedUnitIsRefundedOnceIfMemoryRunsOut) {
  auto config = two_places(policy::Store::Redis);
  for (auto& rule : config.rules) lease(rule);
  PrefetchingStore asking(config);
  const auto ask = [&] {
    for (const auto& charge : asking.buffers->evaluation.remote.charges()) asking.take(charge);
    asking.ask();
    ASSERT_EQ(asking.result.decision.verdict, policy::Verdict::Forward);
    // from now on this process keeps no units, so both units must be refunded to Redis
    (void)asking.units.give_up(std::chrono::steady_clock::now());
  };
  ask();
  auto before = asking.units.stats().put_back;
  const int made = tests::fail_each_allocation([&] { asking.admission->refund(); },
                                               [&] {
                                                 asking.end();
                                                 EXPECT_LE(asking.units.stats().put_back, before + 2);
                                                 EXPECT_FALSE(asking.decide());
                                                 ask();
                                                 before = asking.units.stats().put_back;
                                               });
  EXPECT_GE(made, 2) << "one allocation for each";
  EXPECT_EQ(asking.units.stats().put_back, before + 2);
}

TEST(AdmissionMemory, ConcurrencyPermitIsReleasedIfMemoryForItRunsOut) {
  const auto config = two_places(policy::Store::Memory);
  Asking asking(config);
  const int made = tests::fail_each_allocation([&] { EXPECT_TRUE(asking.decide()); }, [&] { asking.end(); });
  EXPECT_GE(made, 1) << "allocation for the permits";
  expect_nobody_else_holds(asking);
}

TEST(AdmissionMemory, ConcurrencyPermitOfTheLocalShareIsReleasedIfMemoryForItRunsOut) {
  const auto config = two_places(policy::Store::Redis, policy::OnStoreFailure::Local);
  Asking asking(config);
  const int made = tests::fail_each_allocation([&] { asking.ask(); },
                                               [&] {
                                                 asking.end();
                                                 EXPECT_FALSE(asking.decide());
                                               });
  EXPECT_GE(made, 4) << "allocations: permits in Redis, a renewal, two permits, local permits";
  expect_nobody_else_holds(asking);
}

TEST(AdmissionMemory, NoPermitStaysInRedisIfMemoryForItRunsOut) {
  const auto config = two_places(policy::Store::Redis);
  auto asking = std::make_unique<Asking>(config);
  const auto holds_nothing_once_it_has_ended = [&] {
    asking->admission.reset();
    asking->buffers.reset();
    (void)asking->context.run_one();  // runs a renewal, which finds no permit to renew
    EXPECT_EQ(asking->context.run_one(), 0U);
    asking = std::make_unique<Asking>(config);
  };
  const int made = tests::fail_each_allocation([&] { asking->ask(); }, holds_nothing_once_it_has_ended);
  EXPECT_GE(made, 4) << "allocations: permits, a renewal, two permits";
  EXPECT_EQ(asking->result.decision.verdict, policy::Verdict::Forward);
  EXPECT_EQ(asking->buffers->shared_permits.size(), 2U);
  holds_nothing_once_it_has_ended();
}

}  // namespace
}  // namespace weir::proxy
