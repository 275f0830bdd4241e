#include "weir/observe/surge.hpp"

#include <algorithm>

namespace weir::observe {

// Returns how long events must not be too frequent before a surge ends: `lasting` or the period of `above`,
// whichever is longer. If a surge ended sooner, a new one would often follow. A period above kMost counts as
// kMost, so that an alert on a daily limit does not wait a day.
base::Duration Surge::calm() const noexcept {
  constexpr base::Duration kMost{60'000'000};
  return std::max(settings_.lasting, std::min(settings_.above.period, kMost));
}

void Surge::count(std::uint64_t total, base::TimePoint now) {
  if (total_) grown_ += total >= *total_ ? total - *total_ : total;
  total_ = total;
  const base::Duration apart = settings_.above.period / kMarks;
  if (marks_.empty() || now - marks_.back().at >= apart) marks_.push_back({now, grown_});
  while (marks_.size() > 1 && now - marks_[1].at >= settings_.above.period) marks_.pop_front();
  seen_ = grown_ - marks_.front().grown;
}

Surge::Change Surge::turn(base::TimePoint now) {
  other_since_.reset();
  reported_at_ = now;
  if (firing()) {
    firing_since_.reset();
    return Change::Ended;
  }
  firing_since_ = began_ = now;
  return Change::Began;
}

void Surge::go_on(bool firing, base::TimePoint since, std::uint64_t seen, base::TimePoint now) noexcept {
  began_ = since;
  if (firing) firing_since_ = since;
  reported_at_ = now;
  seen_ = seen;
}

Surge::Change Surge::note(std::uint64_t total, base::TimePoint now) {
  count(total, now);
  const bool above = seen_ > settings_.above.count;
  if (above == firing()) {
    other_since_.reset();
    if (!firing() || settings_.repeat.count() == 0 || now - reported_at_ < settings_.repeat)
      return Change::None;
    reported_at_ = now;
    return Change::Continues;
  }
  if (!other_since_) other_since_ = now;
  const base::Duration wanted = firing() ? calm() : settings_.lasting;
  return now - *other_since_ >= wanted ? turn(now) : Change::None;
}

}  // namespace weir::observe
