// Records the history that a dashboard shows when it is opened. For each step of the last minutes, records
// how many requests were admitted, delayed and refused, in total and for each rule. Also records when a rule
// began to refuse requests.
//
// admin::Server owns the recorder; only the control thread uses it. Memory is bounded: each of the 3 + 2 *
// rules series has kKept numbers.
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
  static constexpr std::size_t kKept = 180;  // number of recorded steps: 15 minutes
  // If a rule refuses nothing for this time, its next refusal begins a new period of refusals.
  static constexpr base::Duration kPause{60'000'000};

  Recorder();

  // Records one step. Must be called every kStep. A rule with the same name as before continues its series,
  // even if its position has changed.
  void record(const Sources& sources, base::TimePoint now);

  // Returns the series. First: admitted, delayed and refused requests. Then, for each rule in the order of
  // rules(): admitted and refused requests. For a shadow rule, the second number counts requests that the
  // rule would have refused.
  [[nodiscard]] const observe::History& history() const noexcept { return history_; }
  [[nodiscard]] const std::vector<std::string>& rules() const noexcept { return rules_; }
  // Returns the end of the latest recorded step; the epoch if no step was recorded.
  [[nodiscard]] base::TimePoint latest() const noexcept { return latest_; }
  // Returns the latest period in which the rule rules()[rule] refused requests. REQUIRES rule <
  // rules().size().
  [[nodiscard]] const observe::Streak& refusals(std::size_t rule) const { return refusals_[rule]; }

 private:
  void follow(const Sources& sources);

  std::vector<std::string> rules_;
  observe::History history_;
  std::vector<observe::Streak> refusals_;
  base::TimePoint latest_{};
};

}  // namespace weir::admin
