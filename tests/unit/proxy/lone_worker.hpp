// A single worker, together with all objects that workers usually share.
#pragma once

#include "weir/proxy/worker.hpp"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

namespace weir::proxy {

struct LoneWorker {
  // `redis`: the settings of the worker's Redis store; null: no store. `server_groups`: one for each upstream
  // of the configuration.
  explicit LoneWorker(Configuration a_config, const redis::RedisSettings* redis = nullptr,
                      std::vector<std::shared_ptr<upstream::ServerGroup>> server_groups = {})
      : config_snapshot(
            std::make_shared<ConfigSnapshot>(ConfigSnapshot{std::move(a_config), std::move(server_groups)})),
        store(redis != nullptr
                  ? std::make_unique<redis::Store>(context.get_executor(), *redis, redis::StoreLog(),
                                                   redis::StoreTuning(), nullptr, &units)
                  : nullptr) {}

  std::shared_ptr<ConfigSnapshot> config_snapshot;
  Configuration& config = config_snapshot->config;
  net::asio::io_context context{1};
  net::Clock clock;
  limit::KeyTable table{1000};
  SharedQueue queue{1};
  InFlight in_flight{0};
  ConnectionsPerIp connections_per_ip{0};
  BodyMemory body_memory{64 << 20};
  observe::Counters counters{{.routes = 1, .rules = 3, .upstreams = 1}};
  redis::SharedGrants units{64, std::chrono::seconds(10)};
  std::unique_ptr<redis::Store> store;
  Worker worker{context.get_executor(),
                {.clock = clock,
                 .table = table,
                 .queue = queue,
                 .in_flight = in_flight,
                 .connections_per_ip = connections_per_ip,
                 .body_memory = body_memory},
                config_snapshot,
                store.get(),
                counters,
                nullptr};
};

}  // namespace weir::proxy
