// Tracks how long events have been recurring. A streak is a series of events without a pause longer than
// `longest_pause`. Plain values; time is an argument.
#pragma once

#include "weir/base/time.hpp"

#include <cstdint>
#include <optional>

namespace weir::observe {

class Streak {
 public:
  explicit Streak(base::Duration longest_pause) noexcept : longest_pause_(longest_pause) {}

  // Records the total number of events. The first call only stores the total, from which later events are
  // counted. If the total is lower than before, the counter has restarted from zero. REQUIRES: `now` does not
  // decrease.
  void note(std::uint64_t total, base::TimePoint now) noexcept {
    if (total_ && total != *total_) {
      if (!since_) since_ = now;
      last_ = now;
    }
    total_ = total;
    if (since_ && now - *last_ > longest_pause_) since_.reset();
  }

  // Returns the start of the current streak; nullopt if the last streak is over.
  [[nodiscard]] std::optional<base::TimePoint> since() const noexcept { return since_; }
  // Returns the time of the last event; nullopt if no event has come.
  [[nodiscard]] std::optional<base::TimePoint> last() const noexcept { return last_; }

 private:
  base::Duration longest_pause_;
  std::optional<std::uint64_t> total_;
  std::optional<base::TimePoint> since_;
  std::optional<base::TimePoint> last_;
};

}  // namespace weir::observe
