// Measures the cost of one decision of each algorithm, without the key table.
#include "weir/limit/limiter.hpp"

#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

namespace weir::limit {
namespace {

constexpr Rate kRate{1'000, base::Duration{1'000'000}};

void steps(benchmark::State& state, const Limiter& limiter, base::Duration between) {
  base::TimePoint now{base::Duration{1'700'000'000'000'000}};
  Cell cell;
  for (auto _ : state) {
    now += between;
    const Step s = step(limiter, cell, now, 1);
    cell = s.next;
    benchmark::DoNotOptimize(s);
  }
}

// At kAtRate, requests arrive at the limit's rate, so they are admitted. At kTooFast, requests arrive a
// hundred times as fast, so nearly all are refused.
constexpr base::Duration kAtRate{1'000};
constexpr base::Duration kTooFast{10};

void step_token_bucket_admitted(benchmark::State& state) {
  steps(state, TokenBucket::make(kRate, 100).value(), kAtRate);
}
void step_token_bucket_refused(benchmark::State& state) {
  steps(state, TokenBucket::make(kRate, 100).value(), kTooFast);
}
void step_gcra_admitted(benchmark::State& state) {
  steps(state, Gcra::make(kRate, 100).value(), kAtRate);
}
void step_leaky_bucket_admitted(benchmark::State& state) {
  steps(state, LeakyBucket::make(kRate, 100, base::kForever).value(), kAtRate);
}
// Uses the largest numbers, for which the state of a key needs all 128 bits.
void step_token_bucket_widest(benchmark::State& state) {
  steps(state, TokenBucket::make({1'000'000'000, base::Duration{86'400'000'000}}, 1'000'000'000).value(),
        kAtRate);
}
void step_token_bucket_stepwise(benchmark::State& state) {
  steps(state, SteppedBucket::make(kRate, 100'000).value(), kAtRate);
}
void step_fixed_window(benchmark::State& state) {
  steps(state, FixedWindow::make(kRate).value(), kAtRate);
}
// Measures a fixed window where each request starts a new window, so that each request reads the calendar.
void step_fixed_window_by_the_calendar(benchmark::State& state, FixedWindow::Align align) {
  std::vector<Calendar::Run> runs{{-2, std::chrono::hours(1)}};
  for (int i = 1; i < 400; ++i) runs.push_back({i * 182, std::chrono::hours(1 + i % 2)});
  const auto calendar = std::make_shared<Calendar>("Somewhere", std::move(runs));
  const Limiter limiter = FixedWindow::make(1'000, align, calendar).value();
  base::TimePoint now{base::Duration{1'700'000'000'000'000}};
  for (auto _ : state) {
    now += base::Duration{1'000};
    benchmark::DoNotOptimize(step(limiter, {}, now, 1));
  }
}
void step_sliding_window(benchmark::State& state) {
  steps(state, SlidingWindow::make({1'000'000, base::Duration{1'000'000}}).value(), kAtRate);
}
void step_sliding_window_of_an_hour(benchmark::State& state) {
  steps(state, SlidingWindow::make({10'000'000, base::Duration{3'600'000'000}}).value(), kAtRate);
}
// Measures a log that fits into the 128 bits of a key's state. table_log in key_table_bench.cpp measures
// longer logs.
void step_sliding_log(benchmark::State& state) {
  steps(state, SlidingLog::make(kRate).value(), kAtRate);
}
void step_sliding_window_of_buckets(benchmark::State& state) {
  steps(state, SlidingLog::make(kRate, 10).value(), kAtRate);
}
void step_concurrency(benchmark::State& state) {
  const auto limiter = Concurrency::make(100).value();
  Cell cell;
  for (auto _ : state) {
    const Step s = limiter.step(cell, {}, 1);
    cell = limiter.release(s.next, 1);
    benchmark::DoNotOptimize(cell);
  }
}
void step_adaptive_concurrency(benchmark::State& state) {
  const auto limiter = AdaptiveConcurrency::make(2, 200).value();
  base::TimePoint now{base::Duration{1'700'000'000'000'000}};
  Cell cell;
  std::int64_t latency = 1'000;
  for (auto _ : state) {
    now += kAtRate;
    latency = latency % 1'777 + 300;
    const Step s = limiter.step(cell, now, 1);
    cell = limiter.release(s.next, now, 1, {.latency = base::Duration{latency}});
    benchmark::DoNotOptimize(cell);
  }
}
BENCHMARK(step_token_bucket_admitted);
BENCHMARK(step_token_bucket_stepwise);
BENCHMARK(step_fixed_window);
BENCHMARK_CAPTURE(step_fixed_window_by_the_calendar, day, FixedWindow::Align::Day);
BENCHMARK_CAPTURE(step_fixed_window_by_the_calendar, month, FixedWindow::Align::Month);
BENCHMARK(step_sliding_window);
BENCHMARK(step_sliding_window_of_an_hour);
BENCHMARK(step_sliding_log);
BENCHMARK(step_sliding_window_of_buckets);
BENCHMARK(step_concurrency);
BENCHMARK(step_adaptive_concurrency);
BENCHMARK(step_token_bucket_refused);
BENCHMARK(step_gcra_admitted);
BENCHMARK(step_leaky_bucket_admitted);
BENCHMARK(step_token_bucket_widest);

}  // namespace
}  // namespace weir::limit
