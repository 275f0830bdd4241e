// A grant: units of one key that Redis has debited in advance, and when each unit may be spent. Pure: plain
// values, and time as an argument. Several weirs hold units of one key without knowledge of each other.
//
// Why the limit holds. A unit is debited at t, by Redis's clock, and spent at t' >= t. It may be spent only
// if one exact limiter would admit it at t'. That limiter sees only the admitted requests.
//
// Windows (fixed, sliding by weight, sliding with buckets). For sliding with buckets, a "window" below is
// one of the marks. A unit is spent in the window of its debit, or never.
// * Redis's count is within the limit at every instant. It was so at the last admission, and older windows
//   weigh less as time passes.
// * The exact limiter counts units of a window that it admitted by t', this one included. All of them were
//   debited in that window by t'. So it counts no more than Redis in any window, and it admits.
// A mark of a log is one microsecond long, and no unit can be spent later in it: a log cannot be leased.
//
// Buckets (token bucket, GCRA). Each debited unit takes a slot [s, s + T) of virtual time: s = max(TAT, t),
// and s + T <= t + B T, where B is the capacity. Slots are disjoint. A unit is spent at t' <= s, or never.
// * Take any interval [a, b]. The slots of units spent in it begin at a or later and end by b + B T. So
//   there are at most B + (b - a) / T of them.
// * A bucket admits exactly what keeps this bound for all intervals. Unrolled, TAT_j is the maximum of
//   (t_i + T x (units from i to j)) over i <= j, and it is at most t_j + B T.
//
//    now          E - left T                E
//     |  expired      |--T--|--T--|--T--|--T--|      E: the TAT after the debit, where its slots end
//
// The stock is the last `left` slots, and the first of them is spent first.
// So units of a full bucket expire as fast as the bucket refills. Units of an empty bucket keep until time
// reaches their slots.
//
// Giving back. A window simply counts the units no more; no other unit depends on them. A bucket gets
// exactly the slots back.
// * If others' slots are behind them, the slots become a gap in Redis (gaps.lua). The others' slots stay.
// * The next charge takes its slots in the first gap with room that time has not passed. They are disjoint
//   from all others, and s >= t. Also s + T <= t + B T, because an earlier charge's slots ended there. So
//   the proof above holds for them too.
// * Slots debited before Redis's state began (the state was lost), or behind its TAT, are not taken back.
//   Others may have been charged for them. One case remains: a promoted replica has missed a debit, and
//   others were charged beyond it. Then nobody knows that they have those slots.
// * Units that are held, or in gaps that time passes unfilled, make weir admit less than the limit.
//
// Refunds. If another rule refuses the request, or it reaches no server, its units return with their own
// slots. They join a grant whose slots they adjoin, or form a grant of their own if there is room. Otherwise
// they go back to Redis, as do units charged by a trip to Redis. No slot ever moves.
//
// Clocks. The proof assumes that Redis's clock never steps back. If it does, lost debits may seem to belong
// to the state that came after them. Redis reads its clock between `sent` and `received`. Both errors are
// allowed for: Redis may have read its clock at `sent`, and this host's clock may be slow by one part in
// 1024.
#pragma once

#include "redis/scripts/line_numbers.hpp"

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/gcra_core.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace weir::redis {

// A charge in Redis: when it was sent and answered, and which slots it got.
struct RoundTrip {
  std::chrono::steady_clock::time_point sent, received;
  base::TimePoint charged_at;
  limit::Ticks begin = 0;  // of a bucket: the start of its slots, at charged_at or later
};

class Grant {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Grant() = default;  // an empty lot, of no key
  // `number` is not 0. `whole`: the time from trip.received until the key is fresh again. REQUIRES
  // can_be_leased(*line.limiter), and that the trip charged line.cost.
  Grant(std::uint32_t number, const limit::Charge& line, const RoundTrip& trip,
        base::Duration whole) noexcept;

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }  // 0: an empty lot
  [[nodiscard]] limit::Cost left() const noexcept { return left_; }
  [[nodiscard]] limit::Cost gone() const noexcept { return gone_; }  // expired before they were spent
  [[nodiscard]] Time received() const noexcept { return trip_.received; }

  // Returns how many units may be spent at `now`.
  [[nodiscard]] limit::Cost ready(Time now) const noexcept;
  // Spends units. Sets in `outcome` what put_back() and a refund need. REQUIRES ready(now) ≥ cost.
  void spend(limit::Cost cost, Time now, limit::Outcome& outcome) noexcept;
  // Takes spent units back after their request came to nothing. Returns false if their slots do not adjoin
  // those left here, or if they were debited earlier. In that case the key may have been reset in between.
  [[nodiscard]] bool put_back(const limit::Charge& line, const limit::Outcome& outcome) noexcept;
  // Returns spent units of a bucket as a lot of their own, which uses this lot's reading of Redis's clock.
  // Returns nullopt for a window, and for units debited before this lot.
  [[nodiscard]] std::optional<Grant> apart(std::uint32_t number, const limit::Charge& line,
                                           const limit::Outcome& outcome) const noexcept;
  // Merges another lot of the same window. Returns false for a bucket or for another window.
  [[nodiscard]] bool merge(const Grant& other) noexcept;

  // For buckets: returns true if this lot's slots end after the other's.
  [[nodiscard]] bool stands_behind(const Grant& other) const noexcept { return end_ > other.end_; }

  // Returns the time until the key is certainly fresh again.
  [[nodiscard]] base::Duration whole_after(Time now) const noexcept;
  // Returns Redis's time at `now`, by the clock reading that whole_after() uses. So both describe one
  // instant.
  [[nodiscard]] base::TimePoint now_there(Time now) const noexcept {
    const auto passed = std::max(now - trip_.received, Time::duration(0));
    return trip_.charged_at + std::chrono::floor<base::Duration>(passed);
  }
  // Returns the refund of the units left; nullopt if Redis would not accept it. `line` is the key's.
  [[nodiscard]] std::optional<Refund> return_of(const limit::Charge& line, Time now) const noexcept;

 private:
  [[nodiscard]] limit::Ticks latest(Time now) const noexcept;
  [[nodiscard]] limit::Ticks begin() const noexcept;  // of a bucket: where its slots begin

  std::uint32_t number_ = 0;
  limit::Cost left_ = 0;
  limit::Cost gone_ = 0;
  const limit::GcraCore* gcra_core_ = nullptr;  // of a bucket; else null
  RoundTrip trip_{};
  base::TimePoint until_{};    // of a window: its end
  limit::Ticks end_ = 0;       // of a bucket: where its slots end
  base::TimePoint debited_{};  // time of the first debit
  base::Duration whole_{};
};

}  // namespace weir::redis
