// Several workers share one queue, each on its own thread. This test also runs under ThreadSanitizer.
#include "unit/net/sockets.hpp"
#include "unit/proxy/queue/lanes.hpp"

#include "weir/proxy/shaper.hpp"

#include <algorithm>
#include <iostream>
#include <latch>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

constexpr std::size_t kWorkerThreads = 3;
constexpr int kRequestsPerWorker = 400;
constexpr base::Duration kInterval{200};

struct Common {
  explicit Common(std::uint64_t places)
      : limiter(limit::LeakyBucket::make({1, kInterval}, places, base::kForever).value()) {}

  net::Clock clock;
  limit::KeyTable table{1000};
  SharedQueue queue{kWorkerThreads};
  // counts down at the end of each request; until 0, workers may still post to each other's event loops
  std::latch all_ended{kWorkerThreads * kRequestsPerWorker};
  limit::Limiter limiter;
};

class TestWorker {
 public:
  TestWorker(Common& common, std::uint64_t seed) : common_(common), random_(seed) {}

  void start() {
    post_next();
    thread_ = std::thread([this] { context_.run(); });
  }
  void stop() {
    net::asio::post(context_, [this] { work_.reset(); });
  }
  void join() { thread_.join(); }

  std::vector<base::TimePoint> departures;  // must be read only after join()
  int left = 0;
  int early = 0;
  int refused = 0;
  int displaced = 0;

 private:
  void post_next() {
    net::asio::post(context_, [this] { next(); });
  }

  // Starts one more request and posts the next call of next(). Sometimes makes a waiting request leave.
  void next() {
    if (begun_ == kRequestsPerWorker) return;
    waiting_.push_back(nullptr);
    net::spawn(context_.get_executor(), one(begun_++), [](const std::exception_ptr&) {});
    if (random_() % 3 == 0)
      if (auto* const any = waiting_[random_() % waiting_.size()]) any->leave();
    post_next();
  }

  net::Task<void> one(int number) {
    co_await take_timestamp(number);
    common_.all_ended.count_down();
  }

  net::Task<void> take_timestamp(int number) {
    const limit::Charge charge{.key = kLane, .limiter = &common_.limiter};
    const auto now = common_.clock.now();
    limit::Outcome outcome;
    const bool charged = common_.table.charge({&charge, 1}, now, {&outcome, 1});
    const limit::Key client{random_() % 5, 0};
    const auto priority = static_cast<policy::Priority>(random_() % 3);
    Departure departure{.at = now + outcome.delay, .promised = now + outcome.delay, .charge = charge};
    if (!charged) {
      const auto won = displace(client, priority);
      if (!won) co_return;
      departure = won->departure;
    }
    Shaper::Ticket ticket(shaper_, client, priority);
    waiting_[static_cast<std::size_t>(number)] = &ticket;
    const auto turn = co_await shaper_.wait(ticket, departure, 1'000'000);
    waiting_[static_cast<std::size_t>(number)] = nullptr;
    if (turn.end == Shaper::End::Displaced || turn.end == Shaper::End::Levelled) {
      ++displaced;
      co_return;
    }
    if (turn.end == Shaper::End::Departed && random_() % 10 == 0) {
      shaper_.pass_on(ticket.departure());
    } else if (turn.end == Shaper::End::Departed) {
      departures.push_back(ticket.departure().at);
      early += common_.clock.now() < ticket.departure().at;
      co_return;
    }
    ++left;
  }

  std::optional<Queue::Displacement> displace(const limit::Key& client, policy::Priority priority) {
    auto won = shaper_.displace(
        {.lane = kLane, .client = client, .priority = priority, .cost = 1, .most = 1'000'000},
        [] { return true; });
    refused += won ? 0 : 1;
    return won;
  }

  Common& common_;
  net::asio::io_context context_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO};
  Shaper shaper_{context_.get_executor(), common_.clock, common_.queue, common_.table, nullptr};
  net::asio::executor_work_guard<net::Executor> work_{context_.get_executor()};
  std::mt19937_64 random_;
  std::vector<Shaper::Ticket*> waiting_;  // the index is the request's number; null after the request's end
  int begun_ = 0;
  std::thread thread_;
};

// the parameter is the largest number of requests that may wait in the queue
class ShaperThreads : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(ShaperThreads, EachRequestEndsOnceAndDeparturesKeepTheirInterval) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  Common common(GetParam());
  std::vector<std::unique_ptr<TestWorker>> workers;
  for (std::size_t i = 0; i < kWorkerThreads; ++i)
    workers.push_back(std::make_unique<TestWorker>(common, seed + i));
  for (auto& worker : workers) worker->start();
  common.all_ended.wait();
  for (auto& worker : workers) worker->stop();
  for (auto& worker : workers) worker->join();

  std::vector<base::TimePoint> departures;
  int left = 0, refused = 0, displaced = 0;
  for (const auto& worker : workers) {
    departures.insert(departures.end(), worker->departures.begin(), worker->departures.end());
    left += worker->left, refused += worker->refused, displaced += worker->displaced;
    EXPECT_EQ(worker->early, 0);
  }
  std::cout << departures.size() << " departed, " << left << " left, " << refused << " refused, " << displaced
            << " displaced\n";
  EXPECT_EQ(departures.size() + static_cast<std::size_t>(left + refused + displaced),
            kWorkerThreads * kRequestsPerWorker);
  EXPECT_EQ(common.queue.queue.size(), 0U);
  std::sort(departures.begin(), departures.end());
  for (std::size_t i = 1; i < departures.size(); ++i)
    ASSERT_GE(departures[i] - departures[i - 1], kInterval) << "departure " << i;
}

INSTANTIATE_TEST_SUITE_P(LargeAndSmallQueues, ShaperThreads, ::testing::Values(1'000'000, 20));

}  // namespace
}  // namespace weir::proxy
