// The increases of several series in each step of the last minutes, in constant memory. Plain values; the
// owner calls note() once a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::observe {

class History {
 public:
  // REQUIRES kept ≥ 1.
  History(std::size_t series, std::size_t kept);

  // Records the totals at the end of a step, one for each series. The first call only sets the starting
  // point. A total that fell has restarted from zero. REQUIRES as many totals as series.
  void note(std::span<const std::uint64_t> totals);

  // Replaces the series. `from` gives the old index of each; nullopt: a new series, without increases so far.
  // Its total is taken at the next note().
  void remap(std::span<const std::optional<std::size_t>> from);

  [[nodiscard]] std::size_t series() const noexcept { return last_.size(); }
  // Returns the number of known steps, at most `kept`.
  [[nodiscard]] std::size_t steps() const noexcept { return steps_; }
  // Returns the increase in a step; step 0 is the oldest. An increase beyond the type's range is clamped.
  // REQUIRES series < series(), step < steps().
  [[nodiscard]] std::uint32_t increase(std::size_t series, std::size_t step) const noexcept;

 private:
  [[nodiscard]] std::size_t row(std::size_t step) const noexcept;

  std::size_t kept_;
  bool begun_ = false;
  std::size_t steps_ = 0;
  std::size_t next_ = 0;                            // the row of the next step
  std::vector<std::optional<std::uint64_t>> last_;  // last totals; nullopt: none yet
  std::vector<std::uint32_t> rows_;                 // kept_ rows of series() values
};

}  // namespace weir::observe
