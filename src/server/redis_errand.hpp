// A question to Redis that one thread hands to a worker and gets back with the replies.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/net/task.hpp"
#include "weir/proxy/explainer.hpp"
#include "weir/redis/store.hpp"

#include <memory>
#include <vector>

namespace weir::app {

struct RedisErrand {
  std::vector<limit::Charge> forget;  // keys to reset first
  std::vector<proxy::Look> looks;     // keys to read afterwards, in order
  bool standing = false;  // true: report the keys' present state; false: report what the charges would get
};

// Runs on the store's thread.
[[nodiscard]] net::Task<void> carry_out(redis::Store& store, std::shared_ptr<RedisErrand> errand);

}  // namespace weir::app
