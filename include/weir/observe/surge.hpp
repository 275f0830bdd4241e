// Detects that something happens more often than it should, which an alert watches. A step over plain values,
// with the time as an argument: totals go in, changes come out.
//
//   quiet ── more than `above` within its period, for as long as `lasting` ──► firing ── repeated every
//     ▲                                                                          │        `repeat`
//     └──────────── no more than that, for `lasting` and at least calm() ────────┘
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/rate.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace weir::observe {

class Surge {
 public:
  struct Settings {
    limit::Rate above;          // more than `count` within any such period
    base::Duration lasting{0};  // how long that must last
    base::Duration repeat{0};   // interval of repeated reports while it lasts; 0: never
    friend bool operator==(const Settings&, const Settings&) = default;
  };
  enum class Change : std::uint8_t { None, Began, GoesOn, Ended };

  explicit Surge(const Settings& settings) noexcept : settings_(settings) {}

  // Notes the total number of events. The first call only sets the starting point. A total that fell has
  // restarted from zero. REQUIRES that `now` does not decrease. One call a second is often enough.
  Change note(std::uint64_t total, base::TimePoint now);

  // Takes over the state of another Surge. Counting restarts now, so a firing surge ends once it has been
  // calm.
  void go_on(bool firing, base::TimePoint since, std::uint64_t seen, base::TimePoint now) noexcept;

  [[nodiscard]] bool firing() const noexcept { return firing_since_.has_value(); }
  // Returns since when it fires, or fired last; the epoch: never.
  [[nodiscard]] base::TimePoint since() const noexcept { return began_; }
  // Returns the number of events within the last period. Events at its far end count for up to 1/60 of the
  // period longer.
  [[nodiscard]] std::uint64_t seen() const noexcept { return seen_; }
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }

 private:
  static constexpr std::size_t kMarks = 60;  // parts of a period

  struct Mark {
    base::TimePoint at;
    std::uint64_t grown;
  };

  void count(std::uint64_t total, base::TimePoint now);
  Change turn(base::TimePoint now);
  [[nodiscard]] base::Duration calm() const noexcept;

  Settings settings_;
  std::optional<std::uint64_t> total_;  // the last total
  std::uint64_t grown_ = 0;             // events since the first call
  std::deque<Mark> marks_;              // at most kMarks + 1; the first is a period old or older
  std::uint64_t seen_ = 0;
  std::optional<base::TimePoint> other_since_;  // since when the state contradicts `firing`
  std::optional<base::TimePoint> firing_since_;
  base::TimePoint began_{};
  base::TimePoint said_{};
};

}  // namespace weir::observe
