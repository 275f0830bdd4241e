// What one thread of the proxy works with. Everything in it belongs to that thread, but for what is named
// shared.
#pragma once

#include "weir/limit/key_table.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/clock.hpp"
#include "weir/net/clock_step.hpp"
#include "weir/net/watchdog.hpp"
#include "weir/observe/access_record.hpp"
#include "weir/observe/counters.hpp"
#include "weir/proxy/body_memory.hpp"
#include "weir/proxy/buffer.hpp"
#include "weir/proxy/config_snapshot.hpp"
#include "weir/proxy/connection_handoff.hpp"
#include "weir/proxy/connections_per_ip.hpp"
#include "weir/proxy/decision_pause.hpp"
#include "weir/proxy/idle_evictor.hpp"
#include "weir/proxy/in_flight.hpp"
#include "weir/proxy/load_meter.hpp"
#include "weir/proxy/shaper.hpp"
#include "weir/redis/store.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::proxy {

struct ExchangeBuffers;

// What workers share: made for it, but for the clock.
struct Shared {
  const net::Clock& clock;
  limit::KeyTable& table;
  SharedQueue& queue;
  InFlight& in_flight;
  ConnectionsPerIp& connections_per_ip;
  BodyMemory& body_memory;
  const net::ClockStep* clock_step = nullptr;  // null: nobody looks whether the machine's clock was set
};

class Worker {
 public:
  // `redis`, `access_log`: may be null. All of it outlives the worker.
  Worker(net::Executor executor, const Shared& shared, std::shared_ptr<const ConfigSnapshot> config_snapshot,
         redis::Store* redis, observe::Counters& counters, observe::AccessSink* access_log);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The present configuration, for what belongs to no request: ask again after each wait.
  [[nodiscard]] const Configuration& config() const noexcept { return worker_snapshots.config(); }
  // Goes over to another edition.
  void begin(std::shared_ptr<const ConfigSnapshot> config_snapshot);

  net::Executor executor;
  const net::Clock& clock;
  limit::KeyTable& table;
  redis::Store* redis;
  observe::Counters& counters;
  observe::AccessSink* access_log;
  net::Watchdog watchdog;
  Shaper shaper;
  LoadMeter load;  // measured only where some rule looks at it
  InFlight& in_flight;
  ConnectionsPerIp& connections_per_ip;
  BodyMemory& body_memory;
  const net::ClockStep* clock_step;  // may be null
  IdleEvictor idle_evictor;
  WorkerSnapshots worker_snapshots;
  BlockPool blocks;
  DecisionPause decision_pause;

  // Connections that are open; ends the drain when it comes to zero.
  std::size_t sessions = 0;
  bool draining = false;  // finish what was begun, take nothing new
  // Drains because another process has taken over: idle connections are closed at the end alone, for their
  // clients may just be sending.
  bool retiring = false;
  std::uint64_t decided_apart = 0;       // requests that were decided while it was retiring
  base::TimePoint paused_at{};           // when its recess began
  ConnectionHandoff* handoff = nullptr;  // while it retires: where connections go; null: they stay
  bool hard_stop = false;                // end everything at the next tick

  // Bytes of a block, which every head that may come has to fit in.
  [[nodiscard]] static std::size_t block_size(const ServerSettings& server) noexcept;

  // From when on what is charged or changed in memory is not known to the process that takes over; the end of
  // time: there is none.
  [[nodiscard]] base::TimePoint lost_from() const noexcept {
    return retiring || decision_pause.is_on() ? paused_at : base::TimePoint::max();
  }

  // The scratch memory of one exchange; reused.
  [[nodiscard]] std::unique_ptr<ExchangeBuffers> take_buffers();
  void give_back(std::unique_ptr<ExchangeBuffers> buffers);

  // Returns the HTTP-date of an instant of the machine's clock. The text is made once a second.
  [[nodiscard]] std::string_view http_date(base::TimePoint machine_now);
  // 32 hex digits that no other request has.
  void make_request_id(std::string& out);

 private:
  // Measures the load once a tick.
  class LoadProbe final : public net::Watched {
   public:
    explicit LoadProbe(Worker& worker) : Watched(worker.watchdog), worker_(worker) {}

   private:
    void on_late() noexcept override {}
    void on_tick() noexcept override;
    Worker& worker_;
  };

  std::optional<LoadProbe> load_probe_;
  std::vector<std::unique_ptr<ExchangeBuffers>> free_buffers_;
  std::string date_;
  std::chrono::sys_seconds date_second_{};
  std::string id_prefix_;  // 16 hex digits
  std::uint64_t id_count_ = 0;
};

}  // namespace weir::proxy
