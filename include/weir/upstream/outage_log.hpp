// Decides which changes of a server are logged, so that one that stays away or comes and goes does not fill
// the log. Pure: time is an argument.
//
// The first outages of a minute are logged, each with its end. While an outage lasts, one line a minute says
// so. What is left out is counted and told with the next line.
#pragma once

#include "weir/base/time.hpp"

#include <utility>

namespace weir::upstream {

class OutageLog {
 public:
  static constexpr base::Duration kPause{60'000'000};
  static constexpr unsigned kMostOutages = 5;  // in a minute

  // Returns true if the outage that begins at `now` is to be logged.
  [[nodiscard]] bool begins(base::TimePoint now) noexcept {
    if (now >= minute_ends_) {
      minute_ends_ = now + kPause;
      outages_ = 0;
    }
    if (outages_ == kMostOutages) return leaves_out();
    ++outages_;
    return says(now);
  }
  // Returns true if it is to be logged that the outage lasts: the server was ejected again, or a probe
  // failed.
  [[nodiscard]] bool goes_on(base::TimePoint now, bool ejected) noexcept {
    if (now >= last_ + kPause) return says(now);
    return ejected && leaves_out();
  }
  // Returns true if the end of the outage is to be logged: something was logged of the outage.
  [[nodiscard]] bool ends() noexcept { return std::exchange(said_, false); }
  // Returns how many ejections were left out since this was asked last.
  [[nodiscard]] unsigned left_out() noexcept { return std::exchange(left_out_, 0); }

 private:
  bool says(base::TimePoint now) noexcept {
    last_ = now;
    return said_ = true;
  }
  bool leaves_out() noexcept {
    ++left_out_;
    return false;
  }

  base::TimePoint last_{};         // the last line about an outage
  base::TimePoint minute_ends_{};  // in which `outages_` are counted
  unsigned outages_ = 0;
  unsigned left_out_ = 0;
  bool said_ = false;  // something was logged of the outage
};

}  // namespace weir::upstream
