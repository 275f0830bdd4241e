// Detects that events come more often than an alert allows. The input is the total number of events; the
// output is the beginning and end of a surge. Plain values, with the time as an argument.
//
//   quiet ── more than `above` within its period, for as long as `lasting` ──► firing ── repeated every
//     ▲                                                                          │        `repeat`
//     └──────── no more than `above`, for as long as calm() (surge.cpp) ─────────┘
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
    limit::Rate above;          // events are too frequent if more than `count` come within a period
    base::Duration lasting{0};  // how long events must be too frequent before the surge fires (is reported)
    base::Duration repeat{0};   // interval of repeated reports while the surge fires; 0: no repetition
    friend bool operator==(const Settings&, const Settings&) = default;
  };
  enum class Change : std::uint8_t { None, Began, Continues, Ended };

  explicit Surge(const Settings& settings) noexcept : settings_(settings) {}

  // Records the total number of events. The first call only stores the total, from which later events are
  // counted. If the total is lower than before, the counter has restarted from zero. REQUIRES: `now` does not
  // decrease. The owner should call this function once a second.
  Change note(std::uint64_t total, base::TimePoint now);

  // Continues the Surge of a previous process, whose state the arguments describe. This object does not know
  // the events of that process, so its count of events starts from zero. A firing surge thus ends after
  // calm(), unless events stay too frequent.
  void go_on(bool firing, base::TimePoint since, std::uint64_t seen, base::TimePoint now) noexcept;

  [[nodiscard]] bool firing() const noexcept { return firing_since_.has_value(); }
  // Returns the start of the present surge, or of the last surge if there is none at present; the epoch if
  // there was no surge.
  [[nodiscard]] base::TimePoint since() const noexcept { return began_; }
  // Returns the number of events within the last period. The counted period may be longer than the configured
  // one by up to 1/60.
  [[nodiscard]] std::uint64_t seen() const noexcept { return seen_; }
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }

 private:
  static constexpr std::size_t kMarks = 60;  // number of parts into which a period is divided

  struct Mark {
    base::TimePoint at;
    std::uint64_t grown;
  };

  void count(std::uint64_t total, base::TimePoint now);
  Change turn(base::TimePoint now);
  [[nodiscard]] base::Duration calm() const noexcept;

  Settings settings_;
  std::optional<std::uint64_t> total_;  // the last total that note() received
  std::uint64_t grown_ = 0;             // number of events since the first call
  // The totals at earlier times, at most kMarks + 1. The first total is at least one period old, except at
  // the start.
  std::deque<Mark> marks_;
  std::uint64_t seen_ = 0;
  // While the surge does not fire: since when events are too frequent. While it fires: since when events are
  // no longer too frequent. nullopt: neither.
  std::optional<base::TimePoint> other_since_;
  std::optional<base::TimePoint> firing_since_;
  base::TimePoint began_{};
  base::TimePoint reported_at_{};
};

}  // namespace weir::observe
