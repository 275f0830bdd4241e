// Something that is asked of Redis on behalf of another thread: handed to a worker whole, and back.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/net/task.hpp"
#include "weir/proxy/explainer.hpp"
#include "weir/redis/store.hpp"

#include <memory>
#include <vector>

namespace weir::app {

struct RedisErrand {
  std::vector<limit::Charge> forget;  // first
  std::vector<proxy::Look> looks;     // then, one after the other
  bool standing = false;  // how the keys stand, with nothing asked of them; else what the charges would get
};

// On the store's thread.
[[nodiscard]] net::Task<void> carry_out(redis::Store& store, std::shared_ptr<RedisErrand> errand);

}  // namespace weir::app
