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
constexpr int kCrowd = 70;  // number of permits or log entries of one key; more than a string can have

class Trial {
 public:
  Trial(net::asio::io_context& loop, const RedisSettings& settings, Inspection& found)
      : loop_(loop),
        found_(found),
        tries_again_(settings.topology != Topology::Standalone),
        store_(loop.get_executor(), patient(settings)) {}

  void run() {
    store_.start();
    turn_until(
        [&] { return store_.state() == StoreState::Up || (!tries_again_ && !store_.last_error().empty()); });
    if (store_.state() != StoreState::Up) return note(store_.last_error());
    see_through(charge_and_refund());
    crowd({random_key(), &long_log_}, kCrowd, entered_);
    crowd(place_, kCrowd, placed_);
    const auto told = store_.stats().refunds.load();
    // Waits until the store has sent a renewal.
    turn_until([&] { return placed_ == 0 || store_.stats().refunds.load() > told; });
    for (; placed_ > 0; --placed_) store_.release(place_);
    see_through(hear_the_rest());
    store_.stop();
    turn_until([&] { return done_; });
  }

 private:
  // Returns the settings with a short lease_time, so that a permit is renewed soon.
  static RedisSettings patient(RedisSettings settings) {
    settings.timeout = kTrialPatience;
    settings.lease_time = 300ms;
    return settings;
  }
  void turn_until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + 2 * kTrialPatience;
    while (!done() && std::chrono::steady_clock::now() < end) {
      loop_.restart();
      loop_.run_one_for(10ms);
    }
  }
  void see_through(net::Task<void> task) {
    done_ = false;
    net::spawn(loop_.get_executor(), std::move(task), [](const std::exception_ptr&) {});
    turn_until([&] { return done_; });
  }

  net::Task<void> charge_and_refund() {
    for (const auto* limiter : {&bucket_, &log_}) {
      const limit::Charge charge{random_key(), limiter};
      for (int i = 0; i < 5; ++i) {  // alternates charges and refunds, so that a log uses all its commands
        base::TimePoint now;
        const bool allowed = co_await admits(charge, now);
        if (!found_.obstacles.empty()) break;
        if (allowed) store_.refund(charge, now);
      }
    }
    done_ = true;
  }

  // Charges a key `size` times: more often than the scripts store permits or log entries in a string. So the
  // scripts must make a sorted set or a list. Waits while kMostUnanswered calls have no reply, so that each
  // charge gets a script call of its own.
  void crowd(const limit::Charge& charge, int size, int& admitted) {
    for (int i = 0; i < size && found_.obstacles.empty(); ++i) {
      turn_until([&] { return under_way_ < Pipeline::kMostUnanswered; });
      ++under_way_;
      net::spawn(loop_.get_executor(), count_one(charge, admitted), [](const std::exception_ptr&) {});
      loop_.restart();
      loop_.poll();
    }
    turn_until([&] { return under_way_ == 0; });
  }

  net::Task<void> count_one(limit::Charge charge, int& admitted) {
    base::TimePoint now;
    const bool allowed = co_await admits(charge, now);
    if (allowed) ++admitted;
    --under_way_;
  }

  // Waits until all refunds have their replies. Makes one more charge for this: replies come in order, so the
  // reply to this charge is the last one.
  net::Task<void> hear_the_rest() {
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
  const limit::Limiter long_log_ = limit::SlidingLog::make({kCrowd, 3s}).value();
  const limit::Limiter places_ = limit::Concurrency::make(kCrowd).value();
  const limit::Charge place_{random_key(), &places_};
  Store store_;
  limit::ChargeSet unanswered_ = 0;
  int placed_ = 0;  // number of permits that were taken for place_
  int entered_ = 0;
  std::size_t under_way_ = 0;
  bool done_ = false;
};

}  // namespace

void try_operations(net::asio::io_context& loop, const RedisSettings& settings, Inspection& found) {
  Trial(loop, settings, found).run();
}

}  // namespace weir::redis
