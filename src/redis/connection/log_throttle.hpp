// Limits the log lines about a service that is down. The first line is logged at once. During the same
// outage, a further line is logged only if its text is new and ten seconds have passed since the last line.
// During several short outages, at most kMost lines are logged in ten seconds. Pure.
#pragma once

#include <chrono>
#include <string>
#include <utility>

namespace weir::redis {

class LogThrottle {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr unsigned kMost = 3;

  // Must be called when the service goes down or the reason changes. Returns true if the caller should log
  // `line`. REQUIRES: the line is not empty.
  [[nodiscard]] bool raise(std::string line, Time now) {
    constexpr std::chrono::seconds kPause{10};
    if (!last_line_.empty() && (line == last_line_ || now < next_)) return false;
    if (now >= counted_until_) {
      counted_until_ = now + kPause;
      count_ = 0;
    }
    if (count_ == kMost) {
      omitted_ += silent_ ? 0 : 1;
      silent_ = true;
      return false;
    }
    ++count_;
    omitted_ -= std::exchange(silent_, false) ? 1 : 0;
    last_line_ = std::move(line);
    next_ = now + kPause;
    return true;
  }
  // Must be called when the service is up again. Returns true if a line about the outage was logged; the
  // caller should then log its end.
  [[nodiscard]] bool settle() noexcept {
    last_line_.clear();
    return !std::exchange(silent_, false);
  }
  // Returns how many outages were not logged since the last call of omitted().
  [[nodiscard]] unsigned omitted() noexcept { return std::exchange(omitted_, 0); }

 private:
  std::string last_line_;
  Time next_{}, counted_until_{};
  unsigned count_ = 0;   // number of lines logged in the period that ends at counted_until_
  bool silent_ = false;  // true: the service is down, and this outage was not logged
  unsigned omitted_ = 0;
};

}  // namespace weir::redis
