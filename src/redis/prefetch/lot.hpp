// One lease: units of a key that Redis has debited in advance, and when each of them may be spent. Pure:
// plain values, and time as an argument. Several weirs hold such units of one key and know nothing of each
// other's.
//
// Why nobody is admitted beyond the limit. A unit debited at t, by Redis's clock, and spent at t' >= t has to
// be one that a single limiter, which saw but the requests that were admitted, would have admitted at t'.
//
//  Windows (fixed, sliding by weight, sliding with buckets: a "window" is then one of its marks). A unit is
//  spent in the window that it was debited in, or never. What Redis counts is within the limit at every
//  instant: it was when it last admitted something, and as time goes on older windows weigh less. What the
//  exact limiter has admitted of a window by t', this unit included, was debited in that window by t'; so in
//  no window does it count more than Redis, and it admits. (The mark of a log is one microsecond, in which
//  nothing can be spent later: a log cannot be leased.)
//
//  Buckets (token bucket, GCRA). Each unit debited takes a slot [s, s + T) of virtual time, s = max(TAT, t),
//  and s + T <= t + B T, B being the capacity. Slots are disjoint. A unit is spent at t' <= s, or never. Take
//  any interval [a, b]: the slots of what is admitted in it begin at a or later, and end by b + B T; so there
//  are at most B + (b - a) / T of them. That, for all intervals, is what a bucket admits and nothing else:
//  unrolled, TAT_j = max over i <= j of (t_i + T x (units from i to j)), and it is at most t_j + B T.
//
//      now          E - left T                E = the end of its slots: the TAT, when it was debited there
//       |  expired      |--T--|--T--|--T--|--T--|        the stock is the last `left` slots, spent from the
//       left
//
//  So the units of a bucket that stands full run out as fast as it refills, and those of an empty one keep
//  until time has come to where they stand.
//
//  Giving back. To a window: it is counted there no more, and nobody's slot depends on it. To a bucket: the
//  very slots, wherever they stand. Where others are behind them they leave a gap in Redis (gaps.lua), and
//  those others stay where they are. Whoever is charged next has its slots in the first gap that has room for
//  them, of which time has not passed: disjoint from all others', s >= t, and s + T <= t + B T still, for
//  they end where somebody's have ended who was charged before t. So what was said above holds of them too.
//  Nobody gives back what others may have been charged for: slots debited before Redis's state began (it was
//  lost), or behind its TAT, are taken back by none. (But where a replica is promoted that has not heard of a
//  debit, and others have been charged beyond it, it is not known that they have those slots.) What is held,
//  or in gaps that time passes before they are filled, is under-admission.
//
//  What came to nothing (the request was refused by another rule, or reached no server) goes back likewise,
//  its own slots and no others: here, as part of a lot that they adjoin or as one of their own, while there
//  is room, else to Redis. So does what a trip has charged. Nobody's slots ever move.
//
//  Clocks. All this is while Redis's clock does not go back: where it does, debits that were lost may seem to
//  be of the state that came after them. Redis read its clock between `sent` and `received`. Units are spent
//  only if they may be were it read at `sent`, and were this host's clock slow by one part in 1024.
#pragma once

#include "redis/scripts/line.hpp"

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/spacing.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace weir::redis {

// A charge in Redis, and where that has put it.
struct Trip {
  std::chrono::steady_clock::time_point sent, received;
  base::TimePoint charged_at;
  limit::Ticks begin = 0;  // of a bucket: where its slots begin, at charged_at or later
};

class Lot {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Lot() = default;  // of nothing
  // `number` is not 0. `whole`: from trip.received until the key is fresh again. REQUIRES
  // can_be_leased(*line.limiter), and that the trip has charged line.cost.
  Lot(std::uint32_t number, const limit::Charge& line, const Trip& trip, base::Duration whole) noexcept;

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }  // 0: of nothing
  [[nodiscard]] limit::Cost left() const noexcept { return left_; }
  [[nodiscard]] limit::Cost gone() const noexcept { return gone_; }  // ran out before something was spent
  [[nodiscard]] Time received() const noexcept { return trip_.received; }

  // How many units may be spent now.
  [[nodiscard]] limit::Cost ready(Time now) const noexcept;
  // REQUIRES ready(now) ≥ cost. The outcome is told what put_back and a refund have to know.
  void spend(limit::Cost cost, Time now, limit::Outcome& outcome) noexcept;
  // What was spent so and came to nothing. False: it does not adjoin what is left here, or was debited before
  // it, and so before what may have become of the key meanwhile.
  [[nodiscard]] bool put_back(const limit::Charge& line, const limit::Outcome& outcome) noexcept;
  // The same of a bucket, as a lot of its own that goes by this one's reading of Redis's clock. None of such
  // that were debited before this one, nor of a window.
  [[nodiscard]] std::optional<Lot> apart(std::uint32_t number, const limit::Charge& line,
                                         const limit::Outcome& outcome) const noexcept;
  // Takes in another of the same window. False: it is of none, or of another one.
  [[nodiscard]] bool merge(const Lot& other) noexcept;

  // Of buckets: whether its slots end behind the other's.
  [[nodiscard]] bool stands_behind(const Lot& other) const noexcept { return end_ > other.end_; }

  // The least time from now in which the key is sure to be fresh again.
  [[nodiscard]] base::Duration whole_after(Time now) const noexcept;
  // Returns Redis's time now, as of the reading that whole_after goes by: the two together are one instant.
  [[nodiscard]] base::TimePoint now_there(Time now) const noexcept {
    const auto passed = std::max(now - trip_.received, Time::duration(0));
    return trip_.charged_at + std::chrono::floor<base::Duration>(passed);
  }
  // What gives back what is left; nullopt where Redis would not have it. `line` is the key's.
  [[nodiscard]] std::optional<Refund> return_of(const limit::Charge& line, Time now) const noexcept;

 private:
  [[nodiscard]] limit::Ticks latest(Time now) const noexcept;
  [[nodiscard]] limit::Ticks begin() const noexcept;  // of a bucket: of its slots

  std::uint32_t number_ = 0;
  limit::Cost left_ = 0;
  limit::Cost gone_ = 0;
  const limit::Spacing* spacing_ = nullptr;  // of a bucket
  Trip trip_{};
  base::TimePoint until_{};    // of a window
  limit::Ticks end_ = 0;       // of a bucket: where its slots end
  base::TimePoint debited_{};  // the first of them
  base::Duration whole_{};
};

}  // namespace weir::redis
