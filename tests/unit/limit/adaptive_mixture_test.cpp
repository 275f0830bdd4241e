// Simulates adaptive concurrency with a server that gives fast and slow answers. Arrivals and latencies are
// random. There is no clock and no thread.
#include "unit/limit/traffic.hpp"

#include "weir/limit/concurrency.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <vector>

namespace weir::limit {
namespace {

constexpr std::uint64_t kServerWorkers = 40;  // the ideal limit is this number or slightly more

// A server that answers some requests from a cache at once. Every other request occupies a worker for about
// kWork. If all workers are busy, the request first waits for a worker.
class MixedServer {
 public:
  struct Traffic {
    double fast;  // the share of all requests that the cache answers
    double load;  // the load of the other requests, relative to the capacity of the workers
  };
  MixedServer(std::uint64_t seed, Traffic traffic) : random_(seed), traffic_(traffic) {
    for (std::uint64_t i = 0; i < kServerWorkers; ++i) free_at_.push(now_);
  }

  void run(double seconds) {
    lowest_ = highest_ = limit();
    admitted_ = refused_ = 0;
    for (const double end = now_ + seconds * 1e6; now_ < end; arrive()) {
      const double rate = traffic_.load * kServerWorkers / kWork / (1 - traffic_.fast);
      const double next = now_ - std::log(1 - chance()) / rate;
      while (!flying_.empty() && flying_.top().first <= next) answer();
      now_ = next;
    }
  }
  void slow_down(double times) { times_ = times; }

  [[nodiscard]] std::uint64_t limit() const { return limiter_.limit(cell_, instant()); }
  [[nodiscard]] std::uint64_t lowest() const { return lowest_; }
  [[nodiscard]] std::uint64_t highest() const { return highest_; }
  [[nodiscard]] double refused() const { return static_cast<double>(refused_) / (refused_ + admitted_); }
  // Returns the share of the workers' capacity that the admitted requests used.
  [[nodiscard]] double used(double seconds) const {
    return admitted_ * (1 - traffic_.fast) * kWork * times_ / (kServerWorkers * seconds * 1e6);
  }

 private:
  static constexpr double kWork = 20'000;    // µs
  using Flight = std::pair<double, double>;  // the end and the beginning of a request in flight

  [[nodiscard]] double chance() { return std::uniform_real_distribution<>(0, 1)(random_); }
  [[nodiscard]] TimePoint instant() const { return kStart + Duration(static_cast<std::int64_t>(now_)); }

  void arrive() {
    const auto step = limiter_.step(cell_, instant(), 1);
    ++(step.outcome.allowed ? admitted_ : refused_);
    if (!step.outcome.allowed) return;
    cell_ = step.next;
    flying_.emplace(chance() < traffic_.fast ? now_ + 100 + 200 * chance() : worked(), now_);
  }
  // Returns the time at which a worker will have finished a request that arrives now.
  [[nodiscard]] double worked() {
    const double from = std::max(free_at_.top(), now_);
    const double ends = from + kWork * times_ * std::lognormal_distribution<>(-0.045, 0.3)(random_);
    free_at_.pop();
    free_at_.push(ends);
    return ends;
  }
  void answer() {
    const auto [ends, began] = flying_.top();
    flying_.pop();
    now_ = ends;
    const Duration latency(static_cast<std::int64_t>(ends - began));
    cell_ = limiter_.release(cell_, instant(), 1, {.latency = latency});
    lowest_ = std::min(lowest_, limit());
    highest_ = std::max(highest_, limit());
  }

  const AdaptiveConcurrency limiter_ = AdaptiveConcurrency::make(2, 1'000).value();
  std::mt19937_64 random_;
  Traffic traffic_;
  double times_ = 1, now_ = 0;
  Cell cell_;
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at_;
  std::priority_queue<Flight, std::vector<Flight>, std::greater<>> flying_;
  std::uint64_t lowest_ = 0, highest_ = 0;
  int admitted_ = 0, refused_ = 0;
};

class AdaptiveMixture : public testing::TestWithParam<double> {
 protected:
  MixedServer server(double load) { return {new_seed(), {.fast = GetParam(), .load = load}}; }
  // Returns true if the limit must always stay above `min`. Returns false if the cache answers half of the
  // requests, a hundred times as fast as the workers. The mean latency then varies so much that the limit may
  // briefly reach `min`.
  static bool steady() { return GetParam() < 0.5; }
};
INSTANTIATE_TEST_SUITE_P(ShareOfFastResponses, AdaptiveMixture, testing::Values(0.0, 0.0005, 0.01, 0.1, 0.5));

// The limit must stay between a quarter of the ideal and three times the ideal, and the server must use most
// of its capacity.
TEST_P(AdaptiveMixture, KeepsAnOverloadedServerBusyWithoutQueueingRequests) {
  auto server = this->server(3);
  server.run(20);
  server.run(40);
  EXPECT_GE(server.lowest(), steady() ? kServerWorkers / 4 : 2);
  EXPECT_LE(server.highest(), kServerWorkers * 3);
  EXPECT_GE(server.used(40), 0.65);
}

TEST_P(AdaptiveMixture, RejectsFewRequestsIfTheServerHasCapacity) {
  auto server = this->server(0.5);
  server.run(40);
  server.run(40);
  EXPECT_GE(server.lowest(), steady() ? kServerWorkers / 4 : 2);
  EXPECT_LE(server.refused(), 0.03);
}

TEST_P(AdaptiveMixture, LowersTheLimitIfTheServerBecomesSlower) {
  auto server = this->server(0.5);
  server.run(20);
  const auto before = server.limit();
  server.slow_down(5);  // raises the load from 0.5 to 2.5
  server.run(30);
  EXPECT_LT(server.lowest(), kServerWorkers / 2) << "the limit stayed high although the server became slower";
  EXPECT_LT(server.lowest(), before / 2);
  server.run(40);
  EXPECT_GE(server.used(40), 0.5) << "the limiter did not learn the new latency";
  EXPECT_LE(server.highest(), kServerWorkers * 4);
  server.slow_down(1);
  server.run(20);
  server.run(20);
  EXPECT_GE(server.lowest(), steady() ? kServerWorkers / 2 : 2) << "the limit did not rise again";
  EXPECT_LE(server.refused(), 0.03);
}

}  // namespace
}  // namespace weir::limit
