// A store on an io_context that the test runs, and functions that charge requests to the store.
#pragma once

#include "unit/redis/connection/server.hpp"

#include "weir/net/reactor.hpp"
#include "weir/redis/store.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

namespace weir::redis {

using namespace std::chrono_literals;

inline limit::Limiter token_bucket(limit::Rate rate, std::uint64_t burst) {
  return limit::TokenBucket::make(rate, burst).value();
}
inline limit::Limiter gcra(limit::Rate rate, std::uint64_t burst) {
  return limit::Gcra::make(rate, burst).value();
}
inline limit::Limiter leaky_bucket(limit::Rate rate, std::uint64_t queue,
                                   base::Duration max_wait = base::kForever) {
  return limit::LeakyBucket::make(rate, queue, max_wait).value();
}

inline limit::Key key(std::uint64_t n) {
  return {n, n};
}

struct Answer {
  net::ErrorCode error;
  std::vector<limit::Outcome> outcomes;
  base::TimePoint now{};
  limit::ChargeSet unanswered = 0;  // charges without an answer; set after an error
  bool done = false;
  std::chrono::steady_clock::duration took{};
};

// Resets the server's statistics, so that INFO commandstats counts only later commands.
inline void reset_command_counts(const Server& server) {
  server.ask({"CONFIG", "RESETSTAT"});
}

// A worker: an event loop and a store. The store's pauses are short, so that tests do not wait for long.
class Worker {
 public:
  static RedisSettings settings_for(const Server& server, base::Duration timeout = 1s) {
    RedisSettings settings;
    settings.address.unix_path = server.path();
    settings.timeout = timeout;
    return settings;
  }
  static StoreTuning quick() {
    StoreTuning tuning;
    tuning.first_backoff = 2ms;
    tuning.longest_backoff = 20ms;
    return tuning;
  }

  explicit Worker(const RedisSettings& settings, const StoreTuning& tuning = quick(),
                  LastRefunds* refunds = nullptr, SharedGrants* units = nullptr)
      : store(
            loop.get_executor(), settings,
            [this](LogLevel, std::string line) { log.push_back(std::move(line)); }, tuning, refunds, units) {
    net::asio::post(loop, [this] { store.start(); });  // start() runs when the event loop runs
  }
  ~Worker() {
    store.stop();
    loop.run_for(1s);  // resumes waiting coroutines while the loop still exists
  }

  // Runs the event loop until `done` returns true. Returns false after 20 s; every test should be faster.
  bool turn_until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      loop.restart();
      loop.run_one_for(10ms);
    }
    return true;
  }
  bool turn_until_up() {
    return turn_until([this] { return store.state() == StoreState::Up; });
  }

  // Begins to charge a request. `charges` and `answer` must live until answer.done is true.
  void begin(const std::vector<limit::Charge>& charges, Answer& answer) {
    answer.outcomes.resize(charges.size());
    net::spawn(loop.get_executor(), ask(store, charges, answer),
               [](const std::exception_ptr& thrown) { EXPECT_FALSE(thrown); });
  }
  Answer charge(const std::vector<limit::Charge>& charges) {
    Answer answer;
    begin(charges, answer);
    EXPECT_TRUE(turn_until([&] { return answer.done; }));
    return answer;
  }

  net::asio::io_context loop{1};
  std::vector<std::string> log;
  Store store;

 private:
  static net::Task<void> ask(Store& store, const std::vector<limit::Charge>& charges, Answer& answer) {
    const auto began = std::chrono::steady_clock::now();
    answer.error = co_await store.charge(charges, answer.outcomes, answer.now, answer.unanswered);
    answer.took = std::chrono::steady_clock::now() - began;
    answer.done = true;
  }
};

}  // namespace weir::redis
