// A grant: units of one key that weir has debited in Redis in advance, with the time until which each unit
// may be spent. Pure: plain values, and time as an argument. Several weirs may hold units of one key; they do
// not know of each other.
//
// Why the limit holds. A unit is debited at t, by Redis's clock, and spent at t' >= t. Imagine one exact
// limiter for all weirs, which counts only units that are spent. A unit may be spent only if this exact
// limiter would admit the unit at t'.
//
// Windows (fixed, sliding by weight, sliding with buckets). For sliding with buckets, "window" below means
// one bucket. A unit is spent in the window in which it was debited, or never.
// * Redis's count is within the limit at every instant. The count was within the limit when Redis last
//   admitted a unit. As time passes, older windows weigh less.
// * The exact limiter counts the units that were spent by t', this unit included. All of these were debited
//   by t', in the window in which they were spent. So the exact limiter counts no more than Redis in any
//   window, and it admits the unit.
// An exact sliding log has windows of one microsecond. No unit can be spent later within its microsecond, so
// a rule with such a log takes no units in advance.
//
// Buckets (token bucket, GCRA). T is the time in which one unit refills, B the capacity, and TAT the
// theoretical arrival time. Each debited unit takes a slot [s, s + T) of virtual time, with s = max(TAT, t)
// and s + T <= t + B T. Slots are disjoint. A unit is spent at t' <= s, or never.
// * Take any interval [a, b]. The slots of the units spent in it begin at a or later, and end by b + B T. So
//   there are at most B + (b - a) / T such units.
// * A bucket admits exactly the sequences of units that keep this bound for all intervals. Proof: TAT_j is
//   the maximum of (t_i + T x (units from i to j)) over i <= j, and it is at most t_j + B T.
//
//    now          E - left T                E
//     |  expired      |--T--|--T--|--T--|--T--|      E: the end of the last slot
//
// E is also the TAT after the debit. A grant holds the last `left` slots. The first of these is spent first.
// So units of a full bucket expire as fast as the bucket refills. Units of an empty bucket can be spent until
// time reaches their slots.
//
// Refunds of unspent units. In a window, Redis subtracts the units from its count; no other unit depends on
// them. In a bucket, Redis gets back exactly the same slots.
// * If other weirs have later slots, the refunded slots become a gap in Redis (gaps.lua). The other weirs'
//   slots do not move.
// * The next charge takes slots in the first gap that is large enough and not in the past. These slots are
//   disjoint from all others, and s >= t. Also s + T <= t + B T, because a charge at an earlier time than t
//   has taken the same slots. So the proof above holds for these slots too.
// * Redis does not take back slots for which other weirs may have been charged, too. These are slots debited
//   before its present state began (an earlier state was lost), and slots later than its TAT. One case
//   remains open: a promoted replica has missed a debit, and other weirs were charged for later slots. In
//   that case Redis cannot know that two weirs were charged for the missed slots.
// * weir admits less than the limit while units are held. It also admits less if a gap passes before a charge
//   fills it.
//
// Units that requests put back. If another rule refuses a request, or no server gets it, the request's units
// are put back with their slots. The units join a grant whose slots they adjoin, or form a new grant if the
// key does not have too many grants. Otherwise the units are refunded in Redis. Units that the request itself
// charged in Redis are also refunded there. No slot ever moves.
//
// Clocks. The proof assumes that Redis's clock never steps back. If the clock did, a debit in a lost state
// could seem later than the start of the present state. Redis reads its clock at an unknown instant between
// `sent` and `received`. The code assumes the worst case in both directions: Redis may have read its clock at
// `sent`, and this host's clock may be slow by one part in 1024.
#pragma once

#include "redis/scripts/charge_numbers.hpp"

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/gcra_core.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace weir::redis {

// The round trip of a charge: when weir sent the command, when weir received the reply, and when Redis made
// the charge.
struct RoundTrip {
  std::chrono::steady_clock::time_point sent, received;
  base::TimePoint charged_at;
  limit::Ticks begin = 0;  // for a bucket: the start of the charge's time slots, never before charged_at
};

class Grant {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Grant() = default;  // an empty grant that belongs to no key
  // `number`: identifies the grant; not 0. `reset_after`: the time from trip.received until the key has all
  // its units again. REQUIRES: can_be_leased(*charge.limiter); `trip` is the round trip that charged
  // charge.cost.
  Grant(std::uint32_t number, const limit::Charge& charge, const RoundTrip& trip,
        base::Duration reset_after) noexcept;

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }  // 0: an empty grant
  [[nodiscard]] limit::Cost left() const noexcept { return left_; }
  // Returns the number of units that expired without being spent.
  [[nodiscard]] limit::Cost expired() const noexcept { return expired_; }
  [[nodiscard]] Time received() const noexcept { return trip_.received; }

  // Returns how many units may be spent at `now`.
  [[nodiscard]] limit::Cost ready(Time now) const noexcept;
  // Spends `cost` units. Sets the members of `outcome` that put_back() and a refund will need. REQUIRES:
  // ready(now) ≥ cost.
  void spend(limit::Cost cost, Time now, limit::Outcome& outcome) noexcept;
  // Puts back the spent units of a request that was not forwarded. Returns false if this grant is empty or
  // cannot take the units:
  // * The units belong to another window, or their time slots do not adjoin the slots of this grant.
  // * Redis debited them earlier than the first units of this grant. The key may have been reset in between.
  [[nodiscard]] bool put_back(const limit::Charge& charge, const limit::Outcome& outcome) noexcept;
  // Returns a new grant with spent units of a bucket that no grant takes back. The new grant copies this
  // grant's estimate of Redis's clock. Returns nullopt if this grant is empty or of a window, or if Redis
  // debited the units earlier than the first units of this grant.
  [[nodiscard]] std::optional<Grant> grant_for_spent(std::uint32_t number, const limit::Charge& charge,
                                                     const limit::Outcome& outcome) const noexcept;
  // Adds the units of `other`, a grant (prefetched units) of the same window, and returns true. Returns false
  // for a bucket or for another window.
  [[nodiscard]] bool merge(const Grant& other) noexcept;

  // For buckets: returns true if this grant's last time slot ends later than the last one of `other`.
  [[nodiscard]] bool ends_later_than(const Grant& other) const noexcept { return end_ > other.end_; }

  // Returns an upper bound of the time until the key has all its units again.
  [[nodiscard]] base::Duration reset_after(Time now) const noexcept;
  // Returns Redis's time at `now`. Uses the same estimate of Redis's clock as reset_after().
  [[nodiscard]] base::TimePoint redis_now(Time now) const noexcept {
    const auto passed = std::max(now - trip_.received, Time::duration(0));
    return trip_.charged_at + std::chrono::floor<base::Duration>(passed);
  }
  // Returns the refund that gives the unspent units back to Redis; nullopt if Redis would not accept it.
  // `charge`: a charge of the key.
  [[nodiscard]] std::optional<Refund> refund_of_unspent(const limit::Charge& charge, Time now) const noexcept;

 private:
  [[nodiscard]] limit::Ticks latest(Time now) const noexcept;
  [[nodiscard]] limit::Ticks begin() const noexcept;  // for a bucket: the start of the first time slot

  std::uint32_t number_ = 0;
  limit::Cost left_ = 0;
  limit::Cost expired_ = 0;
  const limit::GcraCore* gcra_core_ = nullptr;  // the core of the grant's limiter; null for a window
  RoundTrip trip_{};
  base::TimePoint until_{};    // for a window: the end of the window
  limit::Ticks end_ = 0;       // for a bucket: the end of the last time slot
  base::TimePoint debited_{};  // when Redis debited the first units, by Redis's clock
  base::Duration reset_after_{};
};

}  // namespace weir::redis
