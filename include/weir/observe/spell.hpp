// Since when something goes on: counted from its first event, until it has paused for longer than a spell
// bears. Plain values; time is an argument.
#pragma once

#include "weir/base/time.hpp"

#include <cstdint>
#include <optional>

namespace weir::observe {

class Spell {
 public:
  explicit Spell(base::Duration longest_pause) noexcept : longest_pause_(longest_pause) {}

  // How often it has happened by now. The first call only says where the counting begins; a total that fell
  // began anew. REQUIRES that `now` does not go back.
  void note(std::uint64_t total, base::TimePoint now) noexcept {
    if (total_ && total != *total_) {
      if (!since_) since_ = now;
      last_ = now;
    }
    total_ = total;
    if (since_ && now - *last_ > longest_pause_) since_.reset();
  }

  // When it began; nullopt: it does not go on.
  [[nodiscard]] std::optional<base::TimePoint> since() const noexcept { return since_; }
  // When it happened last; nullopt: never.
  [[nodiscard]] std::optional<base::TimePoint> last() const noexcept { return last_; }

 private:
  base::Duration longest_pause_;
  std::optional<std::uint64_t> total_;
  std::optional<base::TimePoint> since_;
  std::optional<base::TimePoint> last_;
};

}  // namespace weir::observe
