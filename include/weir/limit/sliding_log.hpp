// The limiters that remember each admission: the sliding log, and the sliding window of n buckets.
//
// Both use the same arithmetic. Time is divided into n steps a period. A mark is the number of such a step,
// counted from the epoch. The cost of an admission is stored as an entry with the mark of the admission's
// step. The entry counts until n marks have passed. With n buckets, each step is a sub-window of the window.
// The current sub-window is one of the n buckets, so the window looks back between (n − 1)/n and one period.
// With n = the period in µs a step is a microsecond, and the log is exact: the costs admitted in any interval
// of one period are within the limit. (Buckets are the "rolling window" of Hystrix, 2012.)
//
//   mark        m               m + n
//     |—————————|———————————————|———         an entry at m counts from its mark until the instant at which
//               counts          no more      mark m + n begins, ⌈(m + n) × period / n⌉ µs
//
// A step() is pure: it reads a log and says where to enter the cost. The owner of the log enters the cost. If
// a log has room for one entry only (a Cell), that entry gets the mark of the newest admission. Older costs
// then count as if they were new. So this log may reject a request that a log with all entries would admit,
// but never admits more.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/cell.hpp"
#include "weir/limit/rate.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace weir::limit {

// The total cost that was admitted in one time step. `mark`: the number of that step.
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

  // Makes an exact log for limits up to kMostExact and periods up to ten years. If the limit or the period is
  // larger, the error recommends sliding_window.
  [[nodiscard]] static base::Result<SlidingLog> make(Rate limit);
  // Makes a window that consists of 2 to kMostBuckets buckets.
  [[nodiscard]] static base::Result<SlidingLog> make(Rate limit, std::uint64_t buckets);

  struct Answer {
    Outcome outcome;
    std::uint64_t mark;  // the time step in which to enter the cost if the request is charged
    // the instant at which all entries of the log will have expired, including the entry of this request if
    // it is allowed
    base::TimePoint drained_at;
  };
  // Returns the answer of a log. `log` must have three members. The first, newest(), returns the time step
  // (mark) of the newest entry, 0 if the log is empty. The second, total(), returns the cost of all entries.
  // The third, walk(visit), calls `visit` for the entries, oldest first, until `visit` returns false. Later
  // entries have higher marks.
  template <class Log>
  [[nodiscard]] Answer ask(const Log& log, base::TimePoint now, Cost cost) const noexcept;

  // Returns the step for a cell, which is a log with one entry. Word 0 is the time step (mark) of the entry,
  // and word 1 is its cost.
  [[nodiscard]] Step step(const Cell& cell, base::TimePoint now, Cost cost) const noexcept;
  // Returns the key's state after a charge that this limiter would reject, but that the deciding limiter of
  // the pair admits. Keeps at most `most` units (limit/pair.hpp).
  [[nodiscard]] Cell charge_over_limit(const Cell& cell, base::TimePoint now, Cost cost,
                                       Cost most) const noexcept;
  // Refunds a charge that has not expired, even if the entry with this charge was moved to a later time.
  [[nodiscard]] Cell refund(const Cell& cell, base::TimePoint charged_at, Cost cost) const noexcept;
  // Corrects the entry that contains a charge (limit/settle.hpp), even if that entry was moved to a later
  // time.
  [[nodiscard]] Cell settle(const Cell& cell, base::TimePoint charged_at, Cost reserved,
                            Cost actual) const noexcept;
  [[nodiscard]] base::TimePoint drained_at(const Cell& cell) const noexcept;
  // Returns a state with one entry: the cost of `cell`, but at most the limit. The entry expires at
  // `drained_at`, or less than one step later.
  [[nodiscard]] Cell carry_over(const Cell& cell, base::TimePoint drained_at) const noexcept;

  // Convert between instants and marks (numbers of time steps). In this order: the mark that contains `at`,
  // the first instant of `mark`, and the instant at which the entries of `mark` expire.
  [[nodiscard]] std::uint64_t mark_of(base::TimePoint at) const noexcept;
  [[nodiscard]] base::TimePoint start_of(std::uint64_t mark) const noexcept;
  [[nodiscard]] base::TimePoint expiry_of(std::uint64_t mark) const noexcept;
  // Returns n, the number of time steps (marks) in a period. An entry expires when n steps have passed.
  [[nodiscard]] std::uint64_t marks() const noexcept { return marks_; }
  [[nodiscard]] bool is_exact() const noexcept { return buckets_ == 0; }
  [[nodiscard]] std::uint64_t buckets() const noexcept { return buckets_; }
  // The number of bits that the cost of an entry needs.
  [[nodiscard]] unsigned cost_bits() const noexcept { return is_exact() ? 14 : 32; }
  // The maximum cost of an entry; kMostTotal is the maximum of all entries together.
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
  std::uint64_t buckets_;  // the number of buckets; 0 for an exact log
  std::uint64_t marks_;    // the number of time steps in a period
};

// Presents a cell as a log with one entry.
struct SingleEntry {
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
  if (cost <= rate_.count) {
    // Finds the entry after whose expiry the cost fits. The oldest entries expire first.
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
