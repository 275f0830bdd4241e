#include "redis/trial.hpp"

#include "redis/connection/pipeline.hpp"

#include "weir/net/reactor.hpp"
#include "weir/redis/store.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <utility>

namespace weir::redis {

namespace {

using namespace std::chrono_literals;

constexpr base::Duration kTrialPatience = 2s;
constexpr int kManyCharges = 70;  // number of permits or log entries of one key; more than a string can have

class Trial {
 public:
  Trial(net::asio::io_context& loop, const RedisSettings& settings, Inspection& found)
      : loop_(loop),
        found_(found),
        tries_again_(settings.topology != Topology::Standalone),
        store_(loop.get_executor(), with_short_lease(settings)) {}

  void run() {
    store_.start();
    run_loop_until(
        [&] { return store_.state() == StoreState::Up || (!tries_again_ && !store_.last_error().empty()); });
    if (store_.state() != StoreState::Up) return note(store_.last_error());
    run_to_end(charge_and_refund());
    charge_often({random_key(), &long_log_}, kManyCharges, log_entries_);
    charge_often(permit_charge_, kManyCharges, permits_);
    const auto refunds_before = store_.stats().refunds.load();
    // Waits until the store has sent a renewal.
    run_loop_until([&] { return permits_ == 0 || store_.stats().refunds.load() > refunds_before; });
    for (; permits_ > 0; --permits_) store_.release(permit_charge_);
    run_to_end(await_refunds());
    store_.stop();
    run_loop_until([&] { return done_; });
  }

 private:
  // Returns the settings with a short lease_time, so that a permit is renewed soon.
  static RedisSettings with_short_lease(RedisSettings settings) {
    settings.timeout = kTrialPatience;
    settings.lease_time = 300ms;
    return settings;
  }
  void run_loop_until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + 2 * kTrialPatience;
    while (!done() && std::chrono::steady_clock::now() < end) {
      loop_.restart();
      loop_.run_one_for(10ms);
    }
  }
  void run_to_end(net::Task<void> task) {
    done_ = false;
    net::spawn(loop_.get_executor(), std::move(task), [](const std::exception_ptr&) {});
    run_loop_until([&] { return done_; });
  }

  net::Task<void> charge_and_refund() {
    for (const auto* limiter : {&bucket_, &log_}) {
      const limit::Charge charge{random_key(), limiter};
      // Charges and refunds the key several times, so that the scripts run all their commands for short logs.
      for (int i = 0; i < 5; ++i) {
        base::TimePoint now;
        const bool allowed = co_await admits(charge, now);
        if (!found_.obstacles.empty()) break;
        if (allowed) store_.refund(charge, now);
      }
    }
    done_ = true;
  }

  // Charges a key `times` times. A string cannot have so many permits or log entries, so the scripts must
  // make a sorted set or a list. Waits while kBusyCalls calls have no reply. Otherwise charges would share a
  // script call.
  void charge_often(const limit::Charge& charge, int times, int& admitted) {
    for (int i = 0; i < times && found_.obstacles.empty(); ++i) {
      run_loop_until([&] { return in_flight_ < Pipeline::kBusyCalls; });
      ++in_flight_;
      net::spawn(loop_.get_executor(), count_one(charge, admitted), [](const std::exception_ptr&) {});
      loop_.restart();
      loop_.poll();
    }
    run_loop_until([&] { return in_flight_ == 0; });
  }

  net::Task<void> count_one(limit::Charge charge, int& admitted) {
    base::TimePoint now;
    const bool allowed = co_await admits(charge, now);
    if (allowed) ++admitted;
    --in_flight_;
  }

  // Waits until all refunds have their replies. Makes one more charge for this: replies come in order, so the
  // reply to this charge is the last one.
  net::Task<void> await_refunds() {
    const limit::Charge last{random_key(), &bucket_};
    base::TimePoint now;
    (void)co_await admits(last, now);
    if (store_.stats().refunds_lost.load() > 0) note(store_.last_error());
    done_ = true;
  }

  net::Task<bool> admits(limit::Charge charge, base::TimePoint& now) {
    limit::Outcome outcome;
    const net::ErrorCode ec = co_await store_.charge({&charge, 1}, {&outcome, 1}, now, unanswered_);
    if (ec) note(store_.last_error());
    co_return !ec && outcome.allowed;
  }

  limit::Key random_key() { return {random_(), random_()}; }

  void note(const std::string& obstacle) {
    if (std::find(found_.obstacles.begin(), found_.obstacles.end(), obstacle) == found_.obstacles.end())
      found_.obstacles.push_back(obstacle);
  }

  net::asio::io_context& loop_;
  Inspection& found_;
  // True if weir may try another server after a failure: the new master, or the server that another Sentinel
  // reports.
  const bool tries_again_;
  std::random_device random_;
  const limit::Limiter bucket_ = limit::TokenBucket::make({10, 1s}, 1).value();
  const limit::Limiter log_ = limit::SlidingLog::make({2, 2ms}).value();
  const limit::Limiter long_log_ = limit::SlidingLog::make({kManyCharges, 3s}).value();
  const limit::Limiter concurrency_ = limit::Concurrency::make(kManyCharges).value();
  const limit::Charge permit_charge_{random_key(), &concurrency_};
  Store store_;
  limit::ChargeSet unanswered_ = 0;
  int permits_ = 0;  // number of permits that were taken for permit_charge_
  int log_entries_ = 0;
  std::size_t in_flight_ = 0;
  bool done_ = false;
};

}  // namespace

void try_operations(net::asio::io_context& loop, const RedisSettings& settings, Inspection& found) {
  Trial(loop, settings, found).run();
}

}  // namespace weir::redis
