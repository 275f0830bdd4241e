// One thread of the proxy with its event loop, listening sockets, Redis connection and counters. The main
// thread creates and destroys a WorkerThread. The worker runs on its own thread.
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

// Objects of the main thread that every worker uses. They must outlive the workers.
struct WorkerParts {
  const proxy::Shared& shared;
  // Shared with other workers and with requests; see weir/proxy/config_snapshot.hpp.
  std::shared_ptr<const proxy::ConfigSnapshot> config_snapshot;
  observe::Counters::Shape shape;
  const redis::RedisSettings* redis;  // null if no rule uses Redis
  redis::LastRefunds& redis_refunds;
  redis::SharedGrants* shared_grants;  // null if no rule prefetches units from Redis
  log::AccessLog& access_log;
  log::Log& log;
  std::size_t top;  // how many clients to count for each rule; 0: weir counts no clients
};

class WorkerThread {
 public:
  // Throws std::runtime_error if no file descriptor is left.
  explicit WorkerThread(const WorkerParts& parts);
  ~WorkerThread();  // closes all connections and joins the thread
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // Starts the thread. If `opens` is true, the worker accepts connections as soon as Redis is connected or
  // `start_wait` has passed. Otherwise the worker accepts no connections before open() is called. Throws
  // std::system_error if no thread can be started.
  void start(bool opens = true);
  // Makes the worker accept connections from now on. Any thread may call this.
  void open();

  // Makes the worker accept connections on a socket. Any thread may call this, before or after start().
  // `listener`: the listener's number, which this worker must not have used for another listener before. If
  // epoll rejects the socket before start(), throws std::runtime_error, which names the listener. If epoll
  // rejects the socket after start(), the worker logs and counts the failure (Counters::accept_failures).
  void listen_on(std::size_t listener, net::ListeningSocket socket, proxy::AcceptorSettings settings);
  // Makes new connections of the listener use these settings. Any thread may call this.
  void renew(std::size_t listener, proxy::AcceptorSettings settings);
  // Stops accepting connections on this listener. Its open connections finish their requests. Any thread may
  // call this.
  void leave(std::size_t listener);
  // Makes requests that begin from now on use this configuration snapshot. Any thread may call this.
  void begin(std::shared_ptr<const proxy::ConfigSnapshot> config_snapshot);
  // Wakes the requests that wait for keys of tokens, because a fetch has ended. Any thread may call this.
  void wake_token_key_waiters();
  // Stops accepting connections and deciding requests until resume(). Requests that are already decided
  // continue. `done` is called on the worker's thread once the pause has begun, and must not throw. Any
  // thread may call pause().
  void pause(std::function<void()> done);
  void resume();
  // Drains because another process has taken over. pause() must have been called before. Until stop() is
  // called, the worker closes a connection only after a response that announces the close, or after `handoff`
  // has taken the connection. `handoff` must outlive the worker. Any thread may call this.
  void retire(proxy::ConnectionHandoff& handoff);
  // Serves a connection that another process has accepted. Closes the connection if the listener no longer
  // exists. Any thread may call this.
  void adopt(std::size_t listener, upgrade::ReceivedConnection arrived);
  // Makes health checks of this worker fail from now on, because drain() will be called soon. Any thread may
  // call this.
  void announce_stop();
  // Stops accepting connections and finishes the open requests. Then the worker's thread ends. Any thread may
  // call this.
  void drain();
  // Closes all connections and ends the worker's thread without waiting for requests. Any thread may call
  // this.
  void stop();
  void join();
  // Sends a job to Redis over this worker's connection. `done` is called on the worker's thread and must not
  // throw. If the worker ends first, `done` is never called. Any thread may call run_redis_job(). REQUIRES
  // redis().
  void run_redis_job(std::shared_ptr<RedisJob> job, std::function<void()> done);

  [[nodiscard]] const observe::Counters& counters() const noexcept { return counters_; }
  // Returns the number of requests that this worker decided after retire(). REQUIRES that join() has
  // returned.
  [[nodiscard]] std::uint64_t decided_apart() const noexcept { return worker_.decided_apart; }
  // Callers may use the result only to call make_room() and the clear_…() functions.
  [[nodiscard]] observe::Counters& counters() noexcept { return counters_; }
  // Callers may use the result only to call part().
  [[nodiscard]] const proxy::LoadMeter& load() const noexcept { return worker_.load; }
  // Returns null if no rule uses Redis. Any thread may call state() and stats() of the store.
  [[nodiscard]] const redis::Store* redis() const noexcept { return redis_.get(); }
  // Returns the executor of the worker's event loop. Posted functions run only while the worker runs. Any
  // thread may call this.
  [[nodiscard]] net::Executor loop() noexcept { return context_.get_executor(); }
  // Returns true while the worker waits for Redis before it accepts connections. Returns false if no rule
  // uses Redis. Any thread may call this.
  [[nodiscard]] bool waits_for_redis() const noexcept { return waits_for_redis_; }

 private:
  void open_when_ready(std::chrono::steady_clock::time_point latest);
  void open_if_allowed();
  void begin_drain();
  [[nodiscard]] bool is_empty();
  void end_when_empty();
  void end();
  void add(std::size_t listener, net::ListeningSocket socket, proxy::AcceptorSettings settings);
  void try_to_add(std::size_t listener, net::ListeningSocket socket, proxy::AcceptorSettings settings);
  void forget_drained();

  net::asio::io_context context_;
  observe::Counters counters_;
  std::unique_ptr<log::AccessLogLines> access_lines_;
  std::unique_ptr<redis::Store> redis_;
  proxy::Worker worker_;
  // The acceptors of this worker; the key is the listener's number. A listener has several acceptors in one
  // worker if it has more sockets than weir has workers.
  std::multimap<std::size_t, std::unique_ptr<proxy::Acceptor>> acceptors_;
  // Acceptors of removed listeners whose connections are still open.
  std::vector<std::unique_ptr<proxy::Acceptor>> left_;
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
