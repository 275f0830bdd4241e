// The lines that the scripts get, and the outcomes that follow from their answers. Pure.
//
// A line is the numbers that a script gets for one charge. A charge with a penalty has a second line, for the
// penalty. The comments at the top of charge.lua and refund.lua describe the numbers of each kind of line.
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

// Identifies the concurrency permits of one bill (the charges of one request) by two numbers below 2^53.
// `lease`: how long the permits last without renewal.
struct PermitId {
  std::uint64_t holder = 0;
  std::uint64_t serial = 0;
  base::Duration lease{};
};

// A charge to refund or settle, or a permit to release or renew.
struct Refund {
  limit::Charge charge;
  // When Redis made the charge, by Redis's clock. For the refund of a delayed request: when the request would
  // depart (limit::refund). Unused for permits.
  base::TimePoint departure;
  // The new cost of the charge. For a refund: 0. For a permit: 0 to release the permit, or its cost to renew
  // the permit.
  limit::Cost actual = 0;
  PermitId hold{};  // for concurrency limits: the permit
  // Used only if the charge has time slots (has_slots): the start of the slots to refund. REQUIRES: `actual`
  // is 0 for a charge with slots.
  limit::Ticks begin = 0;
};

// The numbers that a script receives for one line. Unused numbers are zero.
using ChargeNumbers = std::array<double, 8>;
using RefundNumbers = std::array<double, 8>;
// The number of values that a reply has for each line.
inline constexpr std::size_t kAnswerNumbers = 3;
using AnswerNumbers = std::span<const std::int64_t, kAnswerNumbers>;

// Greater than any instant or duration that the scripts return: 2^53 µs, which is in the year 2255.
inline constexpr std::int64_t kMostMicros = std::int64_t{1} << 53;

// Returns true if the scripts implement this limiter.
[[nodiscard]] bool is_known(const limit::Limiter& limiter) noexcept;

// Returns the line of a charge for charge.lua. `decider`: null, or the limiter of another charge that decides
// for this one (limit/pair.hpp). `around`: Redis's approximate time, for which weir sends the calendar
// windows. The script checks that Redis's time is in one of these windows. REQUIRES:
// is_known(*charge.limiter).
[[nodiscard]] ChargeNumbers numbers_of(const limit::Charge& charge, base::TimePoint around,
                                       const PermitId& hold,
                                       const limit::Limiter* decider = nullptr) noexcept;
[[nodiscard]] RefundNumbers numbers_of(const Refund& refund) noexcept;
// Returns the line for the charge's penalty. The script expects this line directly after the line of the
// charge. REQUIRES: charge.penalty.
[[nodiscard]] ChargeNumbers penalty_numbers_of(const limit::Charge& charge) noexcept;
// Returns the numbers with which refund.lua resets a key.
[[nodiscard]] RefundNumbers numbers_of_reset() noexcept;

// Returns the outcome that the limiter computes from the state in the script's answer. Returns nullopt if no
// state of the limiter has these numbers.
[[nodiscard]] std::optional<limit::Outcome> outcome_of(const limit::Charge& charge, base::TimePoint now,
                                                       AnswerNumbers answer) noexcept;

// Adds to `outcome` what the script answered about the penalty. `outcome` is the result of the charge itself,
// without the penalty. Returns false if the answer contradicts `outcome`, or has numbers that no penalty can
// have. Needs no limit::Penalty, because the rule may be gone when a late reply comes.
[[nodiscard]] bool apply_penalty(base::TimePoint now, AnswerNumbers answer, limit::Outcome& outcome) noexcept;

// Returns true for a bucket of a rule with `lease`. Each of its charges takes time slots
// (redis/prefetch/grant.hpp), and a refund names these slots.
[[nodiscard]] bool has_slots(const limit::Charge& charge) noexcept;
// Returns the refund of a charge. `charged_at`: when Redis made the charge, by Redis's clock. `outcome`: the
// outcome of the charge.
[[nodiscard]] Refund refund_of(const limit::Charge& charge, base::TimePoint charged_at,
                               const limit::Outcome& outcome) noexcept;

// Returns what the script would answer if it ran again `later` after this answer, with the same state. For a
// log, the result is right only if the log still refuses the cost then.
[[nodiscard]] std::array<std::int64_t, kAnswerNumbers> answer_after(const limit::Limiter& limiter,
                                                                    AnswerNumbers answer,
                                                                    base::Duration later) noexcept;
// Returns true if the script's answer to a charge of `asked` units is also right for `line`, another charge
// of the key. The answer of a log is right for one cost only, because it does not say how `remaining` grows
// as entries expire. The answer of a bucket with `lease` is wrong for a lower cost, which may fit into a gap.
[[nodiscard]] bool answers_charge(const limit::Charge& line, limit::Cost asked) noexcept;

}  // namespace weir::redis
