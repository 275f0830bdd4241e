// The log of one key: its cell, and a ring of chunks if it has more than one entry. A mark is the number of a
// time step (limit/sliding_log.hpp).
//
//   cell word 0  mark of the newest entry
//   cell word 1  total cost of all entries (low 32 bits) | the chunk of the newest entry (high 32; 0: none)
//
//                 ┌────────────────────────────────┐
//   newest chunk ─┴► oldest ─► … ─► newest chunk ───┘
//
// Invariants
//  1. Without entries both words are zero. A single entry may be in the cell alone. Otherwise every entry is
//     in a chunk, no chunk is empty, and marks ascend from the oldest entry on.
//  2. An entry stores only the low bits of its mark. The high bits follow from the newest mark, which is less
//     than 2^50 marks later (2^32 with buckets). SlidingLog::kLongest and kMostBuckets guarantee that
//     distance.
//
// A Log object lives on the stack of a key table function, which holds the lock of the cell's shard.
#pragma once

#include "limit/log/log_store.hpp"

#include "weir/limit/sliding_log.hpp"

namespace weir::limit {

class LogReader {
 public:
  LogReader(const Cell& cell, const LogStore& store, unsigned cost_bits) noexcept
      : cell_(cell), store_(store), cost_bits_(cost_bits) {}

  [[nodiscard]] std::uint64_t newest() const noexcept { return cell_.words[0]; }
  [[nodiscard]] Cost total() const noexcept { return cell_.words[1] & 0xffff'ffff; }
  [[nodiscard]] LogStore::Ref tail() const noexcept { return tail_of(cell_); }
  [[nodiscard]] static LogStore::Ref tail_of(const Cell& cell) noexcept {
    return static_cast<LogStore::Ref>(cell.words[1] >> 32);
  }

  // Calls `visit` for the entries, oldest first, until `visit` returns false.
  template <class Visit>
  void walk(Visit visit) const {
    if (total() == 0) return;
    if (tail() == 0) {
      visit(LogEntry{newest(), total()});
      return;
    }
    LogStore::Ref at = tail();
    do {
      at = store_[at].next;
      const auto& chunk = store_[at];
      for (std::size_t i = chunk.first; i < std::size_t{chunk.first} + chunk.count; ++i)
        if (!visit(unpacked(chunk.entries[i]))) return;
    } while (at != tail());
  }

 protected:
  [[nodiscard]] LogEntry unpacked(std::uint64_t word) const noexcept {
    const std::uint64_t age = ((newest() << cost_bits_) - (word >> cost_bits_ << cost_bits_)) >> cost_bits_;
    return {newest() - age, word & ((std::uint64_t{1} << cost_bits_) - 1)};
  }

  const Cell& cell_;
  const LogStore& store_;
  const unsigned cost_bits_;
};

class Log : public LogReader {
 public:
  Log(Cell& cell, LogStore& store, unsigned cost_bits) noexcept
      : LogReader(cell, store, cost_bits), own_(cell), chunks_(store) {}

  // Removes the entries that have expired at the time step `mark`: those whose own time step plus `span` is
  // at most `mark`. This does not change any outcome.
  void forget(std::uint64_t mark, std::uint64_t span) noexcept;
  // Returns true if a new entry at the time step (mark) `mark` would need another chunk.
  [[nodiscard]] bool wants_chunk(std::uint64_t mark) const noexcept;
  // Adds an entry. If wants_chunk(), `spare` must be an empty chunk, or 0 if no chunk is free. Without a
  // chunk, adds the cost to the newest entry, which also gets the mark of `entry`. REQUIRES: entry.mark ≥
  // newest(), 0 < entry.cost ≤ SlidingLog::kMostTotal − total().
  void push(const LogEntry& entry, LogStore::Ref spare) noexcept;

  // Refunds entry.cost from the first entries at or after the time step (mark) entry.mark; a mark of 0 means
  // the oldest entries. A later entry may contain the charge, if another worker's clock was ahead or no
  // chunk was left. The caller must have checked that the charge has not expired.
  void refund_from(const LogEntry& entry) noexcept;
  // Adds entry.cost to the log entry that contains an earlier charge. The log entry grows to `most_entered`
  // at most, and the log to SlidingLog::kMostTotal at most. Returns false if no log entry contains the
  // charge.
  [[nodiscard]] bool add_from(const LogEntry& entry, Cost most_entered) noexcept;

 private:
  [[nodiscard]] Cost refund_first(const LogEntry& entry) noexcept;
  void set(std::uint64_t newest, Cost total, LogStore::Ref tail) noexcept {
    own_.words = {newest, (std::uint64_t{tail} << 32) | total};
  }
  [[nodiscard]] std::uint64_t packed(const LogEntry& entry) const noexcept {
    return (entry.mark << cost_bits_) | entry.cost;
  }
  void clear() noexcept;
  void append(std::uint64_t word, LogStore::Ref spare) noexcept;
  void erase(LogStore::Ref before, LogStore::Ref at, std::size_t index) noexcept;
  // Returns the first entry at or after `mark`, a time step. Returns an entry of cost 0 if there is none. If
  // the entry is in a chunk, sets `*word` to the address of its word there.
  [[nodiscard]] LogEntry first_from(std::uint64_t mark, std::uint64_t** word) const noexcept;

  Cell& own_;
  LogStore& chunks_;
};

}  // namespace weir::limit
