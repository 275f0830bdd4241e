// Measures the cost of counting a request among a rule's clients, including the lock: for a known client, and
// for a client that takes over another client's counter.
#include "weir/observe/top_clients.hpp"

#include <benchmark/benchmark.h>

namespace weir {
namespace {

struct Crowd {
  policy::Rule rule{
      .name = "per-ip", .key = {{{policy::Attribute::Ip, {}}}}, .limiter = *limit::Concurrency::make(1)};
  policy::Request request;
  limit::Charge charge{};
  std::uint64_t random = 88'172'645'463'325'252;

  std::uint64_t next() noexcept {  // xorshift (Marsaglia, 2003)
    random ^= random << 13;
    random ^= random >> 7;
    return random ^= random << 17;
  }
  void be(std::uint64_t client) noexcept {
    charge.key = {client * 0x9e3779b97f4a7c15, client};
    request.client.network = base::IpAddress::v4(static_cast<std::uint32_t>(client));
  }
};

void count_known(benchmark::State& state) {
  Crowd crowd;
  observe::TopClients top(64);
  for (auto _ : state) {
    crowd.be(crowd.next() % 60);
    observe::TopClients::Writer(top, base::TimePoint{}).add(crowd.rule, crowd.charge, true, crowd.request);
  }
}
BENCHMARK(count_known);

void count_newcomers(benchmark::State& state) {
  Crowd crowd;
  observe::TopClients top(64);
  for (auto _ : state) {
    crowd.be(crowd.next());
    observe::TopClients::Writer(top, base::TimePoint{}).add(crowd.rule, crowd.charge, true, crowd.request);
  }
}
BENCHMARK(count_newcomers);

// Counts clients with a skewed distribution: some clients send many requests.
void count_skewed(benchmark::State& state) {
  Crowd crowd;
  observe::TopClients top(64);
  for (auto _ : state) {
    const auto bits = crowd.next();
    crowd.be((bits & 0xffff) >> (bits >> 60));
    observe::TopClients::Writer(top, base::TimePoint{}).add(crowd.rule, crowd.charge, true, crowd.request);
  }
}
BENCHMARK(count_skewed);

}  // namespace
}  // namespace weir
