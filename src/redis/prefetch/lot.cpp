#include "redis/prefetch/lot.hpp"

#include "weir/limit/limiter.hpp"
#include "weir/redis/unit_leases.hpp"

#include <algorithm>
#include <limits>
#include <variant>

namespace weir::redis {

namespace {

using limit::Cost;
using limit::Ticks;

// This host's clock may be slower than Redis's by one part in kPace (NTP slews by 1 in 2000).
constexpr int kPace = 1024;

// Returns the end of the window or mark that contains an instant.
struct WindowEnd {
  base::TimePoint at;

  base::TimePoint operator()(const limit::FixedWindow& l) const noexcept { return l.window_at(at).end; }
  base::TimePoint operator()(const limit::SlidingWindow& l) const noexcept {
    const auto period = l.rate().period;
    return at - base::Duration(at.time_since_epoch().count() % period.count()) + period;
  }
  base::TimePoint operator()(const limit::SlidingLog& l) const noexcept {
    return l.start_of(l.mark_of(at) + 1);
  }
  template <class L>
  base::TimePoint operator()(const L&) const noexcept {
    return {};
  }
};

std::uint64_t interval_of(const limit::Spacing& spacing) noexcept {
  return static_cast<std::uint64_t>(spacing.rate().period.count());
}

}  // namespace

bool can_be_leased(const limit::Limiter& limiter) noexcept {
  if (const auto* log = std::get_if<limit::SlidingLog>(&limiter)) return !log->is_exact();
  return std::holds_alternative<limit::TokenBucket>(limiter) ||
         std::holds_alternative<limit::Gcra>(limiter) ||
         std::holds_alternative<limit::FixedWindow>(limiter) ||
         std::holds_alternative<limit::SlidingWindow>(limiter);
}

Lot::Lot(std::uint32_t number, const limit::Charge& line, const Trip& trip, base::Duration whole) noexcept
    : number_(number),
      left_(line.cost),
      spacing_(limit::spacing(*line.limiter)),
      trip_(trip),
      until_(std::visit(WindowEnd{trip.charged_at}, *line.limiter)),
      debited_(trip.charged_at),
      whole_(whole) {
  if (spacing_ != nullptr) end_ = trip.begin + Ticks{left_} * interval_of(*spacing_);
}

// Returns the latest time that Redis's clock may show: in ticks for a bucket, in microseconds for a window.
Ticks Lot::latest(Time now) const noexcept {
  const auto passed = std::chrono::ceil<base::Duration>(std::max(now - trip_.sent, Time::duration(0)));
  const auto at = trip_.charged_at + passed + passed / kPace + base::Duration(1);
  return spacing_ != nullptr ? spacing_->ticks(at)
                             : static_cast<std::uint64_t>(at.time_since_epoch().count());
}

Cost Lot::ready(Time now) const noexcept {
  if (left_ == 0) return 0;
  const auto at = latest(now);
  if (spacing_ == nullptr)
    return at < static_cast<std::uint64_t>(until_.time_since_epoch().count()) ? left_ : 0;
  if (end_ <= at) return 0;
  const Ticks ahead = end_ - at;
  // A 64-bit division is ten times as fast, if the value fits.
  const bool fits = ahead <= std::numeric_limits<std::uint64_t>::max();
  const Ticks slots =
      fits ? static_cast<std::uint64_t>(ahead) / interval_of(*spacing_) : ahead / interval_of(*spacing_);
  return static_cast<Cost>(std::min(Ticks{left_}, slots));
}

void Lot::spend(Cost cost, Time now, limit::Outcome& outcome) noexcept {
  const auto ready_now = ready(now);
  gone_ += left_ - ready_now;
  left_ = ready_now;
  outcome.in_advance = true;
  outcome.debited_at = debited_;
  if (spacing_ != nullptr) outcome.slots_begin = begin();
  left_ -= cost;
}

bool Lot::put_back(const limit::Charge& line, const limit::Outcome& outcome) noexcept {
  if (number_ == 0 || outcome.debited_at < debited_) return false;
  if (spacing_ == nullptr) {
    if (std::visit(WindowEnd{outcome.debited_at}, *line.limiter) != until_) return false;
    left_ += line.cost;
    return true;
  }
  const Ticks first = outcome.slots_begin, length = Ticks{line.cost} * interval_of(*spacing_);
  if (first != end_ && first + length != begin()) return false;
  if (first == end_) end_ += length;
  left_ += line.cost;
  return true;
}

std::optional<Lot> Lot::apart(std::uint32_t number, const limit::Charge& line,
                              const limit::Outcome& outcome) const noexcept {
  if (number_ == 0 || spacing_ == nullptr || outcome.debited_at < debited_) return std::nullopt;
  Trip trip = trip_;
  trip.begin = outcome.slots_begin;
  Lot lot(number, line, trip, whole_);
  lot.debited_ = outcome.debited_at;
  return lot;
}

// Keeps the older reading of Redis's clock, which allows for the greater error.
bool Lot::merge(const Lot& other) noexcept {
  if (number_ == 0 || spacing_ != nullptr || other.spacing_ != nullptr || until_ != other.until_)
    return false;
  left_ += other.left_;
  debited_ = std::min(debited_, other.debited_);
  return true;
}

Ticks Lot::begin() const noexcept {
  return end_ - Ticks{left_} * interval_of(*spacing_);
}

// In a bucket, others may have charged everything.
base::Duration Lot::whole_after(Time now) const noexcept {
  if (spacing_ != nullptr) return spacing_->window();
  const auto passed = std::chrono::floor<base::Duration>(std::max(now - trip_.received, Time::duration(0)));
  return std::max(whole_ - passed, base::Duration(0));
}

std::optional<Refund> Lot::return_of(const limit::Charge& line, Time now) const noexcept {
  Refund back{.charge = line, .departure = debited_};
  back.charge.cost = left_;
  if (left_ == 0) return std::nullopt;
  if (spacing_ == nullptr) return back;
  if (end_ <= latest(now)) return std::nullopt;
  back.begin = begin();
  return back;
}

}  // namespace weir::redis
