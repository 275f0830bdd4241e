// One line of a bill as the scripts' numbers, and back: what the heads of charge.lua and refund.lua say of
// each kind. Pure.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/limit/spacing.hpp"
#include "weir/redis/clock_ahead.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace weir::redis {

// What a bill holds of concurrency limits: the numbers of its permits, both below 2^53, and how long they
// last unless they are renewed.
struct Hold {
  std::uint64_t holder = 0;
  std::uint64_t serial = 0;
  base::Duration lease{};
};

// One line to be given back, `departure` as limit::refund takes it; or to be settled, as limit::settle does
// it with a charge at `departure` that turned out to be one of `actual`.
struct Refund {
  limit::Charge charge;
  base::TimePoint departure;
  limit::Cost actual = 0;
  Hold hold{};  // of what is held: given back if `actual` is 0, and renewed if it is the cost
  // Where the charge has slots (has_slots): where those begin that are given back, they and no others;
  // `departure` is when they were debited. REQUIRES then that `actual` is 0.
  limit::Ticks begin = 0;
};

// Unused ones are zero.
using ChargeNumbers = std::array<double, 8>;
using RefundNumbers = std::array<double, 8>;
// What a reply says of a line.
inline constexpr std::size_t kAnswerNumbers = 3;
using AnswerNumbers = std::span<const std::int64_t, kAnswerNumbers>;

// Beyond any instant or length that the scripts can answer: 2^53 µs, the year 2255.
inline constexpr std::int64_t kMostMicros = std::int64_t{1} << 53;

// Whether the scripts know this limiter.
[[nodiscard]] bool is_known(const limit::Limiter& limiter) noexcept;

// REQUIRES is_known(*charge.limiter). `decider`: of the line that this one follows (limit/pair.hpp), null if
// it follows none. `around`: roughly Redis's time, within a window of any calendar; it
// chooses which windows are sent, and the script knows whether they were the right ones.
[[nodiscard]] ChargeNumbers numbers_of(const limit::Charge& charge, base::TimePoint around, const Hold& hold,
                                       const limit::Limiter* decider = nullptr) noexcept;
[[nodiscard]] RefundNumbers numbers_of(const Refund& refund) noexcept;
// Of a key that is given back whole.
[[nodiscard]] RefundNumbers numbers_of_reset() noexcept;

// What the limiter says of the state that the script found; nullopt where that cannot be one.
[[nodiscard]] std::optional<limit::Outcome> outcome_of(const limit::Charge& charge, base::TimePoint now,
                                                       AnswerNumbers answer) noexcept;

// Whether the slots of such a charge are known, and go back wherever they stand: of a bucket with a lease.
[[nodiscard]] bool has_slots(const limit::Charge& charge) noexcept;
// What gives back a charge that Redis made at an instant, by its own clock, with such an outcome.
[[nodiscard]] Refund refund_of(const limit::Charge& charge, base::TimePoint charged_at,
                               const limit::Outcome& outcome) noexcept;

// What the script would answer of the same state so much `later`: of a log only to a cost that it refuses
// still.
[[nodiscard]] std::array<std::int64_t, kAnswerNumbers> told_later(const limit::Limiter& limiter,
                                                                  AnswerNumbers answer,
                                                                  base::Duration later) noexcept;
// Whether what was answered to a cost says what a line would be told. A log answers to just one; that it
// has more `remaining` as entries go whose going is not enough for that cost is not seen in it. Of a bucket
// with a lease a lower cost may fit in a gap.
[[nodiscard]] bool tells(const limit::Charge& line, limit::Cost asked) noexcept;

}  // namespace weir::redis
