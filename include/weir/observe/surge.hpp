// Whether something happens more often than it should: what an alert watches. A step over plain values, with
// the time as an argument; total after total goes in, and what changed comes out.
//
//   quiet ── more than `above` within its period, for as long as `lasting` ──► firing ── said again each
//     ▲                                                                          │        `repeat`
//     └──────────── no more than that, for `lasting` and at least a calm ────────┘
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
    limit::Rate above;          // more than so many within any such period
    base::Duration lasting{0};  // how long that has to go on
    base::Duration repeat{0};   // how often it is said again while it does; 0: never
    friend bool operator==(const Settings&, const Settings&) = default;
  };
  enum class Change : std::uint8_t { None, Began, GoesOn, Ended };

  explicit Surge(const Settings& settings) noexcept : settings_(settings) {}

  // How often it has happened by now. The first call only says where the counting begins; a total that fell
  // began anew. REQUIRES that `now` does not go back; a second apart is often enough.
  Change note(std::uint64_t total, base::TimePoint now);

  // Goes on as another one of the same stood: counted is anew from now on, so one that fires has ended once
  // it has been calm.
  void go_on(bool firing, base::TimePoint since, std::uint64_t seen, base::TimePoint now) noexcept;

  [[nodiscard]] bool firing() const noexcept { return firing_since_.has_value(); }
  // Since when it fires, or fired last; the epoch: never.
  [[nodiscard]] base::TimePoint since() const noexcept { return began_; }
  // How often it has happened within the last period; what lies at its far end counts up to a 60th longer.
  [[nodiscard]] std::uint64_t seen() const noexcept { return seen_; }
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }

 private:
  static constexpr std::size_t kMarks = 60;  // that a period is divided by

  struct Mark {
    base::TimePoint at;
    std::uint64_t grown;
  };

  void count(std::uint64_t total, base::TimePoint now);
  Change turn(base::TimePoint now);
  [[nodiscard]] base::Duration calm() const noexcept;

  Settings settings_;
  std::optional<std::uint64_t> total_;  // as noted last
  std::uint64_t grown_ = 0;             // since the first call
  std::deque<Mark> marks_;              // at most kMarks + 1; the first is as old as the period or older
  std::uint64_t seen_ = 0;
  std::optional<base::TimePoint> other_since_;  // it is not as `firing` says
  std::optional<base::TimePoint> firing_since_;
  base::TimePoint began_{};
  base::TimePoint said_{};
};

}  // namespace weir::observe
