// OutageLog decides which changes of a server's state are logged, so that long or frequent outages do not
// fill the log. Pure: time is an argument. The state of the server in ServerGroup owns the log and protects
// it by a mutex.
//
// Only the first kMostOutages outages of a minute are logged when they begin. While an outage lasts, one line
// a minute is logged. The end of an outage is logged only if an earlier line about the same outage was
// logged. Each line, unless it is about the end of an outage, also reports how many earlier ejections were
// not logged.
#pragma once

#include "weir/base/time.hpp"

#include <utility>

namespace weir::upstream {

class OutageLog {
 public:
  static constexpr base::Duration kPause{60'000'000};
  // largest number of outages in one minute that are logged when they begin
  static constexpr unsigned kMostOutages = 5;

  // Returns true if the outage that begins at `now` should be logged.
  [[nodiscard]] bool begins(base::TimePoint now) noexcept {
    if (now >= minute_ends_) {
      minute_ends_ = now + kPause;
      outages_ = 0;
    }
    if (outages_ == kMostOutages) return leaves_out();
    ++outages_;
    return logs(now);
  }
  // Returns true if a line about the continuing outage should be logged. `ejected` is true if the server was
  // ejected again, and false if a probe failed.
  [[nodiscard]] bool goes_on(base::TimePoint now, bool ejected) noexcept {
    if (now >= last_ + kPause) return logs(now);
    return ejected && leaves_out();
  }
  // Returns true if the end of the outage should be logged: if an earlier line about the same outage was
  // logged.
  [[nodiscard]] bool ends() noexcept { return std::exchange(is_logged_, false); }
  // Returns the number of ejections that were not logged since the last call.
  [[nodiscard]] unsigned left_out() noexcept { return std::exchange(left_out_, 0); }

 private:
  bool logs(base::TimePoint now) noexcept {
    last_ = now;
    return is_logged_ = true;
  }
  bool leaves_out() noexcept {
    ++left_out_;
    return false;
  }

  base::TimePoint last_{};         // time of the last line about an outage
  base::TimePoint minute_ends_{};  // end of the minute in which outages_ counts outages
  unsigned outages_ = 0;
  unsigned left_out_ = 0;
  bool is_logged_ = false;  // true: a line about the present outage was logged
};

}  // namespace weir::upstream
