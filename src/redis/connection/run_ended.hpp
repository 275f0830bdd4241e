// What is told of a coroutine that lasts as long as its store, where it ends before.
#pragma once

#include "weir/redis/store.hpp"

#include <exception>
#include <string>

namespace weir::redis {

// The completion of co_spawn. Nothing of ours throws there; what does is a want of memory at a bad moment,
// and ends what this one does for the worker, not the worker.
struct RunEnded {
  StoreLog log;
  const char* whose;  // "the connection's"

  void operator()(const std::exception_ptr& thrown) const {
    if (!thrown || !log) return;
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
      log(LogLevel::Warning, std::string("redis: ") + whose + " coroutine ended: " + e.what());
    }
  }
};

}  // namespace weir::redis
