// A request keeps the configuration snapshot with which it started. A snapshot is freed with the last request
// that uses it, whichever worker serves the request. These tests also run under ThreadSanitizer.
#include "weir/proxy/config_snapshot.hpp"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

std::shared_ptr<const ConfigSnapshot> config_snapshot_of(std::uint64_t number) {
  auto config_snapshot = std::make_shared<ConfigSnapshot>();
  config_snapshot->config.server.max_body = number;
  return config_snapshot;
}

struct SnapshotWorker {
  explicit SnapshotWorker(std::shared_ptr<const ConfigSnapshot> config_snapshot)
      : watchdog(context.get_executor()),
        worker_snapshots(context.get_executor(), watchdog, std::move(config_snapshot)) {}
  net::asio::io_context context{1};
  net::Watchdog watchdog;
  WorkerSnapshots worker_snapshots;
};

TEST(WorkerSnapshots, RequestKeepsTheSnapshotThatItStartedWith) {
  auto first = config_snapshot_of(1);
  const std::weak_ptr<const ConfigSnapshot> old = first;
  SnapshotWorker worker(std::move(first));
  auto early = std::make_unique<WorkerSnapshots::SnapshotRef>(worker.worker_snapshots);
  auto other = std::make_unique<WorkerSnapshots::SnapshotRef>(worker.worker_snapshots);
  worker.worker_snapshots.begin(config_snapshot_of(2));
  EXPECT_EQ(worker.worker_snapshots.config().server.max_body, 2U);
  EXPECT_EQ(early->config().server.max_body, 1U);
  const WorkerSnapshots::SnapshotRef late(worker.worker_snapshots);
  EXPECT_EQ(late.config().server.max_body, 2U);
  early.reset();
  EXPECT_FALSE(old.expired());
  other.reset();
  EXPECT_TRUE(old.expired());
}

TEST(WorkerSnapshots, UnusedSnapshotIsFreedAtOnce) {
  auto first = config_snapshot_of(1);
  const std::weak_ptr<const ConfigSnapshot> old = first;
  SnapshotWorker worker(std::move(first));
  worker.worker_snapshots.begin(config_snapshot_of(2));
  EXPECT_TRUE(old.expired());
}

TEST(WorkerSnapshots, UnchangedUpstreamKeepsItsConnectionPool) {
  upstream::UpstreamSettings settings;
  settings.name = "api";
  const auto server_group =
      std::make_shared<upstream::ServerGroup>(settings, std::vector<upstream::Server>{});
  const auto with_fleets = [&](std::vector<std::shared_ptr<upstream::ServerGroup>> server_groups) {
    auto config_snapshot = std::make_shared<ConfigSnapshot>();
    config_snapshot->server_groups = std::move(server_groups);
    return config_snapshot;
  };
  SnapshotWorker worker(with_fleets({server_group}));
  const auto* pool = &WorkerSnapshots::SnapshotRef(worker.worker_snapshots).pool(0);
  worker.worker_snapshots.begin(with_fleets(
      {std::make_shared<upstream::ServerGroup>(settings, std::vector<upstream::Server>{}), server_group}));
  EXPECT_EQ(&WorkerSnapshots::SnapshotRef(worker.worker_snapshots).pool(1), pool);
  EXPECT_NE(&WorkerSnapshots::SnapshotRef(worker.worker_snapshots).pool(0), pool);
}

// Each worker gets new snapshots through post(), while requests still use old snapshots.
TEST(WorkerSnapshots, OldSnapshotIsFreedWhenTheLastWorkerHasSwitched) {
  constexpr std::uint64_t kEditions = 200;
  constexpr std::size_t kWorkers = 3;
  std::atomic<std::uint64_t> freed{0};
  const auto counted = [&](std::uint64_t number) {
    auto* config_snapshot = new ConfigSnapshot();
    config_snapshot->config.server.max_body = number;
    return std::shared_ptr<const ConfigSnapshot>(config_snapshot, [&](const ConfigSnapshot* gone) {
      freed.fetch_add(1, std::memory_order_relaxed);
      delete gone;
    });
  };
  std::vector<std::unique_ptr<SnapshotWorker>> workers;
  {
    const auto first = counted(0);
    for (std::size_t i = 0; i < kWorkers; ++i) workers.push_back(std::make_unique<SnapshotWorker>(first));
  }
  std::vector<std::thread> threads;
  for (auto& worker : workers)
    threads.emplace_back([&worker = *worker] {
      std::vector<std::unique_ptr<WorkerSnapshots::SnapshotRef>> requests;
      std::uint64_t last = 0;
      for (std::uint64_t count = 0; last < kEditions; ++count) {
        worker.context.poll();
        worker.context.restart();
        requests.push_back(std::make_unique<WorkerSnapshots::SnapshotRef>(worker.worker_snapshots));
        const auto number = requests.back()->config().server.max_body;
        EXPECT_GE(number, last);
        last = number;
        if (requests.size() > 16) requests.erase(requests.begin() + static_cast<std::ptrdiff_t>(count % 16));
      }
    });
  for (std::uint64_t number = 1; number <= kEditions; ++number) {
    const auto config_snapshot = counted(number);
    for (auto& worker : workers)
      net::asio::post(worker->context, [&worker_snapshots = worker->worker_snapshots, config_snapshot] {
        worker_snapshots.begin(config_snapshot);
      });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(freed.load(), kEditions) << "all snapshots except the last";
}

}  // namespace
}  // namespace weir::proxy
