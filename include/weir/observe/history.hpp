// What was counted in the last minutes: of some series, the increase in each step of time, in constant
// memory. Plain values; whoever owns it brings the time, one note() a step.
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

  // The totals at the end of a step, one a series. The first call only says where the counting begins. A
  // total that fell began anew. REQUIRES as many totals as series.
  void note(std::span<const std::uint64_t> totals);

  // Goes on with other series: `from` says for each which of the old ones it was; nullopt: a new one, which
  // stood still until now. Its total is taken with the next note().
  void remap(std::span<const std::optional<std::size_t>> from);

  [[nodiscard]] std::size_t series() const noexcept { return last_.size(); }
  // Steps that are known, at most `kept`.
  [[nodiscard]] std::size_t steps() const noexcept { return steps_; }
  // The increase in a step; 0 is the oldest. A step that nobody could count so far holds what fits.
  // REQUIRES series < series(), step < steps().
  [[nodiscard]] std::uint32_t increase(std::size_t series, std::size_t step) const noexcept;

 private:
  [[nodiscard]] std::size_t row(std::size_t step) const noexcept;

  std::size_t kept_;
  bool begun_ = false;
  std::size_t steps_ = 0;
  std::size_t next_ = 0;                            // the row that the next step takes
  std::vector<std::optional<std::uint64_t>> last_;  // totals as they were noted; nullopt: not yet
  std::vector<std::uint32_t> rows_;                 // kept_ of them, of series() each
};

}  // namespace weir::observe
