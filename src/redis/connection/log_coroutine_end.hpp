// Logs that one of a store's coroutines has ended with an exception.
#pragma once

#include "weir/redis/store.hpp"

#include <exception>
#include <string>

namespace weir::redis {

// A completion handler for net::spawn, called when a coroutine ends. Logs the coroutine's exception. weir's
// coroutines throw only if memory runs out. The exception ends only the coroutine; the worker continues.
struct LogCoroutineEnd {
  StoreLog log;
  const char* whose;  // the start of the message: "the connection's"

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
    } catch (const std::exception&) {  // there is no memory for the log line
    }
  }
};

}  // namespace weir::redis
