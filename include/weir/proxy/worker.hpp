// Worker holds the state of one proxy thread. server::WorkerThread owns the worker. Only that thread uses its
// members, apart from the objects in Shared.
#pragma once

#include "weir/limit/key_table.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/challenges.hpp"
#include "weir/net/clock.hpp"
#include "weir/net/clock_step.hpp"
#include "weir/net/watchdog.hpp"
#include "weir/observe/access_record.hpp"
#include "weir/observe/counters.hpp"
#include "weir/observe/span.hpp"
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
#include "weir/proxy/token_key_waiters.hpp"
#include "weir/redis/store.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace weir::proxy {

struct ExchangeBuffers;
class PermitOwners;
class Permits;

// Objects that all workers share. They are thread-safe.
struct Shared {
  const net::Clock& clock;
  limit::KeyTable& table;
  SharedQueue& queue;
  InFlight& in_flight;
  ConnectionsPerIp& connections_per_ip;
  BodyMemory& body_memory;
  const net::ClockStep* clock_step = nullptr;   // null: steps of the machine's clock are not tracked
  observe::SpanSink* spans = nullptr;           // null: no spans are exported
  const net::Challenges* challenges = nullptr;  // null: weir answers no challenges of certificate authorities
  PermitOwners* permit_owners = nullptr;        // null: no other worker has permits of askers
};

class Worker {
 public:
  // `redis`, `access_log`: may be null. All arguments must outlive the worker.
  Worker(net::Executor executor, const Shared& shared, std::shared_ptr<const ConfigSnapshot> config_snapshot,
         redis::Store* redis, observe::Counters& counters, observe::AccessSink* access_log);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Returns the current configuration, for work that belongs to no request. The reference is valid until the
  // caller's next wait.
  [[nodiscard]] const Configuration& config() const noexcept { return worker_snapshots.config(); }
  // Uses this configuration for requests that begin from now on.
  void begin(std::shared_ptr<const ConfigSnapshot> config_snapshot);

  net::Executor executor;
  const net::Clock& clock;
  limit::KeyTable& table;
  redis::Store* redis;
  observe::Counters& counters;
  observe::AccessSink* access_log;
  net::Watchdog watchdog;
  Shaper shaper;
  LoadMeter load;  // measured only if some rule depends on the load
  InFlight& in_flight;
  ConnectionsPerIp& connections_per_ip;
  BodyMemory& body_memory;
  const net::ClockStep* clock_step;   // may be null
  observe::SpanSink* spans;           // null: no spans are exported
  const net::Challenges* challenges;  // may be null
  IdleEvictor idle_evictor;
  WorkerSnapshots worker_snapshots;
  BlockPool blocks;
  BlockPool large_blocks;  // blocks for bodies; if none is free, a body is relayed in smaller pieces
  DecisionPause decision_pause;
  TokenKeyWaiters token_key_waiters;

  // The number of open connections. A drain ends when the number reaches 0.
  std::size_t sessions = 0;
  bool stopping = false;  // true: weir drains soon, so health checks must fail (drain_delay)
  bool draining = false;  // true: the worker finishes open requests and accepts nothing new
  // True while the worker drains because a new process has taken over. Idle connections stay open until the
  // end of the drain, because their clients may be about to send a request.
  bool retiring = false;
  std::uint64_t decided_apart = 0;       // number of requests that this worker decided while retiring
  base::TimePoint paused_at{};           // when decision_pause began
  ConnectionHandoff* handoff = nullptr;  // receives connections while retiring; null: connections stay here
  bool hard_stop = false;                // true: the worker ends every request at the next tick

  // Returns the size of a block in bytes. The largest allowed head fits into half a block.
  [[nodiscard]] static std::size_t block_size(const ServerSettings& server) noexcept;

  // Returns true if a new process takes over the state of the limiters, or has done so. Later charges in the
  // memory of this process do not reach the new process.
  [[nodiscard]] bool is_handing_over() const noexcept { return retiring || decision_pause.is_on(); }
  // Returns the time when the hand-over of state to a new process began. Later charges and changes in the
  // memory of this process do not reach the new process. Returns TimePoint::max() if there is no upgrade.
  [[nodiscard]] base::TimePoint lost_from() const noexcept {
    return is_handing_over() ? paused_at : base::TimePoint::max();
  }

  // Returns scratch memory for one exchange. The exchange must return it with give_back().
  [[nodiscard]] std::unique_ptr<ExchangeBuffers> take_buffers();
  void give_back(std::unique_ptr<ExchangeBuffers> buffers);

  // Returns the HTTP-date of an instant of the machine's clock. The text is formatted at most once a second.
  [[nodiscard]] std::string_view http_date(base::TimePoint machine_now);
  // Returns a random number of 32 bits.
  [[nodiscard]] std::uint32_t chance() noexcept { return static_cast<std::uint32_t>(random_()); }
  // Returns the trace context for a request that came with this traceparent (observe::join_trace).
  [[nodiscard]] observe::TraceContext join_trace(std::string_view traceparent,
                                                 const observe::Sampling& sampling);
  // Returns the permits of askers whose questions this worker has decided.
  [[nodiscard]] Permits& permits();
  // Sets `out` to a request id: 32 hex digits, unique for each request.
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

  // Unmaps blocks that were not needed recently. Runs once a tick.
  class BlockTrimmer final : public net::Watched {
   public:
    explicit BlockTrimmer(Worker& worker) : Watched(worker.watchdog), worker_(worker) {}

   private:
    void on_late() noexcept override {}
    void on_tick() noexcept override;
    Worker& worker_;
  };

  BlockTrimmer block_trimmer_;
  std::optional<LoadProbe> load_probe_;
  std::vector<std::unique_ptr<ExchangeBuffers>> free_buffers_;
  std::mt19937 random_;
  std::string date_;
  std::chrono::sys_seconds date_second_{};
  std::string id_prefix_;  // the first 16 hex digits of each request id
  std::uint64_t id_count_ = 0;
  PermitOwners* const permit_owners_;
  // destroyed first, because permits use the worker; null before the first use
  std::unique_ptr<Permits> permits_;
};

}  // namespace weir::proxy
