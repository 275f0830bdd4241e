#include "redis/prefetch/grant.hpp"

#include "weir/limit/limiter.hpp"
#include "weir/redis/shared_grants.hpp"

#include <algorithm>
#include <limits>
#include <variant>

namespace weir::redis {

namespace {

using limit::Cost;
using limit::Ticks;

// This host's clock may be slower than Redis's clock by one part in kPace (NTP slews by 1 in 2000).
constexpr int kPace = 1024;

// Returns the end of the window that contains `at`. For SlidingLog, returns the end of the bucket that
// contains `at`.
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

std::uint64_t interval_of(const limit::GcraCore& gcra_core) noexcept {
  return static_cast<std::uint64_t>(gcra_core.rate().period.count());
}

}  // namespace

bool can_be_leased(const limit::Limiter& limiter) noexcept {
  if (const auto* log = std::get_if<limit::SlidingLog>(&limiter)) return !log->is_exact();
  return std::holds_alternative<limit::TokenBucket>(limiter) ||
         std::holds_alternative<limit::Gcra>(limiter) ||
         std::holds_alternative<limit::FixedWindow>(limiter) ||
         std::holds_alternative<limit::SlidingWindow>(limiter);
}

Grant::Grant(std::uint32_t number, const limit::Charge& charge, const RoundTrip& trip,
             base::Duration reset_after) noexcept
    : number_(number),
      left_(charge.cost),
      gcra_core_(limit::gcra_core(*charge.limiter)),
      trip_(trip),
      until_(std::visit(WindowEnd{trip.charged_at}, *charge.limiter)),
      debited_(trip.charged_at),
      reset_after_(reset_after) {
  if (gcra_core_ != nullptr) end_ = trip.begin + Ticks{left_} * interval_of(*gcra_core_);
}

// Returns the latest time that Redis's clock may show at this host's time `now`: in ticks for a token bucket
// or GCRA, in microseconds for a window.
Ticks Grant::latest(Time now) const noexcept {
  const auto passed = std::chrono::ceil<base::Duration>(std::max(now - trip_.sent, Time::duration(0)));
  const auto at = trip_.charged_at + passed + passed / kPace + base::Duration(1);
  return gcra_core_ != nullptr ? gcra_core_->ticks(at)
                               : static_cast<std::uint64_t>(at.time_since_epoch().count());
}

Cost Grant::ready(Time now) const noexcept {
  if (left_ == 0) return 0;
  const auto at = latest(now);
  if (gcra_core_ == nullptr)
    return at < static_cast<std::uint64_t>(until_.time_since_epoch().count()) ? left_ : 0;
  if (end_ <= at) return 0;
  const Ticks ahead = end_ - at;
  // Divides in 64 bits if `ahead` fits, which is nearly always so. A division of 64 bits is ten times as fast
  // as one of 128 bits.
  const bool fits = ahead <= std::numeric_limits<std::uint64_t>::max();
  const Ticks slots =
      fits ? static_cast<std::uint64_t>(ahead) / interval_of(*gcra_core_) : ahead / interval_of(*gcra_core_);
  return static_cast<Cost>(std::min(Ticks{left_}, slots));
}

void Grant::spend(Cost cost, Time now, limit::Outcome& outcome) noexcept {
  const auto ready_now = ready(now);
  expired_ += left_ - ready_now;
  left_ = ready_now;
  outcome.prefetched = true;
  outcome.debited_at = debited_;
  if (gcra_core_ != nullptr) outcome.slots_begin = begin();
  left_ -= cost;
}

bool Grant::put_back(const limit::Charge& charge, const limit::Outcome& outcome) noexcept {
  if (number_ == 0 || outcome.debited_at < debited_) return false;
  if (gcra_core_ == nullptr) {
    if (std::visit(WindowEnd{outcome.debited_at}, *charge.limiter) != until_) return false;
    left_ += charge.cost;
    return true;
  }
  const Ticks first = outcome.slots_begin, length = Ticks{charge.cost} * interval_of(*gcra_core_);
  if (first != end_ && first + length != begin()) return false;
  if (first == end_) end_ += length;
  left_ += charge.cost;
  return true;
}

std::optional<Grant> Grant::grant_for_spent(std::uint32_t number, const limit::Charge& charge,
                                            const limit::Outcome& outcome) const noexcept {
  if (number_ == 0 || gcra_core_ == nullptr || outcome.debited_at < debited_) return std::nullopt;
  RoundTrip trip = trip_;
  trip.begin = outcome.slots_begin;
  Grant grant(number, charge, trip, reset_after_);
  grant.debited_ = outcome.debited_at;
  return grant;
}

// Keeps the round trip of this grant, not that of `other`. This grant is older, so its estimate of Redis's
// clock allows for a greater error.
bool Grant::merge(const Grant& other) noexcept {
  if (number_ == 0 || gcra_core_ != nullptr || other.gcra_core_ != nullptr || until_ != other.until_)
    return false;
  left_ += other.left_;
  debited_ = std::min(debited_, other.debited_);
  return true;
}

Ticks Grant::begin() const noexcept {
  return end_ - Ticks{left_} * interval_of(*gcra_core_);
}

// Returns the longest time until the key is unused (full) again. For a bucket, this is the time in which an
// empty bucket fills, because other weirs may have spent all units.
base::Duration Grant::reset_after(Time now) const noexcept {
  if (gcra_core_ != nullptr) return gcra_core_->window();
  const auto passed = std::chrono::floor<base::Duration>(std::max(now - trip_.received, Time::duration(0)));
  return std::max(reset_after_ - passed, base::Duration(0));
}

std::optional<Refund> Grant::refund_of_unspent(const limit::Charge& charge, Time now) const noexcept {
  Refund back{.charge = charge, .departure = debited_};
  back.charge.cost = left_;
  if (left_ == 0) return std::nullopt;
  if (gcra_core_ == nullptr) return back;
  if (end_ <= latest(now)) return std::nullopt;
  back.begin = begin();
  return back;
}

}  // namespace weir::redis
