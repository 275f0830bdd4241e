// The limiters that remember what they admitted: the sliding log, and the sliding window of n buckets.
//
// Both are one arithmetic. Time is divided into n marks a period, numbered from the epoch; what is admitted
// is entered at the mark of its instant, and counts while fewer than n marks have passed. With n buckets a
// mark is a sub-window, the current one is among the n, and so it looks back between (n − 1)/n and one
// period. With n = the period in µs a mark is an instant, and the log is exact: costs admitted in the last
// period + cost ≤ limit, over every interval of one period whatever. (The log is the textbook's; the buckets
// are the ring of counters of a "rolling window", as Hystrix had it, 2012.)
//
//   mark        m               m + n
//     |—————————|———————————————|———         an entry at m counts from its mark until the instant at which
//               counts          no more      mark m + n begins, ⌈(m + n) × period / n⌉ µs
//
// A step is pure, over a log that is only read; whoever keeps the log applies what it says. A log that may
// remember but one entry (a Cell alone) is kept by moving its entry: older costs then count as if they were
// new, so it refuses earlier than a whole log would and never later.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/cell.hpp"
#include "weir/limit/rate.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace weir::limit {

// So much was admitted at a mark.
struct LogEntry {
  std::uint64_t mark;
  Cost cost;
  friend bool operator==(const LogEntry&, const LogEntry&) = default;
};

class SlidingLog {
 public:
  static constexpr std::uint64_t kMostExact = 10'000;
  static constexpr std::uint64_t kMostBuckets = 1'000;
  static constexpr base::Duration kLongest{std::chrono::hours(24 * 3'652)};

  // Exact: limits up to kMostExact, else an error that names sliding_window; periods up to ten years.
  [[nodiscard]] static base::Result<SlidingLog> make(Rate limit);
  // With 2 to kMostBuckets buckets.
  [[nodiscard]] static base::Result<SlidingLog> make(Rate limit, std::uint64_t buckets);

  struct Answer {
    Outcome outcome;
    std::uint64_t mark;          // where the cost is to be entered when the request is charged
    base::TimePoint drained_at;  // of the log with it, or as it stands when refused
  };
  // `log` has newest() (0 when empty), total() of all its entries, and walk(visit): the entries, oldest
  // first, until visit returns false. Marks ascend.
  template <class Log>
  [[nodiscard]] Answer ask(const Log& log, base::TimePoint now, Cost cost) const noexcept;

  // The same for the log that a cell can hold. Word 0: the mark, word 1: the cost.
  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  // A cost that does not fit, entered all the same; no more than `most` units are kept (limit/pair.hpp).
  [[nodiscard]] Cell charge_beyond(const Cell& cell, base::TimePoint now, Cost cost,
                                   Cost most) const noexcept;
  // Gives back what was charged at an instant, if it still counts; by then its entry may have moved on.
  [[nodiscard]] Cell refund(const Cell& cell, base::TimePoint charged_at, Cost cost) const noexcept;
  // A charge of `reserved` has turned out to be one of `actual` (limit/settle.hpp): changes the entry that
  // took it, its own or, where it was moved on, the one that it moved to.
  [[nodiscard]] Cell settle(const Cell& cell, base::TimePoint charged_at, Cost reserved,
                            Cost actual) const noexcept;
  [[nodiscard]] base::TimePoint drained_at(const Cell& cell) const noexcept;
  // As much, entered so late that it counts until `drained_at` at least.
  [[nodiscard]] Cell carry_over(const Cell& cell, base::TimePoint drained_at) const noexcept;

  // The mark of an instant, the first instant of a mark, and when entries at a mark stop counting.
  [[nodiscard]] std::uint64_t mark_of(base::TimePoint at) const noexcept;
  [[nodiscard]] base::TimePoint start_of(std::uint64_t mark) const noexcept;
  [[nodiscard]] base::TimePoint expiry_of(std::uint64_t mark) const noexcept;
  // An entry counts while fewer marks than this have passed since its own.
  [[nodiscard]] std::uint64_t marks() const noexcept { return marks_; }
  [[nodiscard]] bool is_exact() const noexcept { return buckets_ == 0; }
  [[nodiscard]] std::uint64_t buckets() const noexcept { return buckets_; }
  // Bits that the cost of an entry needs.
  [[nodiscard]] unsigned cost_bits() const noexcept { return is_exact() ? 14 : 32; }
  // The most that an entry may say, and all of them together.
  [[nodiscard]] Cost most_entered() const noexcept { return (Cost{1} << cost_bits()) - 1; }
  static constexpr Cost kMostTotal = 0xffff'ffff;

  [[nodiscard]] const Rate& rate() const noexcept { return rate_; }
  [[nodiscard]] std::uint64_t quota() const noexcept { return rate_.count; }
  [[nodiscard]] base::Duration window() const noexcept { return rate_.period; }
  friend bool operator==(const SlidingLog&, const SlidingLog&) = default;

 private:
  SlidingLog(Rate rate, std::uint64_t buckets) noexcept
      : rate_(rate),
        buckets_(buckets),
        marks_(buckets != 0 ? buckets : static_cast<std::uint64_t>(rate.period.count())) {}

  Rate rate_;
  std::uint64_t buckets_;  // 0: exact
  std::uint64_t marks_;    // in a period
};

// The one entry that a cell can hold.
struct LoneEntry {
  const Cell& cell;
  [[nodiscard]] std::uint64_t newest() const noexcept { return cell.words[0]; }
  [[nodiscard]] Cost total() const noexcept { return cell.words[1]; }
  template <class Visit>
  void walk(Visit visit) const {
    if (total() != 0) visit(LogEntry{newest(), total()});
  }
};

template <class Log>
SlidingLog::Answer SlidingLog::ask(const Log& log, base::TimePoint now, Cost cost) const noexcept {
  const std::uint64_t mark = std::max(mark_of(now), log.newest());
  Cost live = log.total();
  std::optional<std::uint64_t> oldest;
  log.walk([&](const LogEntry& entry) {
    if (entry.mark + marks_ > mark) {
      oldest = entry.mark;
      return false;
    }
    live -= entry.cost;
    return true;
  });

  Answer answer{.outcome = {}, .mark = mark, .drained_at = now};
  Outcome& out = answer.outcome;
  out.allowed = live + cost <= rate_.count;
  const bool enters = out.allowed && cost != 0;
  if (enters || live != 0) answer.drained_at = expiry_of(enters ? mark : log.newest());
  out.remaining = rate_.count - std::min(rate_.count, out.allowed ? live + cost : live);
  out.reset_after = answer.drained_at - now;
  if (out.allowed) {
    out.more_after = expiry_of(oldest.value_or(mark)) - now;
    return answer;
  }
  out.retry_after = base::kForever;
  if (cost <= rate_.count) {  // the oldest go first, until enough have
    Cost going = 0;
    log.walk([&](const LogEntry& entry) {
      if (entry.mark + marks_ <= mark) return true;
      going += entry.cost;
      out.retry_after = expiry_of(entry.mark) - now;
      return live - going + cost > rate_.count;
    });
  }
  out.more_after = out.retry_after;
  return answer;
}

}  // namespace weir::limit
