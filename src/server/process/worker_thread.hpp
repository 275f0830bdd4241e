// One thread of the proxy with its event loop, listening sockets, Redis connection and counters. The main
// thread makes and stops it. Everything else happens on its own thread.
#pragma once

#include "server/redis_job.hpp"

#include "weir/log/access_log.hpp"
#include "weir/log/log.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/listener.hpp"
#include "weir/observe/counters.hpp"
#include "weir/proxy/acceptor.hpp"
#include "weir/proxy/worker.hpp"
#include "weir/redis/store.hpp"
#include "weir/upgrade/connection_transfer.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace weir::server {

// The main thread's objects that every worker uses. They outlive all workers.
struct WorkerParts {
  const proxy::Shared& shared;
  std::shared_ptr<const proxy::ConfigSnapshot>
      config_snapshot;  // shared as weir/proxy/config_snapshot.hpp says
  observe::Counters::Shape shape;
  const redis::RedisSettings* redis;  // null if no rule needs it
  redis::LastRefunds& redis_refunds;
  redis::SharedGrants* shared_grants;  // null if no rule takes units in advance
  log::AccessLog& access_log;
  log::Log& log;
  std::size_t top;  // counters for the clients of each rule; 0: none
};

class WorkerThread {
 public:
  explicit WorkerThread(const WorkerParts& parts);
  ~WorkerThread();  // stops at once and joins
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // `opens`: accepts connections as soon as it can, perhaps after waiting for Redis. Otherwise it waits for
  // open().
  void start(bool opens = true);
  // Any thread: accepts connections from now on.
  void open();

  // Any thread, before or after start(). `listener`: a number that this worker has not used before.
  void listen_on(std::size_t listener, net::ListeningSocket socket, proxy::AcceptorSettings settings);
  // Any thread: new connections of the listener use these settings.
  void renew(std::size_t listener, proxy::AcceptorSettings settings);
  // Any thread: accepts no more connections there. Its open connections finish their requests.
  void leave(std::size_t listener);
  // Any thread: requests that begin from now on use this configuration snapshot.
  void begin(std::shared_ptr<const proxy::ConfigSnapshot> config_snapshot);
  // Any thread: accepts no connections and decides no requests until resume(). Decided requests continue.
  // `done` runs on the worker's thread once the pause has begun, and must not throw.
  void pause(std::function<void()> done);
  void resume();
  // Any thread: drains after pause(), because another process has taken over. Until stop(), a connection is
  // closed only after a response that says so, or when `handoff` takes it. `handoff` outlives the worker.
  void retire(proxy::ConnectionHandoff& handoff);
  // Any thread: serves a connection that another process has accepted on the listener. Closes it if the
  // listener no longer exists.
  void adopt(std::size_t listener, upgrade::ReceivedConnection arrived);
  // Any thread: accepts nothing new and finishes what was begun. Then the thread ends.
  void drain();
  // Any thread: ends everything at once.
  void stop();
  void join();
  // Any thread: sends a question to this worker's Redis. `done` runs on the worker's thread and must not
  // throw. It never runs if the worker ends first. REQUIRES redis().
  void run_redis_job(std::shared_ptr<RedisJob> job, std::function<void()> done);

  [[nodiscard]] const observe::Counters& counters() const noexcept { return counters_; }
  // Returns the number of requests that were decided after retire(). REQUIRES join().
  [[nodiscard]] std::uint64_t decided_apart() const noexcept { return worker_.decided_apart; }
  // Only for make_room() and clear_…().
  [[nodiscard]] observe::Counters& counters() noexcept { return counters_; }
  [[nodiscard]] const proxy::LoadMeter& load() const noexcept { return worker_.load; }  // only part()
  [[nodiscard]] const redis::Store* redis() const noexcept {
    return redis_.get();
  }  // state() and stats() from any thread
  // Any thread: returns the loop's executor. Posted functions run only while the worker runs.
  [[nodiscard]] net::Executor loop() noexcept { return context_.get_executor(); }
  // Any thread: returns true while the worker has not opened yet. Without Redis it opens at once.
  [[nodiscard]] bool waits_for_redis() const noexcept { return waits_for_redis_; }

 private:
  void open_when_ready(std::chrono::steady_clock::time_point latest);
  void open_if_allowed();
  void begin_drain();
  [[nodiscard]] bool is_empty();
  void end_when_empty();
  void end();
  void add(std::size_t listener, net::ListeningSocket socket, proxy::AcceptorSettings settings);
  void forget_drained();

  net::asio::io_context context_;
  observe::Counters counters_;
  std::unique_ptr<log::AccessLogLines> access_lines_;
  std::unique_ptr<redis::Store> redis_;
  proxy::Worker worker_;
  // Entrances by listener. One listener has several if more sockets were inherited than there are workers.
  std::multimap<std::size_t, std::unique_ptr<proxy::Acceptor>> acceptors_;
  std::vector<std::unique_ptr<proxy::Acceptor>> left_;  // closed listeners whose connections continue
  bool may_open_ = false;
  bool opened_ = false;
  net::Timer start_timer_;
  base::Duration start_wait_;
  std::atomic<bool> waits_for_redis_;
  net::Timer drain_timer_;
  log::Log& log_;
  std::thread thread_;
};

}  // namespace weir::server
