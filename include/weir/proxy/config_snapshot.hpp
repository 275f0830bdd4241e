// One reading of the configuration, and what hangs on it. Immutable but for what fleets learn. A reload makes
// another one: each worker goes over to it for requests that begin from then on, and the old one goes when
// its last request has ended.
//
//   Edition (shared by all workers) ◄── Term (one worker's hold on it: pools, a plain count) ◄── Stay (a
//   request's)
//
// A request pays for that with a count up and a count down, of its own worker's memory. What outlives a
// request and its edition points to limiters alone, which stay (limit/shared_limiter.hpp).
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
  // Of each configured upstream; editions between which it did not change share it.
  std::vector<std::shared_ptr<upstream::ServerGroup>> server_groups;
};

// One worker's hold on an edition. Belongs to the worker.
struct WorkerSnapshot {
  std::shared_ptr<const ConfigSnapshot>
      config_snapshot;  // shared by the workers: the last one to leave frees it
  std::vector<std::shared_ptr<upstream::Pool>> pools;  // of its fleets; shared as those are, by terms
  std::size_t refs = 0;
  bool current = true;
};

// The terms of one worker: the present one, and those that requests have not left yet.
class WorkerSnapshots {
 public:
  // What a request works by, for as long as it lasts.
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

  // The present configuration, until the next turn of the loop: who waits asks again.
  [[nodiscard]] const Configuration& config() const noexcept {
    return snapshots_.front().config_snapshot->config;
  }
  // Requests that begin from now on work by this one. Throws where memory runs out, and nothing changed.
  void begin(std::shared_ptr<const ConfigSnapshot> config_snapshot);

 private:
  [[nodiscard]] WorkerSnapshot make(std::shared_ptr<const ConfigSnapshot> config_snapshot);
  void end(const WorkerSnapshot& worker_snapshot) noexcept;

  net::Executor executor_;
  net::Watchdog& watchdog_;
  std::list<WorkerSnapshot> snapshots_;  // the present one first
};

}  // namespace weir::proxy
