#include "limit/snapshot/time_shift.hpp"

#include "limit/algorithms/arithmetic.hpp"

#include <algorithm>
#include <chrono>
#include <type_traits>
#include <variant>

namespace weir::limit {

namespace {

std::uint64_t moved(std::uint64_t us, base::Duration by) noexcept {
  const auto length = static_cast<std::uint64_t>(std::chrono::abs(by).count());
  return by.count() < 0 ? beyond(us, length) : us + length;
}

std::uint64_t moved_mark(const SlidingLog& log, std::uint64_t mark, base::Duration by) noexcept {
  return log.mark_of(std::max(log.start_of(mark) + by, base::TimePoint{}));
}

struct ShiftCell {
  const Cell& cell;
  const TimeShift& shift;

  template <class L>
  Cell operator()(const L& limiter) const noexcept {
    if constexpr (requires { limiter.gcra_core(); }) {
      const auto length = Ticks{static_cast<std::uint64_t>(std::chrono::abs(shift.by).count())} *
                          limiter.gcra_core().rate().count;
      const Ticks tat = tat_of(cell);
      return cell_of(shift.by.count() < 0 ? beyond(tat, length) : tat + length);
    } else {
      return {{moved(cell.words[0], shift.by), cell.words[1]}};
    }
  }
  Cell operator()(const FixedWindow& limiter) const noexcept {
    const auto end = instant(moved(cell.words[0], shift.by));
    const auto aligned = limiter.window_at(shift.now).end;
    const bool near = end > shift.now && std::chrono::abs(aligned - end) <= std::chrono::abs(shift.by);
    return {{micros(near ? aligned : end), cell.words[1]}};
  }
  Cell operator()(const SlidingLog& limiter) const noexcept {
    return {{moved_mark(limiter, cell.words[0], shift.by), cell.words[1]}};
  }
  Cell operator()(const Concurrency&) const noexcept { return cell; }
  Cell operator()(const AdaptiveConcurrency&) const noexcept { return cell; }
};

// Returns when the saved key would drain if its cell belonged to the limiter that operator() receives.
struct DrainTime {
  const SavedKey& saved;

  template <class L>
  base::TimePoint operator()(const L& limiter) const noexcept {
    if (!saved.log.empty()) return {};
    if constexpr (requires { limiter.gcra_core(); })
      return limiter.gcra_core().instant(tat_of(saved.cell));
    else
      return limiter.drained_at(saved.cell);
  }
  base::TimePoint operator()(const SlidingLog& limiter) const noexcept {
    if (!saved.log.empty()) return limiter.expiry_of(saved.log.back().mark);
    return limiter.drained_at(saved.cell);
  }
  // The saved state may belong to another limiter. Read as a state of this bucket, it may need more refills
  // than a TimePoint can express. In that case, returns the epoch.
  base::TimePoint operator()(const SteppedBucket& limiter) const noexcept {
    constexpr Ticks kMost = std::uint64_t{1} << 61;
    const auto length = Ticks{saved.cell.words[1]} * micros(limiter.rate().period) / limiter.rate().count;
    return saved.log.empty() && length < kMost ? limiter.drained_at(saved.cell) : base::TimePoint{};
  }
  base::TimePoint operator()(const Concurrency&) const noexcept { return {}; }
  base::TimePoint operator()(const AdaptiveConcurrency&) const noexcept { return {}; }
};

const Limiter& limiter_of(const SavedKey& saved, const SavedRule& rule) noexcept {
  const auto distance = [&](const Limiter* limiter) {
    return std::chrono::abs(std::visit(DrainTime{saved}, *limiter) - saved.drained_at);
  };
  return **std::min_element(rule.limiters.begin(), rule.limiters.end(),
                            [&](const Limiter* a, const Limiter* b) { return distance(a) < distance(b); });
}

}  // namespace

base::TimePoint end_of_window(const FixedWindow& limiter, const Cell& cell, base::TimePoint at) noexcept {
  const auto end = limiter.window_at(at).end;
  const auto kept = instant(cell.words[0]);
  if (cell.words[1] == 0 || kept == end || kept <= at || kept - at > limiter.window()) return end;
  return limiter.window_at(kept - base::Duration{1}).end != kept ? kept : end;
}

Cell shifted(const Limiter& limiter, const Cell& cell, const TimeShift& shift) noexcept {
  if (shift.by.count() == 0 || cell == Cell{}) return cell;
  return std::visit(ShiftCell{cell, shift}, limiter);
}

void move(SavedKey& saved, const SavedRule& rule, const TimeShift& shift) noexcept {
  if (shift.by.count() == 0 || rule.limiters.empty()) return;
  const auto& limiter = limiter_of(saved, rule);
  if (!saved.log.empty()) {
    const auto* log = std::get_if<SlidingLog>(&limiter);
    if (log == nullptr) return;
    // Shifts the time steps (marks) of all entries by the same number, so their order and distances stay the
    // same. A step before 1970 becomes the first step of 1970.
    const auto newest = saved.log.back().mark;
    const auto moved_to = moved_mark(*log, newest, shift.by);
    for (auto& entry : saved.log) entry.mark = beyond(moved_to, newest - entry.mark);
    saved.drained_at = log->expiry_of(saved.log.back().mark);
    return;
  }
  saved.cell = shifted(limiter, saved.cell, shift);
  saved.drained_at = drained_at(limiter, saved.cell);
}

}  // namespace weir::limit
