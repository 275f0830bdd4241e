// Records by how much each of several totals (such as the refusals of a rule) grew in each time step of the
// last minutes. Uses constant memory. Plain values. The owner must call note() at the end of each step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::observe {

class History {
 public:
  // `series`: how many totals this object follows. `kept`: how many time steps it keeps; later steps replace
  // the oldest. REQUIRES: kept ≥ 1.
  History(std::size_t series, std::size_t kept);

  // Records the totals at the end of a step. The first call only stores the totals, so that later growth can
  // be computed. If a total is lower than before, its counter is taken to have restarted from zero. REQUIRES:
  // one total for each series.
  void note(std::span<const std::uint64_t> totals);

  // Replaces the series. `from` has the old index of each new series; nullopt for a series that did not exist
  // before. A new series has grown by 0 in all stored steps, and the next note() only stores its first total.
  void remap(std::span<const std::optional<std::size_t>> from);

  [[nodiscard]] std::size_t series() const noexcept { return last_.size(); }
  // Returns the number of stored steps, at most `kept`.
  [[nodiscard]] std::size_t steps() const noexcept { return steps_; }
  // Returns by how much a series grew in a step; step 0 is the oldest. If the growth exceeds the maximum of
  // the return type, returns that maximum. REQUIRES: series < series(), step < steps().
  [[nodiscard]] std::uint32_t increase(std::size_t series, std::size_t step) const noexcept;

 private:
  [[nodiscard]] std::size_t row(std::size_t step) const noexcept;

  std::size_t kept_;
  bool begun_ = false;
  std::size_t steps_ = 0;
  std::size_t next_ = 0;                            // index in rows_ at which the next step is stored
  std::vector<std::optional<std::uint64_t>> last_;  // the last total of each series; nullopt: no total yet
  std::vector<std::uint32_t> rows_;                 // `kept_` rows, each with one value for each series
};

}  // namespace weir::observe
