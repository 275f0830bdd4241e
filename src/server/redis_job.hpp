// A job that another thread gives to a worker: keys to reset in Redis, and keys to read.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/net/task.hpp"
#include "weir/proxy/configuration.hpp"
#include "weir/proxy/explainer.hpp"
#include "weir/redis/store.hpp"

#include <memory>
#include <vector>

namespace weir::server {

struct RedisJob {
  // Owns the limiters and penalties to which the charges point. The job keeps them alive, because the worker
  // may still use the job after the caller has stopped waiting.
  std::shared_ptr<const proxy::Configuration> config;
  std::vector<limit::Charge> forget;        // keys to reset first
  std::vector<proxy::RedisLookup> lookups;  // keys to read after the resets, in this order
  // True: reads the present state of the keys; false: reads the results that the charges would get.
  bool state_only = false;
};

// Runs the job and stores the results in `job`. Must be called on the store's thread.
[[nodiscard]] net::Task<void> run_job(redis::Store& store, std::shared_ptr<RedisJob> job);

}  // namespace weir::server
