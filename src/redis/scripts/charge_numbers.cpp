#include "redis/scripts/charge_numbers.hpp"

#include "redis/scripts/kinds.hpp"

#include "weir/limit/pair.hpp"
#include "weir/limit/settle.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <type_traits>
#include <variant>

namespace weir::redis {

namespace {

using limit::Ticks;

// A value of `enforced`, which charge.lua describes. A line with this value does not decide. It is charged if
// the line before it is admitted.
constexpr double kFollows = 3;
// Added to `enforced` if the line is a check.
constexpr double kChecks = 4;

template <class L>
concept Spaced = requires(const L& limiter) {
  limiter.gcra_core();
};
template <class L>
concept Unknown = std::is_same_v<L, limit::AdaptiveConcurrency>;

double number(std::uint64_t value) noexcept {
  return static_cast<double>(value);
}
double number(base::Duration length) noexcept {
  return static_cast<double>(length.count());
}
double number(base::TimePoint at) noexcept {
  return number(at.time_since_epoch());
}
double number(Kind kind) noexcept {
  return static_cast<double>(kind);
}

// A duration in ticks of 1/count µs, split into whole microseconds and the remaining ticks.
struct Length {
  double micros, part;
  Length(Ticks ticks, std::uint64_t count) noexcept
      : micros(number(static_cast<std::uint64_t>(ticks / count))),
        part(number(static_cast<std::uint64_t>(ticks % count))) {}
};

Ticks interval_of(const limit::GcraCore& gcra_core) noexcept {
  return static_cast<std::uint64_t>(gcra_core.rate().period.count());
}

struct ToCharge {
  limit::Cost cost;
  double enforced;
  base::TimePoint around;
  const PermitId& hold;
  // for a log that does not decide (limit/pair.hpp): the most units that it keeps
  limit::Cost most;
  bool leased;

  template <Spaced L>
  ChargeNumbers operator()(const L& limiter) const noexcept {
    const limit::GcraCore& gcra_core = limiter.gcra_core();
    const std::uint64_t count = gcra_core.rate().count;
    if (cost > gcra_core.largest_cost()) return {number(Kind::Gcra), enforced, number(count), -1};
    const Ticks need = Ticks{cost} * interval_of(gcra_core);
    const Length room(gcra_core.room(cost), count), length(need, count);
    return {number(Kind::Gcra), enforced,      number(count), room.micros,
            room.part,          length.micros, length.part,   leased ? 1.0 : 0.0};
  }
  ChargeNumbers operator()(const limit::SteppedBucket& l) const noexcept {
    return {number(Kind::SteppedBucket), enforced,          number(l.rate().period),
            number(l.rate().count),      number(l.quota()), number(cost)};
  }
  ChargeNumbers operator()(const limit::FixedWindow& l) const noexcept {
    if (l.align() == limit::FixedWindow::Align::Epoch)
      return {number(Kind::FixedWindow), enforced, number(l.window()), number(l.quota()), number(cost)};
    const auto [start, end] = l.window_at(around);
    const auto first = l.window_at(std::max(start - base::Duration{1}, base::TimePoint{})).start;
    const auto last = l.window_at(end).end;
    return {number(Kind::CalendarWindow),
            enforced,
            number(first),
            number(start),
            number(end),
            number(last),
            number(l.quota()),
            number(cost)};
  }
  ChargeNumbers operator()(const limit::SlidingWindow& l) const noexcept {
    return {number(Kind::SlidingWindow), enforced, number(l.rate().period), number(l.quota()), number(cost)};
  }
  ChargeNumbers operator()(const limit::SlidingLog& l) const noexcept {
    return {number(Kind::Log), enforced,    number(l.rate().period), number(l.marks()), number(l.quota()),
            number(cost),      number(most)};
  }
  ChargeNumbers operator()(const limit::Concurrency& l) const noexcept {
    return {number(Kind::Permits), enforced,           number(l.quota()), number(cost), number(hold.lease),
            number(hold.holder),   number(hold.serial)};
  }
  template <Unknown L>
  ChargeNumbers operator()(const L&) const noexcept {
    return {};
  }
};

// Returns the maximum number of tokens that may be spent: as many as refill in limit::kLongestDebt. The
// result is below 2^53, because larger numbers are not exact in the scripts.
std::uint64_t most_spent(const limit::Rate& rate) noexcept {
  const auto refills = static_cast<std::uint64_t>(limit::kLongestDebt / rate.period);
  return static_cast<std::uint64_t>(
      std::min(Ticks{refills} * rate.count, Ticks{std::uint64_t{kMostMicros - 1}}));
}

struct ToRefund {
  limit::Cost reserved, actual;
  base::TimePoint departure;
  const PermitId& hold;
  bool leased;  // true: the rule has `lease`, so a refund names the time slots of the charge (has_slots)
  Ticks begin;

  template <Spaced L>
  RefundNumbers operator()(const L& limiter) const noexcept {
    const limit::GcraCore& gcra_core = limiter.gcra_core();
    const std::uint64_t count = gcra_core.rate().count;
    // Bounds `reserved`, because Redis charges at most the limiter's largest cost.
    const Ticks held = Ticks{std::min(reserved, gcra_core.largest_cost())} * interval_of(gcra_core);
    if (leased) {
      assert(actual == 0);  // a rule with `lease` has no settlement
      const Length from(begin, count), length(held, count);
      return {number(Kind::GapGcra), number(count), number(departure), from.micros, from.part,
              length.micros,         length.part};
    }
    const Ticks debt = Ticks(static_cast<std::uint64_t>(limit::kLongestDebt.count())) * count;
    const Length before(held, count),
        after(std::min(Ticks{actual} * interval_of(gcra_core), held + debt), count);
    const bool only_last = std::is_same_v<L, limit::LeakyBucket>;
    return {number(Kind::Gcra), number(count),
            number(departure),  before.micros,
            before.part,        after.micros,
            after.part,         only_last ? -1 : number(departure + limit::kLongestDebt)};
  }
  RefundNumbers operator()(const limit::SteppedBucket& l) const noexcept {
    const auto& rate = l.rate();
    return {number(Kind::SteppedBucket), number(departure),  number(reserved),        number(actual),
            number(rate.period),         number(rate.count), number(most_spent(rate))};
  }
  RefundNumbers operator()(const limit::FixedWindow& l) const noexcept {
    return {number(Kind::FixedWindow), number(l.window_at(departure).end), number(reserved), number(actual),
            number(departure)};
  }
  RefundNumbers operator()(const limit::SlidingWindow& l) const noexcept {
    return {number(Kind::SlidingWindow), number(l.rate().period), number(departure), number(reserved),
            number(actual)};
  }
  RefundNumbers operator()(const limit::SlidingLog& l) const noexcept {
    const auto mark = l.mark_of(departure);
    return {number(Kind::Log),        number(departure),        number(reserved),
            number(actual),           number(l.start_of(mark)), number(l.expiry_of(mark)),
            number(l.most_entered()), leased ? 1.0 : 0.0};
  }
  RefundNumbers operator()(const limit::Concurrency&) const noexcept {
    return {number(Kind::Permits), number(reserved),    number(actual),
            number(hold.lease),    number(hold.holder), number(hold.serial)};
  }
  template <Unknown L>
  RefundNumbers operator()(const L&) const noexcept {
    return {};
  }
};

base::TimePoint instant(std::uint64_t us) noexcept {
  return base::TimePoint(base::Duration(static_cast<std::int64_t>(us)));
}

// A sliding log made from the script's answer: one entry at `mark` has all live units. The limiter needs no
// more for its outcome.
struct AnsweredLog {
  std::uint64_t newest_mark;
  limit::Cost live;
  // Time of the oldest live entry. If the cost does not fit: time of the last entry that must expire before
  // the cost fits.
  std::uint64_t mark;

  [[nodiscard]] std::uint64_t newest() const noexcept { return newest_mark; }
  [[nodiscard]] limit::Cost total() const noexcept { return live; }
  void walk(auto visit) const {
    if (live != 0) visit(limit::LogEntry{mark, live});
  }
};

// Computes a limiter's outcome from the state that Redis had before the charge. charge.lua describes the
// numbers for each kind.
struct ToOutcome {
  base::TimePoint now;
  limit::Cost cost;
  std::uint64_t first, second, third;  // the line's answer from charge.lua

  using Answer = std::optional<limit::Outcome>;

  [[nodiscard]] Answer step(const auto& limiter, const limit::Cell& cell) const noexcept {
    return limiter.step(cell, now, cost).outcome;
  }

  // For token bucket, GCRA and leaky bucket. The limiter's state is the TAT (theoretical arrival time) in
  // ticks, low word first.
  template <Spaced L>
  Answer operator()(const L& limiter) const noexcept {
    const limit::GcraCore& gcra_core = limiter.gcra_core();
    if (second >= gcra_core.rate().count) return std::nullopt;
    Ticks tat = gcra_core.ticks(instant(first) + now.time_since_epoch());
    const auto ask = [&] {
      return step(limiter, {{static_cast<std::uint64_t>(tat), static_cast<std::uint64_t>(tat >> 64)}});
    };
    if (third == 0) {
      tat += second;
      return ask();
    }
    // The charge has filled a gap (free time slots), so it is admitted and has not moved the TAT. But step()
    // adds the cost to the TAT, so the cost is subtracted before.
    tat = gcra_core.refund(tat, cost);
    auto outcome = ask();
    outcome->allowed = true;
    outcome->retry_after = {};
    return outcome;
  }
  // Returns nullopt for a bucket that would take longer than kMostMicros to fill. weir never charges so much,
  // and the times of that state would overflow.
  Answer operator()(const limit::SteppedBucket& limiter) const noexcept {
    const auto& rate = limiter.rate();
    const auto refills = Ticks{second / rate.count + 1};
    if (refills * static_cast<std::uint64_t>(rate.period.count()) > kMostMicros) return std::nullopt;
    return step(limiter, {{first, second}});
  }
  Answer operator()(const limit::FixedWindow& limiter) const noexcept {
    return step(limiter, {{first, second}});
  }
  Answer operator()(const limit::SlidingWindow& limiter) const noexcept {
    constexpr auto kMostCounted = std::numeric_limits<std::uint32_t>::max();
    if (second > kMostCounted || third > kMostCounted) return std::nullopt;
    return step(limiter, {{first, second << 32 | third}});
  }
  Answer operator()(const limit::SlidingLog& limiter) const noexcept {
    const AnsweredLog log{limiter.mark_of(instant(first)), second, limiter.mark_of(instant(third))};
    return limiter.ask(log, now, cost).outcome;
  }
  Answer operator()(const limit::Concurrency& limiter) const noexcept { return step(limiter, {{first}}); }
  template <Unknown L>
  Answer operator()(const L&) const noexcept {
    return std::nullopt;
  }
};

// Returns the outcome of a check that is admitted. `none`: the limiter's answer to a cost of 0.
limit::Outcome outcome_of_check(const limit::Limiter& limiter, limit::Outcome none) noexcept {
  if (limit::settles(limiter) && none.reset_after == base::Duration{0}) return limit::full(limiter);
  none.delay = base::Duration{0};
  return none;
}

}  // namespace

bool is_known(const limit::Limiter& limiter) noexcept {
  return std::visit([]<class L>(const L&) { return !Unknown<L>; }, limiter);
}

ChargeNumbers numbers_of(const limit::Charge& charge, base::TimePoint around, const PermitId& hold,
                         const limit::Limiter* decider) noexcept {
  const double enforced = (decider != nullptr ? kFollows
                           : charge.enforced  ? 1
                                              : 0) +
                          (charge.cost == 0 ? kChecks : 0);
  const auto most = decider != nullptr ? limit::most_counted(*charge.limiter, *decider) : 0;
  return std::visit(ToCharge{limit::units_to_fit(charge), enforced, around, hold, most, charge.lease != 0},
                    *charge.limiter);
}

RefundNumbers numbers_of(const Refund& refund) noexcept {
  return std::visit(ToRefund{refund.charge.cost, refund.actual, refund.departure, refund.hold,
                             refund.charge.lease != 0, refund.begin},
                    *refund.charge.limiter);
}

ChargeNumbers penalty_numbers_of(const limit::Charge& charge) noexcept {
  const auto& [after, first, grows, most, forget] = *charge.penalty;
  return {number(Kind::Penalty),
          (charge.enforced ? 1.0 : 0.0) + (charge.cost == 0 ? kChecks : 0),
          number(std::uint64_t{after}),
          number(first),
          number(std::uint64_t{grows}),
          number(most),
          number(forget),
          number(std::uint64_t{limit::begins_kept(*charge.penalty)})};
}

RefundNumbers numbers_of_reset() noexcept {
  return {number(Kind::Reset)};
}

std::optional<limit::Outcome> outcome_of(const limit::Charge& charge, base::TimePoint now,
                                         AnswerNumbers answer) noexcept {
  for (const auto value : answer)
    if (value < 0 || value > kMostMicros) return std::nullopt;
  const auto first = static_cast<std::uint64_t>(answer[0]), second = static_cast<std::uint64_t>(answer[1]),
             third = static_cast<std::uint64_t>(answer[2]);
  auto outcome =
      std::visit(ToOutcome{now, limit::units_to_fit(charge), first, second, third}, *charge.limiter);
  if (charge.cost == 0 && outcome && outcome->allowed)
    outcome = outcome_of_check(*charge.limiter,
                               *std::visit(ToOutcome{now, 0, first, second, third}, *charge.limiter));
  if (outcome && outcome->allowed && has_slots(charge))
    outcome->slots_begin =
        limit::gcra_core(*charge.limiter)->ticks(now + base::Duration(third > 0 ? third - 1 : first)) +
        second;
  return outcome;
}

bool apply_penalty(base::TimePoint now, AnswerNumbers answer, limit::Outcome& outcome) noexcept {
  const auto end = answer[0], begins = answer[1], violations = answer[2];
  const bool known = end >= 0 && end <= kMostMicros && (begins == 0 || begins == 1) && violations >= 0 &&
                     violations <= limit::kMostViolations;
  if (!known) return false;
  if (end == 0) {
    outcome.violations = static_cast<std::uint8_t>(violations);
    return begins == 0;
  }
  const auto left = base::TimePoint(base::Duration(end)) - now;
  if (left.count() <= 0 || (begins == 1 && outcome.allowed)) return false;
  limit::refuse_by_penalty(outcome, left);
  outcome.penalty_begins = begins == 1;
  return true;
}

bool has_slots(const limit::Charge& charge) noexcept {
  return charge.lease != 0 && limit::gcra_core(*charge.limiter) != nullptr;
}

Refund refund_of(const limit::Charge& charge, base::TimePoint charged_at,
                 const limit::Outcome& outcome) noexcept {
  Refund back{charge, charged_at + outcome.delay};
  back.begin = outcome.slots_begin;
  return back;
}

std::array<std::int64_t, kAnswerNumbers> answer_after(const limit::Limiter& limiter, AnswerNumbers answer,
                                                      base::Duration later) noexcept {
  std::array<std::int64_t, kAnswerNumbers> later_answer;
  std::copy(answer.begin(), answer.end(), later_answer.begin());
  // Only the answers of token bucket, GCRA and leaky bucket depend on the present time. All others consist of
  // instants and counts.
  if (limit::gcra_core(limiter) == nullptr) return later_answer;
  if (later_answer[0] >= later.count())
    later_answer[0] -= later.count();
  else
    later_answer = {};
  return later_answer;
}

bool answers_charge(const limit::Charge& line, limit::Cost asked) noexcept {
  const auto units = limit::units_to_fit(line);
  if (std::holds_alternative<limit::SlidingLog>(*line.limiter)) return units == asked;
  return units >= asked || !has_slots(line);
}

}  // namespace weir::redis
