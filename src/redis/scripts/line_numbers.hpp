// Converts one line of a bill to the scripts' numbers, and a reply's numbers to an outcome. The heads of
// charge.lua and refund.lua describe the numbers of each kind. Pure.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/gcra_core.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/redis/clock_ahead.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace weir::redis {

// A bill's permits of concurrency limits: two numbers below 2^53, and how long the permits last without
// renewal.
struct PermitId {
  std::uint64_t holder = 0;
  std::uint64_t serial = 0;
  base::Duration lease{};
};

// A line to refund or settle. If `actual` is 0, it is refunded with `departure` as limit::refund takes it.
// Otherwise it is settled as limit::settle does: a charge at `departure` becomes one of `actual`.
struct Refund {
  limit::Charge charge;
  base::TimePoint departure;
  limit::Cost actual = 0;
  PermitId hold{};  // for concurrency: released if `actual` is 0, renewed if it is the cost
  // If the charge has slots (has_slots): the start of the slots to give back; no others are. `departure` is
  // then the time of their debit. REQUIRES `actual` == 0 for such a charge.
  limit::Ticks begin = 0;
};

// Unused numbers are zero.
using ChargeNumbers = std::array<double, 8>;
using RefundNumbers = std::array<double, 8>;
// The numbers of a reply about one line.
inline constexpr std::size_t kAnswerNumbers = 3;
using AnswerNumbers = std::span<const std::int64_t, kAnswerNumbers>;

// Larger than any instant or length that the scripts return: 2^53 µs, the year 2255.
inline constexpr std::int64_t kMostMicros = std::int64_t{1} << 53;

// Returns true if the scripts implement this limiter.
[[nodiscard]] bool is_known(const limit::Limiter& limiter) noexcept;

// Returns the numbers of a line. REQUIRES is_known(*charge.limiter). `decider`: the limiter of the line that
// this line follows (limit/pair.hpp), or null. `around`: Redis's approximate time, within a window of any
// calendar. It selects the windows that are sent; the script checks whether they fit.
[[nodiscard]] ChargeNumbers numbers_of(const limit::Charge& charge, base::TimePoint around,
                                       const PermitId& hold,
                                       const limit::Limiter* decider = nullptr) noexcept;
[[nodiscard]] RefundNumbers numbers_of(const Refund& refund) noexcept;
// Returns the numbers of a key to reset.
[[nodiscard]] RefundNumbers numbers_of_reset() noexcept;

// Returns the limiter's outcome for the state that the script found; nullopt if no limiter has such a state.
[[nodiscard]] std::optional<limit::Outcome> outcome_of(const limit::Charge& charge, base::TimePoint now,
                                                       AnswerNumbers answer) noexcept;

// Returns true if weir knows the charge's slots, so that a refund names them: a bucket with `lease`.
[[nodiscard]] bool has_slots(const limit::Charge& charge) noexcept;
// Returns the refund of a charge that Redis made at `charged_at`, by its own clock, with `outcome`.
[[nodiscard]] Refund refund_of(const limit::Charge& charge, base::TimePoint charged_at,
                               const limit::Outcome& outcome) noexcept;

// Returns what the script would answer for the same state `later`. For a log, this is right only for a cost
// that is still refused then.
[[nodiscard]] std::array<std::int64_t, kAnswerNumbers> told_later(const limit::Limiter& limiter,
                                                                  AnswerNumbers answer,
                                                                  base::Duration later) noexcept;
// Returns true if an answer to the cost `asked` also answers `line`. A log's answer serves only that cost. A
// log does not show that it has more `remaining` as entries expire, unless they make room for the cost. In a
// bucket with `lease`, a lower cost may fit in a gap.
[[nodiscard]] bool tells(const limit::Charge& line, limit::Cost asked) noexcept;

}  // namespace weir::redis
