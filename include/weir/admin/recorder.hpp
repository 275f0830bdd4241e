// What the dashboard shows of the time before somebody opened it: how many requests were admitted, delayed
// and refused in each of the last minutes' steps, by all and by each rule, and since when a rule refuses.
//
// Belongs to the thread of the admin listener. Memory is bounded: kKept numbers for each of 3 + 2 per rule.
#pragma once

#include "weir/base/time.hpp"
#include "weir/observe/history.hpp"
#include "weir/observe/spell.hpp"

#include <string>
#include <vector>

namespace weir::admin {

struct Sources;

class Recorder {
 public:
  static constexpr base::Duration kStep{5'000'000};
  static constexpr std::size_t kKept = 180;  // steps: a quarter of an hour
  // A rule that has refused nobody for so long refuses anew when it does again.
  static constexpr base::Duration kPause{60'000'000};

  Recorder();

  // Once every kStep. Rules are known by their names: one that stays goes on, though its place may change.
  void look(const Sources& sources, base::TimePoint now);

  // Series: admitted, delayed, refused; then of each rule, in the order of `rules`, what it admitted and what
  // it refused (of a shadow rule: would have).
  [[nodiscard]] const observe::History& history() const noexcept { return history_; }
  [[nodiscard]] const std::vector<std::string>& rules() const noexcept { return rules_; }
  // When the last step ended; the epoch: none has.
  [[nodiscard]] base::TimePoint latest() const noexcept { return latest_; }
  // Since when each rule refuses. REQUIRES rule < rules().size().
  [[nodiscard]] const observe::Spell& refusals(std::size_t rule) const { return refusals_[rule]; }

 private:
  void follow(const Sources& sources);

  std::vector<std::string> rules_;
  observe::History history_;
  std::vector<observe::Spell> refusals_;
  base::TimePoint latest_{};
};

}  // namespace weir::admin
