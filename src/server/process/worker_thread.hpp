// One thread of the proxy with all that belongs to it: its loop, its listening sockets, its Redis connection,
// its counters. Made and stopped by the main thread; everything else happens on its own.
#pragma once

#include "server/redis_errand.hpp"

#include "weir/log/access_log.hpp"
#include "weir/log/log.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/listener.hpp"
#include "weir/observe/counters.hpp"
#include "weir/proxy/entrance.hpp"
#include "weir/proxy/worker.hpp"
#include "weir/redis/store.hpp"
#include "weir/upgrade/passage.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace weir::app {

// What the main thread gives every worker; outlives them all.
struct WorkerParts {
  const proxy::Shared& shared;
  std::shared_ptr<const proxy::Edition> edition;  // shared as weir/proxy/edition.hpp says
  observe::Counters::Shape shape;
  const redis::RedisSettings* redis;  // null where no rule needs it
  redis::LastRefunds& redis_refunds;
  redis::UnitLeases* redis_units;  // null where no rule takes any
  AccessLog& access_log;
  Log& log;
  std::size_t top;  // clients that are counted of each rule; 0: none
};

class WorkerThread {
 public:
  explicit WorkerThread(const WorkerParts& parts);
  ~WorkerThread();  // stops hard and joins
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // `opens`: as soon as it may (it may have to wait for Redis); else not before open().
  void start(bool opens = true);
  // Any thread: takes connections from now on.
  void open();

  // Any thread, before start() or later. `listener`: a number that no other one of this worker has had.
  void listen_on(std::size_t listener, net::ListeningSocket socket, proxy::EntranceSettings settings);
  // Any thread: new connections of the listener get this.
  void renew(std::size_t listener, proxy::EntranceSettings settings);
  // Any thread: takes no more there; its connections finish what they have begun.
  void leave(std::size_t listener);
  // Any thread: requests that begin from now on work by this edition.
  void begin(std::shared_ptr<const proxy::Edition> edition);
  // Any thread: takes no connections and decides nothing until resume(); what was decided goes on. `done`: is
  // called on the worker's thread once that is so, and must not throw.
  void pause(std::function<void()> done);
  void resume();
  // Any thread: as drain(), after pause(), because another process has taken over. Connections are not closed
  // before stop() but after an answer that says so, or where `passage` takes them, which outlives the worker.
  void retire(proxy::Passage& passage);
  // Any thread: serves a connection of the listener that another process has accepted. One of a listener that
  // is gone is closed.
  void adopt(std::size_t listener, ArrivedConnection arrived);
  // Any thread: take nothing new, finish what was begun; the thread ends when all is finished.
  void drain();
  // Any thread: end everything.
  void stop();
  void join();
  // Any thread: asks this worker's Redis; `done` is called on the worker's thread, and must not throw. Never,
  // where the worker ends before. REQUIRES redis().
  void run_errand(std::shared_ptr<RedisErrand> errand, std::function<void()> done);

  [[nodiscard]] const observe::Counters& counters() const noexcept { return counters_; }
  // Requests that were decided since retire(). REQUIRES join().
  [[nodiscard]] std::uint64_t decided_apart() const noexcept { return worker_.decided_apart; }
  // For make_room() and clear_…() alone.
  [[nodiscard]] observe::Counters& counters() noexcept { return counters_; }
  [[nodiscard]] const proxy::LoadMeter& load() const noexcept { return worker_.load; }  // part() alone
  [[nodiscard]] const redis::Store* redis() const noexcept {
    return redis_.get();
  }  // state() and stats() from any thread
  // Any thread: what is posted to it runs while the worker does, until then or else never.
  [[nodiscard]] net::Executor loop() noexcept { return context_.get_executor(); }
  // Any thread: it could not open yet. Without Redis it can as soon as it runs.
  [[nodiscard]] bool waits_for_redis() const noexcept { return waits_for_redis_; }

 private:
  void open_when_ready(std::chrono::steady_clock::time_point latest);
  void open_if_allowed();
  void begin_drain();
  [[nodiscard]] bool is_empty();
  void end_when_empty();
  void end();
  void add(std::size_t listener, net::ListeningSocket socket, proxy::EntranceSettings settings);
  void forget_deserted();

  net::asio::io_context context_;
  observe::Counters counters_;
  std::unique_ptr<AccessLogLines> access_lines_;
  std::unique_ptr<redis::Store> redis_;
  proxy::Worker worker_;
  // By listener: several of one, where sockets were inherited from more workers than there are.
  std::multimap<std::size_t, std::unique_ptr<proxy::Entrance>> entrances_;
  std::vector<std::unique_ptr<proxy::Entrance>> left_;  // whose connections go on
  bool may_open_ = false;
  bool opened_ = false;
  net::Timer start_timer_;
  base::Duration start_wait_;
  std::atomic<bool> waits_for_redis_;
  net::Timer drain_timer_;
  Log& log_;
  std::thread thread_;
};

}  // namespace weir::app
