// Records what the dashboard shows of the time before somebody opened it. Records how many requests were
// admitted, delayed and refused in each step of the last minutes, in total and for each rule. Also records
// since when a rule refuses.
//
// Belongs to the thread of the admin listener. Memory is bounded: kKept numbers for each of 3 + 2 * rules
// series.
#pragma once

#include "weir/base/time.hpp"
#include "weir/observe/history.hpp"
#include "weir/observe/streak.hpp"

#include <string>
#include <vector>

namespace weir::admin {

struct Sources;

class Recorder {
 public:
  static constexpr base::Duration kStep{5'000'000};
  static constexpr std::size_t kKept = 180;  // steps: 15 minutes
  // A refusal after so long a pause starts a new period of refusals.
  static constexpr base::Duration kPause{60'000'000};

  Recorder();

  // Must be called every kStep. A rule with the same name continues, even if its position changes.
  void look(const Sources& sources, base::TimePoint now);

  // Returns the series: admitted, delayed, refused; then admitted and refused for each rule, in the order of
  // rules(). For a shadow rule, the second series counts requests that it would have refused.
  [[nodiscard]] const observe::History& history() const noexcept { return history_; }
  [[nodiscard]] const std::vector<std::string>& rules() const noexcept { return rules_; }
  // Returns the end of the last step; the epoch: no step has ended.
  [[nodiscard]] base::TimePoint latest() const noexcept { return latest_; }
  // Returns since when the rule refuses. REQUIRES rule < rules().size().
  [[nodiscard]] const observe::Streak& refusals(std::size_t rule) const { return refusals_[rule]; }

 private:
  void follow(const Sources& sources);

  std::vector<std::string> rules_;
  observe::History history_;
  std::vector<observe::Streak> refusals_;
  base::TimePoint latest_{};
};

}  // namespace weir::admin
