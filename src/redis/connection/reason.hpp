// The reason why a connection or a store is down. The owner's thread sets the reason; any thread may read it.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

namespace weir::redis {

class Reason {
 public:
  // Sets the reason; an empty text means that there is no reason.
  void set(std::string_view why) {
    const std::lock_guard lock(mutex_);
    why_ = why;
  }
  [[nodiscard]] std::string get() const {
    const std::lock_guard lock(mutex_);
    return why_;
  }

 private:
  mutable std::mutex mutex_;
  std::string why_;
};

}  // namespace weir::redis
