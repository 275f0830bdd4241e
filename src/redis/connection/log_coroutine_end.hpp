// Logs a coroutine that ends before its store does.
#pragma once

#include "weir/redis/store.hpp"

#include <exception>
#include <string>

namespace weir::redis {

// The function that net::spawn calls when a coroutine ends. weir's code throws nothing there. Only a lack of
// memory can, and then this coroutine ends but the worker goes on.
struct LogCoroutineEnd {
  StoreLog log;
  const char* whose;  // "the connection's"

  void operator()(const std::exception_ptr& thrown) const noexcept {
    if (!thrown || !log) return;
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
      say(e.what());
    }
  }

 private:
  void say(const char* why) const noexcept {
    try {
      log(LogLevel::Warning, std::string("redis: ") + whose + " coroutine ended: " + why);
    } catch (const std::exception&) {  // no memory for the line either
    }
  }
};

}  // namespace weir::redis
