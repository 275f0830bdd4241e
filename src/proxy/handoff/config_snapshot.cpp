#include "weir/proxy/config_snapshot.hpp"

#include <algorithm>

namespace weir::proxy {

WorkerSnapshots::WorkerSnapshots(net::Executor executor, net::Watchdog& watchdog,
                                 std::shared_ptr<const ConfigSnapshot> config_snapshot)
    : executor_(executor), watchdog_(watchdog) {
  begin(std::move(config_snapshot));
}

// Reuses the pools of unchanged upstreams, so that a reload does not disturb requests that wait for a
// connection of the pool.
WorkerSnapshot WorkerSnapshots::make(std::shared_ptr<const ConfigSnapshot> config_snapshot) {
  WorkerSnapshot worker_snapshot{.config_snapshot = std::move(config_snapshot), .pools = {}};
  for (const auto& server_group : worker_snapshot.config_snapshot->server_groups) {
    std::shared_ptr<upstream::Pool> pool;
    for (std::size_t at = 0; !snapshots_.empty() && at < snapshots_.front().pools.size(); ++at)
      if (snapshots_.front().config_snapshot->server_groups[at] == server_group)
        pool = snapshots_.front().pools[at];
    worker_snapshot.pools.push_back(
        pool ? std::move(pool) : std::make_shared<upstream::Pool>(executor_, watchdog_, *server_group));
  }
  return worker_snapshot;
}

void WorkerSnapshots::begin(std::shared_ptr<const ConfigSnapshot> config_snapshot) {
  snapshots_.push_front(make(std::move(config_snapshot)));
  if (snapshots_.size() == 1) return;
  auto& before = *std::next(snapshots_.begin());
  before.current = false;
  if (before.refs == 0) end(before);
}

bool WorkerSnapshots::drop_idle_servers(std::size_t most) noexcept {
  std::size_t idle = 0;
  for (const auto& snapshot : snapshots_)
    for (const auto& pool : snapshot.pools) idle += pool->idle_connections();
  if (idle <= most) return false;
  for (const auto& snapshot : snapshots_)
    for (const auto& pool : snapshot.pools) pool->drop_idle();
  return true;
}

void WorkerSnapshots::end(const WorkerSnapshot& worker_snapshot) noexcept {
  snapshots_.remove_if([&](const WorkerSnapshot& each) { return &each == &worker_snapshot; });
}

}  // namespace weir::proxy
