// The limiters that count in windows: fixed, and sliding by weight.
//
// Neither state ever moves back: asked at an instant before the window it counts in (workers read the clock
// before they take the lock), a key answers for the start of that window.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/calendar.hpp"
#include "weir/limit/cell.hpp"
#include "weir/limit/rate.hpp"

#include <cstdint>
#include <memory>

namespace weir::limit {

inline constexpr std::uint64_t kMostCount = 0xffff'ffff;  // of a window: what half a word holds

// Admits while what the current window has admitted and the cost are within the limit. Windows are aligned to
// the epoch, or to the local days or months of a calendar. The simplest count there is, and the roughest:
// twice the limit passes around a boundary.
//
// State: word 0 the end of the window (µs), word 1 its count. With no count, or a window that is over, fresh.
class FixedWindow {
 public:
  enum class Align : std::uint8_t { Epoch, Day, Month };

  [[nodiscard]] static base::Result<FixedWindow> make(Rate limit);
  // REQUIRES a calendar, and Day or Month; `count` a window. The calendar is shared, because each copy of a
  // limiter (one stays with the overflow cell) looks at it.
  [[nodiscard]] static base::Result<FixedWindow> make(std::uint64_t count, Align align,
                                                      std::shared_ptr<const Calendar> calendar);

  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  // Gives back what was charged at `charged_at`, if that is in the window the cell counts.
  [[nodiscard]] Cell refund(const Cell& cell, base::TimePoint charged_at, Cost cost) const noexcept;
  // A charge of `reserved` has turned out to be one of `actual`, which is more (limit/settle.hpp).
  [[nodiscard]] Cell owe(const Cell& cell, base::TimePoint charged_at, Cost reserved,
                         Cost actual) const noexcept;
  // A cost that does not fit, charged all the same (limit/pair.hpp).
  [[nodiscard]] Cell charge_beyond(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  [[nodiscard]] base::TimePoint drained_at(const Cell& cell) const noexcept;
  // As much counted, in the window of this limiter in which the other one would have been fresh again.
  [[nodiscard]] Cell carry_over(const Cell& cell, base::TimePoint drained_at) const noexcept;

  [[nodiscard]] Interval window_at(base::TimePoint at) const noexcept;
  [[nodiscard]] const Rate& rate() const noexcept { return rate_; }  // of a calendar: per 24 h, per 31 days
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

// Admits while previous × overlap + current + cost ≤ limit, where overlap is the part of the previous window
// that lies within one period before now ("How we built rate limiting capable of scaling to millions of
// domains", the Cloudflare blog, 2017). Two counts stand for a log, as if the previous window's requests had
// come evenly. Windows are aligned to the epoch.
//
//   |—— previous: 84 ——|—— current: 36 ——|       a quarter of the current window is gone, so three quarters
//   of
//        |————— one period —————•               the previous one count: 84 × ¾ + 36 = 99
//
// The comparison is of whole numbers, both sides times the period: never rounded.
//
// State: word 0 the start of the current window (µs), word 1 the counts: previous in the high half, current
// in the low one.
class SlidingWindow {
 public:
  [[nodiscard]] static base::Result<SlidingWindow> make(Rate limit);
  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  // Gives back what was charged at `charged_at`, in the window where it was counted.
  [[nodiscard]] Cell refund(const Cell& cell, base::TimePoint charged_at, Cost cost) const noexcept;
  // A charge of `reserved` has turned out to be one of `actual`, which is more (limit/settle.hpp).
  [[nodiscard]] Cell owe(const Cell& cell, base::TimePoint charged_at, Cost reserved,
                         Cost actual) const noexcept;
  // A cost that does not fit, charged all the same (limit/pair.hpp).
  [[nodiscard]] Cell charge_beyond(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  [[nodiscard]] base::TimePoint drained_at(const Cell& cell) const noexcept;
  // All that is counted, in so late a window of this limiter that it weighs in full until `drained_at`.
  [[nodiscard]] Cell carry_over(const Cell& cell, base::TimePoint drained_at) const noexcept;
  // As much of this limit used as the cell had of the other one's (limit/rescale.hpp).
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
  // The first instant from `at` on at which `cost` fits, at most the limit; in µs.
  [[nodiscard]] std::uint64_t fits_at(const Counts& counts, std::uint64_t at, Cost cost) const noexcept;
  [[nodiscard]] Cost remaining(const Counts& counts, std::uint64_t at) const noexcept;

  Rate rate_;
};

}  // namespace weir::limit
