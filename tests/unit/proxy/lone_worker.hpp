// A worker, and what it shares with nobody else.
#pragma once

#include "weir/proxy/worker.hpp"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

namespace weir::proxy {

struct LoneWorker {
  // `redis`: of a store that the worker has; null: it has none. `fleets`: of the configuration's upstreams.
  explicit LoneWorker(Configuration a_config, const redis::RedisSettings* redis = nullptr,
                      std::vector<std::shared_ptr<upstream::Fleet>> fleets = {})
      : edition(std::make_shared<Edition>(Edition{std::move(a_config), std::move(fleets)})),
        store(redis != nullptr
                  ? std::make_unique<redis::Store>(context.get_executor(), *redis, redis::StoreLog(),
                                                   redis::StoreTuning(), nullptr, &units)
                  : nullptr) {}

  std::shared_ptr<Edition> edition;
  Configuration& config = edition->config;
  net::asio::io_context context{1};
  net::Clock clock;
  limit::KeyTable table{1000};
  SharedQueue queue{1};
  InFlight in_flight{0};
  Crowd crowd{0};
  BodyMemory body_memory{64 << 20};
  observe::Counters counters{{.routes = 1, .rules = 3, .upstreams = 1}};
  redis::UnitLeases units{64, std::chrono::seconds(10)};
  std::unique_ptr<redis::Store> store;
  Worker worker{context.get_executor(),
                {.clock = clock,
                 .table = table,
                 .queue = queue,
                 .in_flight = in_flight,
                 .crowd = crowd,
                 .body_memory = body_memory},
                edition,
                store.get(),
                counters,
                nullptr};
};

}  // namespace weir::proxy
