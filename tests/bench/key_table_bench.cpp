// Measures the cost of a decision in the key table. The cases are one charge and five, one busy key and a
// million random keys, and 1, 2 and 4 threads.
#include "weir/limit/key_table.hpp"
#include "weir/limit/permit.hpp"

#include <vector>

#include <benchmark/benchmark.h>

namespace weir::limit {
namespace {

constexpr std::uint64_t kKeys = 1'000'000;
const base::TimePoint kStart{base::Duration{1'700'000'000'000'000}};

const Limiter& generous() {
  static const Limiter limiter = TokenBucket::make({1'000, base::Duration{1'000'000}}, 1'000'000).value();
  return limiter;
}
const Limiter& strict() {
  static const Limiter limiter = TokenBucket::make({1, base::Duration{86'400'000'000}}, 1).value();
  return limiter;
}

Key key_of(std::uint64_t client, std::uint64_t rule = 0) {
  base::SipHash128 hash({1, 2});
  hash.part(rule);
  hash.part(client);
  return hash.digest();
}

std::vector<Key> shuffled_keys(std::uint64_t start) {
  std::vector<Key> keys;
  keys.reserve(kKeys);
  for (std::uint64_t i = 0; i < kKeys; ++i) keys.push_back(key_of((start + i * 7'368'787) % kKeys));
  return keys;
}

KeyTable& table() {
  static KeyTable table(kKeys);
  return table;
}

void hot_key(benchmark::State& state, const Limiter& limiter) {
  const Charge charge{key_of(1, static_cast<std::uint64_t>(limiter.index()) + quota(limiter)), &limiter};
  Outcome outcome;
  base::TimePoint now = kStart;
  for (auto _ : state) {
    now += base::Duration{1'000};
    benchmark::DoNotOptimize(table().charge({&charge, 1}, now, {&outcome, 1}));
  }
}
void table_hot_key_admitted(benchmark::State& state) {
  hot_key(state, generous());
}
void table_hot_key_refused(benchmark::State& state) {
  hot_key(state, strict());
}
BENCHMARK(table_hot_key_admitted)->Threads(1)->Threads(2)->Threads(4)->UseRealTime();
BENCHMARK(table_hot_key_refused)->Threads(1)->Threads(2)->Threads(4)->UseRealTime();

// Charges one key whose log fills up to `limit` admissions. From then on, one admission expires for each new
// one.
void table_log(benchmark::State& state, std::uint64_t limit, std::uint64_t buckets) {
  constexpr base::Duration kPeriod{1'000'000};
  const Limiter limiter =
      (buckets == 0 ? SlidingLog::make({limit, kPeriod}) : SlidingLog::make({limit, kPeriod}, buckets))
          .value();
  const Charge charge{key_of(1, 100 + limit + buckets), &limiter, 1, 1};
  const base::Duration between{kPeriod.count() / static_cast<std::int64_t>(limit)};
  Outcome outcome;
  static base::TimePoint now = kStart;
  for (auto _ : state) {
    now += between;
    benchmark::DoNotOptimize(table().charge({&charge, 1}, now, {&outcome, 1}));
  }
  if (!outcome.allowed) state.SkipWithError("refused");
}
// Charges one key whose log is always full, so that every request is refused.
void table_log_refused(benchmark::State& state, std::uint64_t limit) {
  const Limiter limiter = SlidingLog::make({limit, base::Duration{3'600'000'000}}).value();
  const Charge charge{key_of(2, 100 + limit), &limiter, 1, 2};
  Outcome outcome;
  static base::TimePoint now = kStart;
  for (std::uint64_t i = 0; i < limit; ++i)
    table().charge({&charge, 1}, now += base::Duration{1}, {&outcome, 1});
  for (auto _ : state) benchmark::DoNotOptimize(table().charge({&charge, 1}, now, {&outcome, 1}));
}
BENCHMARK_CAPTURE(table_log, of_10, 10, 0);
BENCHMARK_CAPTURE(table_log, of_10000, 10'000, 0);
BENCHMARK_CAPTURE(table_log, of_10_buckets, 1'000, 10);
BENCHMARK_CAPTURE(table_log_refused, of_10000, 10'000);

void table_in_flight(benchmark::State& state) {
  static const Limiter limiter = Concurrency::make(1'000).value();
  const Charge charge{key_of(3, 200 + static_cast<std::uint64_t>(state.thread_index())), &limiter, 1, 3};
  Outcome outcome;
  for (auto _ : state) {
    table().charge({&charge, 1}, kStart, {&outcome, 1});
    const Permit permit(table(), charge, kStart, outcome.overflow);
  }
}
BENCHMARK(table_in_flight)->Threads(1)->Threads(2);

void table_million_keys(benchmark::State& state) {
  const auto keys = shuffled_keys(static_cast<std::uint64_t>(state.thread_index()) * 300'007);
  Outcome outcome;
  for (const Key& key : keys) {  // inserts all keys before the measurement starts
    const Charge charge{key, &generous()};
    table().charge({&charge, 1}, kStart, {&outcome, 1});
  }
  base::TimePoint now = kStart;
  std::size_t i = 0;
  for (auto _ : state) {
    now += base::Duration{1};
    const Charge charge{keys[i], &generous()};
    benchmark::DoNotOptimize(table().charge({&charge, 1}, now, {&outcome, 1}));
    i = i + 1 == keys.size() ? 0 : i + 1;
  }
}
BENCHMARK(table_million_keys)->Threads(1)->Threads(2)->Threads(4)->UseRealTime();

// Measures charges from several threads that use different clients. The clients are so few that their keys
// stay in the processor's cache. So the measured difference is the cost of the locks of the table's shards.
void table_distinct_keys(benchmark::State& state) {
  constexpr std::uint64_t kClients = 512;
  std::vector<Key> keys;
  for (std::uint64_t i = 0; i < kClients; ++i)
    keys.push_back(key_of(i, 300 + static_cast<std::uint64_t>(state.thread_index())));
  Outcome outcome;
  base::TimePoint now = kStart;
  std::size_t i = 0;
  for (auto _ : state) {
    now += base::Duration{1};
    const Charge charge{keys[i++ % kClients], &generous()};
    benchmark::DoNotOptimize(table().charge({&charge, 1}, now, {&outcome, 1}));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(table_distinct_keys)->Threads(1)->Threads(2)->UseRealTime();

void table_bill_of_five(benchmark::State& state) {
  std::vector<Charge> bill;
  for (RuleIndex rule = 0; rule < 5; ++rule)
    bill.push_back(
        {key_of(static_cast<std::uint64_t>(state.thread_index()), 10U + rule), &generous(), 1, rule});
  std::vector<Outcome> outcomes(bill.size());
  base::TimePoint now = kStart;
  for (auto _ : state) {
    now += base::Duration{1'000};
    benchmark::DoNotOptimize(table().charge(bill, now, outcomes));
  }
}
BENCHMARK(table_bill_of_five)->Threads(1)->Threads(2)->Threads(4)->UseRealTime();

}  // namespace
}  // namespace weir::limit
