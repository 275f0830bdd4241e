// One thread of the proxy with all that belongs to it: its loop, its listening sockets, its Redis connection,
// its counters. Made and stopped by the main thread; everything else happens on its own.
#pragma once

#include "weir/app/access_log.hpp"
#include "weir/app/log.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/listener.hpp"
#include "weir/observe/counters.hpp"
#include "weir/proxy/entrance.hpp"
#include "weir/proxy/worker.hpp"
#include "weir/redis/store.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace weir::app {

// What the main thread gives every worker; outlives them all.
struct WorkerParts {
  const proxy::Shared& shared;
  const redis::RedisSettings* redis;  // null where no rule needs it
  redis::LastRefunds& redis_refunds;
  redis::UnitLeases* redis_units;  // null where no rule takes any
  AccessLog& access_log;
  Log& log;
  std::size_t most_sessions;  // of one worker
  std::size_t top;            // clients that are counted of each rule; 0: none
};

class WorkerThread {
 public:
  explicit WorkerThread(const WorkerParts& parts);
  ~WorkerThread();  // stops hard and joins
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // Before start(). `tls`: null for plain HTTP.
  void listen_on(net::ListeningSocket socket, net::TlsContext tls, bool proxy_protocol);
  void start();

  // Any thread: new connections of the `entrance`th listener, from 0, get this. Not for plain HTTP.
  void renew(std::size_t entrance, net::TlsContext tls);
  // Any thread: take nothing new, finish what was begun; the thread ends when all is finished.
  void drain();
  // Any thread: end everything.
  void stop();
  void join();

  [[nodiscard]] const observe::Counters& counters() const noexcept { return counters_; }
  [[nodiscard]] const proxy::LoadMeter& load() const noexcept { return worker_.load; }  // part() alone
  [[nodiscard]] const redis::Store* redis() const noexcept {
    return redis_.get();
  }  // state() and stats() from any thread
  // Any thread: it has not opened yet. Without Redis it opens as soon as it runs.
  [[nodiscard]] bool waits_for_redis() const noexcept { return waits_for_redis_; }

 private:
  void open_when_ready(std::chrono::steady_clock::time_point latest);
  void begin_drain();
  void end_when_empty();
  void end();

  net::asio::io_context context_;
  observe::Counters counters_;
  std::unique_ptr<AccessLogLines> access_lines_;
  std::unique_ptr<redis::Store> redis_;
  proxy::Worker worker_;
  std::vector<std::unique_ptr<proxy::Entrance>> entrances_;
  net::Timer start_timer_;
  base::Duration start_wait_;
  std::atomic<bool> waits_for_redis_;
  net::Timer drain_timer_;
  Log& log_;
  std::size_t most_sessions_;
  std::thread thread_;
};

}  // namespace weir::app
