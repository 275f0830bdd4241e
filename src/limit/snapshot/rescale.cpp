#include "weir/limit/rescale.hpp"

#include "limit/algorithms/arithmetic.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

namespace weir::limit {

namespace {

constexpr std::uint64_t kMostCount = 0xffff'ffff;  // the maximum count of a window, as in limit/window.hpp

// Returns ⌈a × b / c⌉, at most `most`. a × b may need 256 bits, so the quotient is computed bit by bit.
// REQUIRES: a, b, c < 2^126, c ≥ 1.
Ticks scaled(Ticks a, Ticks b, Ticks c, Ticks most) noexcept {
  const Ticks whole = b / c;
  if (whole != 0 && a > most / whole) return most;
  Ticks quotient = a * whole;
  // Long division of a × (b mod c) by c, from the highest bit of a on. `more` becomes the quotient, `rest`
  // the remainder.
  Ticks rest = 0;
  Ticks more = 0;
  const Ticks part = b % c;
  for (int bit = 127; part != 0 && bit >= 0; --bit) {
    more <<= 1;
    rest <<= 1;
    if (rest >= c) {
      rest -= c;
      ++more;
    }
    if ((a >> bit & 1) == 0) continue;
    rest += part;
    if (rest >= c) {
      rest -= c;
      ++more;
    }
  }
  quotient += more + (rest != 0 ? 1 : 0);
  return std::min(quotient, most);
}

// Returns ⌈count × to / from⌉, at most kMostCount.
std::uint64_t scaled_count(std::uint64_t count, std::uint64_t to, std::uint64_t from) noexcept {
  return static_cast<std::uint64_t>(std::min(divide_up(Ticks{count} * to, from), Ticks{kMostCount}));
}

// Converts a time within a period of length `from` to the same share of a period of length `to`, rounded
// down.
std::uint64_t scaled_length(std::uint64_t length, std::uint64_t to, std::uint64_t from) noexcept {
  return static_cast<std::uint64_t>(divide(Ticks{length} * to, from));
}

Ticks depth_of(const GcraCore& gcra_core) noexcept {
  return Ticks{gcra_core.capacity()} * micros(gcra_core.rate().period);
}

template <class L>
concept RescaledBucket = std::is_same_v<L, TokenBucket> || std::is_same_v<L, Gcra>;
template <class L>
concept RescaledPermits = std::is_same_v<L, Concurrency> || std::is_same_v<L, AdaptiveConcurrency>;

// Scales the time until the bucket is full, so that its share of the depth (the time to fill an empty bucket)
// stays the same. Each depth is in ticks of its own rate.
template <RescaledBucket L>
Cell converted(const L& from, const Cell& cell, const L& to, base::TimePoint now) noexcept {
  const Ticks wait = beyond(tat_of(cell), from.gcra_core().ticks(now));
  if (wait == 0) return {};
  const Ticks most = std::max(depth_of(to.gcra_core()),
                              // A key in debt (charged beyond its limit) may need longer than the depth,
                              // up to a hundred years.
                              Ticks{kHundredYears} * to.gcra_core().rate().count);
  return cell_of(to.gcra_core().ticks(now) +
                 scaled(wait, depth_of(to.gcra_core()), depth_of(from.gcra_core()), most));
}

// Keeps the departures that were promised to requests. If `to` paces octets, keeps the number of promised
// octets instead. These octets then pass at the rate of `to`, and the last octet departs at most `max_wait`
// from now.
Cell converted(const LeakyBucket& from, const Cell& cell, const LeakyBucket& to,
               base::TimePoint now) noexcept {
  const auto& old_core = from.gcra_core();
  const auto& core = to.gcra_core();
  const auto departs = old_core.instant(tat_of(cell));
  if (departs <= now) return {};
  if (!to.paces()) return cell_of(core.ticks(departs));
  const Ticks wait = beyond(tat_of(cell), old_core.ticks(now));
  const Ticks most = Ticks{micros(core.max_wait())} * core.rate().count;
  return cell_of(core.ticks(now) +
                 scaled(wait, micros(core.rate().period), micros(old_core.rate().period), most));
}

Cell converted(const SteppedBucket& from, const Cell& cell, const SteppedBucket& to,
               base::TimePoint now) noexcept {
  const std::uint64_t period = micros(from.rate().period);
  const std::uint64_t elapsed = beyond(micros(now), cell.words[0]);
  const auto refilled = Ticks{elapsed / period} * from.rate().count;
  const auto spent = static_cast<std::uint64_t>(beyond<Ticks>(cell.words[1], refilled));
  if (spent == 0) return {};
  const auto over = scaled_length(elapsed % period, micros(to.rate().period), period);
  return {{std::max(micros(now), cell.words[0]) - over, scaled_count(spent, to.quota(), from.quota())}};
}

Cell converted(const FixedWindow& from, const Cell& cell, const FixedWindow& to,
               base::TimePoint now) noexcept {
  if (from.drained_at(cell) <= now) return {};
  const auto used =
      from.align() == to.align() ? scaled_count(cell.words[1], to.quota(), from.quota()) : cell.words[1];
  const bool alike = from.align() == to.align() && from.rate().period == to.rate().period &&
                     (from.calendar() == nullptr || from.calendar()->zone() == to.calendar()->zone());
  return {{alike ? cell.words[0] : micros(to.window_at(now).end), used}};
}

Cell converted(const SlidingLog& from, const Cell& cell, const SlidingLog& to, base::TimePoint now) noexcept {
  if (cell.words[1] == 0) return {};
  const std::array<LogEntry, 1> entry{LogEntry{cell.words[0], cell.words[1]}};
  const auto converted = rescaled(from, entry, to, now);
  return converted.empty() ? Cell{} : Cell{{converted.front().mark, converted.front().cost}};
}

Cell converted(const SlidingWindow& from, const Cell& cell, const SlidingWindow& to,
               base::TimePoint now) noexcept {
  return to.rescaled(from, cell, now);
}

template <RescaledPermits L>
Cell converted(const L&, const Cell& cell, const L&, base::TimePoint) noexcept {
  return cell;
}

// Returns true if a change of the limit scales charged costs, too. Returns false for queues, which keep their
// departures, and for concurrency limits, which keep their permits. Also returns false for windows whose
// `align` has changed, because they keep their counts. REQUIRES: rescales(from, to).
bool keeps_share(const Limiter& from, const Limiter& to) noexcept {
  return !holds(to) && !std::holds_alternative<LeakyBucket>(to) && !changes_align(from, to);
}

}  // namespace

// Scales the counts of the previous and the current window. If the period has changed, scales their weighted
// sum instead, and returns it as the count of the current window.
Cell SlidingWindow::rescaled(const SlidingWindow& from, const Cell& cell,
                             base::TimePoint now) const noexcept {
  if (from.drained_at(cell) <= now) return {};
  const std::uint64_t at = std::max(micros(now), cell.words[0]);
  const Counts counts = from.counts_at(cell, at);
  const auto in_share = [&](std::uint64_t count) { return scaled_count(count, quota(), from.quota()); };
  if (from.period() == period())
    return cell_of({counts.start, in_share(counts.previous), in_share(counts.current)});
  const auto weighted = divide_up(counts.previous * Ticks{counts.start + from.period() - at}, from.period());
  const auto used = counts.current + static_cast<std::uint64_t>(weighted);
  return cell_of({at - at % period(), 0, in_share(used)});
}

Cell rescaled(const Limiter& from, const Cell& cell, const Limiter& to, base::TimePoint now) noexcept {
  if (from == to) return cell;
  if (!rescales(from, to)) return {};
  return std::visit([&]<class L>(const L& l) { return converted(std::get<L>(from), cell, l, now); }, to);
}

// Merges entries that get the same time step (mark) under `to`. Rounds the running total up, not each cost,
// so that the final total is the scaled total.
std::vector<LogEntry> rescaled(const SlidingLog& from, std::span<const LogEntry> entries,
                               const SlidingLog& to, base::TimePoint now) {
  std::vector<LogEntry> converted;
  converted.reserve(entries.size());
  const bool alike = from.rate().period == to.rate().period && from.marks() == to.marks();
  Cost before = 0;
  Cost entered = 0;
  for (const auto& entry : entries) {
    const auto expiry = from.expiry_of(entry.mark);
    if (expiry <= now) continue;
    before += entry.cost;
    const auto share = scaled_count(before, to.quota(), from.quota());
    const Cost cost = std::min(share - entered, to.most_entered());
    if (cost == 0) continue;
    entered += cost;
    const auto left = static_cast<std::int64_t>(static_cast<std::uint64_t>(
        divide_up(Ticks{micros(expiry - now)} * micros(to.rate().period), micros(from.rate().period))));
    const auto mark = alike ? entry.mark : to.carry_over({{0, cost}}, now + base::Duration(left)).words[0];
    if (!converted.empty() && mark <= converted.back().mark)
      converted.back().cost = std::min(converted.back().cost + cost, to.most_entered());
    else
      converted.push_back({mark, cost});
  }
  return converted;
}

bool rescales(const Limiter& from, const Limiter& to) noexcept {
  return from.index() == to.index();
}

bool changes_align(const Limiter& from, const Limiter& to) noexcept {
  const auto* was = std::get_if<FixedWindow>(&from);
  const auto* is = std::get_if<FixedWindow>(&to);
  return was != nullptr && is != nullptr && was->align() != is->align();
}

Cost rescaled_refund(const Limiter& from, Cost cost, const Limiter& to) noexcept {
  if (!rescales(from, to)) return 0;
  if (!keeps_share(from, to)) return cost;
  return static_cast<Cost>(divide(Ticks{cost} * quota(to), quota(from)));
}

Cost rescaled_debt(const Limiter& from, Cost cost, const Limiter& to) noexcept {
  if (!rescales(from, to)) return 0;
  if (!keeps_share(from, to)) return cost;
  return static_cast<Cost>(std::min(divide_up(Ticks{cost} * quota(to), quota(from)), Ticks{kMaxCost}));
}

}  // namespace weir::limit
