// What one pure step costs, by algorithm.
#include "weir/limit/limiter.hpp"

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

// Admitted: the requests come at the rate. Refused: a hundred times as fast, so nearly all are.
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
// The largest numbers: cells that need all their 128 bits.
void step_token_bucket_widest(benchmark::State& state) {
  steps(state, TokenBucket::make({1'000'000'000, base::Duration{86'400'000'000}}, 1'000'000'000).value(),
        kAtRate);
}
BENCHMARK(step_token_bucket_admitted);
BENCHMARK(step_token_bucket_refused);
BENCHMARK(step_gcra_admitted);
BENCHMARK(step_leaky_bucket_admitted);
BENCHMARK(step_token_bucket_widest);

}  // namespace
}  // namespace weir::limit
