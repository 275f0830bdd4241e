// The limiters that count in windows: fixed windows, and sliding windows, which also count a part of the
// previous window.
//
// A cell (the state of a key) never returns to an earlier window. Workers read the clock before they lock, so
// `now` may be before the current window of a cell. In that case the limiter answers as at the start of the
// cell's window.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/calendar.hpp"
#include "weir/limit/cell.hpp"
#include "weir/limit/rate.hpp"

#include <cstdint>
#include <memory>

namespace weir::limit {

inline constexpr std::uint64_t kMostCount = 0xffff'ffff;  // maximum count of a window: 32 bits

// Admits a request if the count of the current window plus the cost is within the limit. Windows are aligned
// to the epoch, or to the local days, weeks or months of a calendar. The fixed window is the simplest and
// least precise algorithm: around the end of a window, it can admit twice the limit.
//
// State: word 0 is the end of the window (µs), word 1 its count. If the count is 0 or the window is over, the
// key is fresh.
class FixedWindow {
 public:
  // Add new values only at the end, because snapshots contain the values as numbers.
  enum class Align : std::uint8_t { Epoch, Day, Month, Week };

  [[nodiscard]] static base::Result<FixedWindow> make(Rate limit);
  // Makes windows that are days, weeks or months of a calendar, with the limit `count`. All limiters share
  // the calendar. REQUIRES: `calendar` is not null; `align` is not Epoch.
  [[nodiscard]] static base::Result<FixedWindow> make(std::uint64_t count, Align align,
                                                      std::shared_ptr<const Calendar> calendar);

  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  // Refunds a charge if the cell (the key's state) is still in the window of that charge.
  [[nodiscard]] Cell refund(const Cell& cell, base::TimePoint charged_at, Cost cost) const noexcept;
  // Raises the cost of an earlier charge from `reserved` to `actual` (limit/settle.hpp).
  [[nodiscard]] Cell raise_cost(const Cell& cell, base::TimePoint charged_at, Cost reserved,
                                Cost actual) const noexcept;
  // Returns the key's state after a charge that this limiter would reject, but that the deciding limiter of
  // the pair admits (limit/pair.hpp).
  [[nodiscard]] Cell charge_over_limit(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  [[nodiscard]] base::TimePoint drained_at(const Cell& cell) const noexcept;
  // Returns a state with the count of `cell`, in the window that contains the last microsecond before
  // `drained_at`.
  [[nodiscard]] Cell carry_over(const Cell& cell, base::TimePoint drained_at) const noexcept;

  // Returns the same windows with another limit.
  [[nodiscard]] FixedWindow with_limit(std::uint64_t count) const {
    return {{count, rate_.period}, align_, calendar_};
  }

  [[nodiscard]] Interval window_at(base::TimePoint at) const noexcept;
  // Returns the limit and its period. For the windows of a calendar, the period is 1, 7 or 31 days.
  [[nodiscard]] const Rate& rate() const noexcept { return rate_; }
  [[nodiscard]] Align align() const noexcept { return align_; }
  [[nodiscard]] const Calendar* calendar() const noexcept { return calendar_.get(); }
  [[nodiscard]] std::uint64_t quota() const noexcept { return rate_.count; }
  [[nodiscard]] base::Duration window() const noexcept { return rate_.period; }
  friend bool operator==(const FixedWindow&, const FixedWindow&) = default;

 private:
  FixedWindow(Rate rate, Align align, std::shared_ptr<const Calendar> calendar) noexcept
      : rate_(rate), align_(align), calendar_(std::move(calendar)) {}

  Rate rate_;
  Align align_ = Align::Epoch;
  std::shared_ptr<const Calendar> calendar_;
};

// Admits a request while previous × overlap + current + cost ≤ limit. `overlap` is the part of the previous
// window that lies within one period before now. The sum approximates a log: it assumes that the requests of
// the previous window were evenly spread. Source: Cloudflare blog, "How we built rate limiting capable of
// scaling to millions of domains", 2017. Windows are aligned to the epoch.
//
//   |—— previous: 84 ——|—— current: 36 ——|       A quarter of the current window is over, so three quarters
//        |————— one period —————•                of the previous window count: 84 × ¾ + 36 = 99.
//
// Both sides of the comparison are multiplied by the period, so nothing is rounded.
//
// State: word 0 is the start of the current window (µs). Word 1 has the previous count in its high half and
// the current count in its low half.
class SlidingWindow {
 public:
  [[nodiscard]] static base::Result<SlidingWindow> make(Rate limit);
  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  // Refunds a charge if its window is the current or the previous window of the cell (the key's state).
  [[nodiscard]] Cell refund(const Cell& cell, base::TimePoint charged_at, Cost cost) const noexcept;
  // Raises the cost of an earlier charge from `reserved` to `actual` (limit/settle.hpp).
  [[nodiscard]] Cell raise_cost(const Cell& cell, base::TimePoint charged_at, Cost reserved,
                                Cost actual) const noexcept;
  // Returns the key's state after a charge that this limiter would reject, but that the deciding limiter of
  // the pair admits (limit/pair.hpp).
  [[nodiscard]] Cell charge_over_limit(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  [[nodiscard]] base::TimePoint drained_at(const Cell& cell) const noexcept;
  // Returns a state that counts the sum of both counts of `cell`, at most the limit, in one window. The sum
  // counts in full until `drained_at`.
  [[nodiscard]] Cell carry_over(const Cell& cell, base::TimePoint drained_at) const noexcept;
  // Converts a key's state so that the used part of the limit stays the same (limit/rescale.hpp).
  [[nodiscard]] Cell rescaled(const SlidingWindow& from, const Cell& cell,
                              base::TimePoint now) const noexcept;

  [[nodiscard]] const Rate& rate() const noexcept { return rate_; }
  [[nodiscard]] std::uint64_t quota() const noexcept { return rate_.count; }
  [[nodiscard]] base::Duration window() const noexcept { return 2 * rate_.period; }
  friend bool operator==(const SlidingWindow&, const SlidingWindow&) = default;

 private:
  struct Counts {
    std::uint64_t start, previous, current;  // start in µs
  };
  explicit SlidingWindow(Rate rate) noexcept : rate_(rate) {}
  [[nodiscard]] std::uint64_t period() const noexcept {
    return static_cast<std::uint64_t>(rate_.period.count());
  }
  [[nodiscard]] static Counts counts_of(const Cell& cell) noexcept;
  [[nodiscard]] static Cell cell_of(const Counts& counts) noexcept;
  [[nodiscard]] Counts counts_at(const Cell& cell, std::uint64_t at) const noexcept;
  // Returns the first instant (in µs, at or after `at`) at which `cost` fits. REQUIRES: cost ≤ the limit.
  [[nodiscard]] std::uint64_t fits_at(const Counts& counts, std::uint64_t at, Cost cost) const noexcept;
  [[nodiscard]] Cost remaining(const Counts& counts, std::uint64_t at) const noexcept;

  Rate rate_;
};

}  // namespace weir::limit
