// A configuration with the objects made from it. Immutable, apart from the state of the servers in its
// groups. A reload makes a new snapshot. Each worker uses the new snapshot for requests that begin
// afterwards. The old snapshot is freed when the last request that uses it has ended.
//
//   ConfigSnapshot (shared by all workers) ◄── WorkerSnapshot (one worker's: pools, a plain reference count)
//     ◄── SnapshotRef (one request's)
//
// A SnapshotRef costs one increment and one decrement of a counter that only its worker uses. Objects that
// outlive the request must not point into its snapshot. Exception: limiters, which stay alive
// (limit/shared_limiter.hpp).
#pragma once

#include "weir/proxy/configuration.hpp"
#include "weir/upstream/pool.hpp"
#include "weir/upstream/server_group.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

namespace weir::proxy {

struct ConfigSnapshot {
  Configuration config;
  // One group for each upstream. Two snapshots share the group of an upstream that did not change.
  std::vector<std::shared_ptr<upstream::ServerGroup>> server_groups;
};

// One worker's reference to a ConfigSnapshot, with its pools. Belongs to the worker.
struct WorkerSnapshot {
  std::shared_ptr<const ConfigSnapshot> config_snapshot;  // shared by all workers
  std::vector<std::shared_ptr<upstream::Pool>> pools;     // one for each server group
  std::size_t refs = 0;
  bool current = true;
};

// The snapshots of one worker: the current one, and older ones that requests still use.
class WorkerSnapshots {
 public:
  // Keeps one snapshot alive for the duration of a request.
  class SnapshotRef {
   public:
    explicit SnapshotRef(WorkerSnapshots& worker_snapshots) noexcept
        : snapshots_(worker_snapshots), worker_snapshot_(worker_snapshots.snapshots_.front()) {
      ++worker_snapshot_.refs;
    }
    ~SnapshotRef() {
      if (--worker_snapshot_.refs == 0 && !worker_snapshot_.current) snapshots_.end(worker_snapshot_);
    }
    SnapshotRef(const SnapshotRef&) = delete;
    SnapshotRef& operator=(const SnapshotRef&) = delete;

    [[nodiscard]] const Configuration& config() const noexcept {
      return worker_snapshot_.config_snapshot->config;
    }
    [[nodiscard]] upstream::Pool& pool(std::size_t upstream) const noexcept {
      return *worker_snapshot_.pools[upstream];
    }

   private:
    WorkerSnapshots& snapshots_;
    WorkerSnapshot& worker_snapshot_;
  };

  WorkerSnapshots(net::Executor executor, net::Watchdog& watchdog,
                  std::shared_ptr<const ConfigSnapshot> config_snapshot);

  // Returns the current configuration. The reference is valid until the caller's next wait.
  [[nodiscard]] const Configuration& config() const noexcept {
    return snapshots_.front().config_snapshot->config;
  }
  // Uses this snapshot for requests that begin from now on. If memory runs out, throws std::bad_alloc and
  // changes nothing.
  void begin(std::shared_ptr<const ConfigSnapshot> config_snapshot);
  // Closes all idle connections to servers, to free their descriptors, if there are more than `most`. Returns
  // true if it closed any.
  bool drop_idle_servers(std::size_t most = 0) noexcept;

 private:
  [[nodiscard]] WorkerSnapshot make(std::shared_ptr<const ConfigSnapshot> config_snapshot);
  void end(const WorkerSnapshot& worker_snapshot) noexcept;

  net::Executor executor_;
  net::Watchdog& watchdog_;
  std::list<WorkerSnapshot> snapshots_;  // the current snapshot is the first
};

}  // namespace weir::proxy
