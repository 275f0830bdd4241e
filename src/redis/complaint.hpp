// What a log is told of something that is down: at once that it is, and while it stays so, when the reason
// has changed, but no more often than every ten seconds. Pure.
#pragma once

#include <chrono>
#include <string>
#include <utility>

namespace weir::redis {

class Complaint {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Whether to say this line. REQUIRES that it is not empty.
  [[nodiscard]] bool raise(std::string line, Time now) {
    if (!said_.empty() && (line == said_ || now < next_)) return false;
    said_ = std::move(line);
    next_ = now + std::chrono::seconds(10);
    return true;
  }
  // It is up.
  void settle() noexcept { said_.clear(); }

 private:
  std::string said_;
  Time next_{};
};

}  // namespace weir::redis
