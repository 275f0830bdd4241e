// A question to Redis that one thread hands to a worker and gets back with the replies.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/net/task.hpp"
#include "weir/proxy/explainer.hpp"
#include "weir/redis/store.hpp"

#include <memory>
#include <vector>

namespace weir::server {

struct RedisJob {
  std::vector<limit::Charge> forget;      // keys to reset first
  std::vector<proxy::RedisLookup> looks;  // keys to read afterwards, in order
  bool state_only = false;  // true: report the keys' present state; false: report what the charges would get
};

// Runs on the store's thread.
[[nodiscard]] net::Task<void> run_job(redis::Store& store, std::shared_ptr<RedisJob> job);

}  // namespace weir::server
