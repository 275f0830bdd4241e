// The log of one key: its cell, and a ring of chunks once it has more than one entry.
//
//   cell word 0  mark of the newest entry
//   cell word 1  total cost of all entries (low 32 bits) | the chunk of the newest entry (high 32; 0: none)
//
//                 ┌────────────────────────────────┐
//   newest chunk ─┴► oldest ─► … ─► newest chunk ───┘
//
// Invariants
//  1. No entry: both words are zero. One entry and no chunk: the cell says it all. Otherwise every entry is
//  in
//     a chunk, every chunk has one, and marks ascend from the oldest on.
//  2. An entry keeps the low bits of its mark; the rest follows from the newest one, which is less than 2^50
//     marks (32 with buckets) younger: SlidingLog::kLongest and kMostBuckets see to it.
//
// Lives on the stack of the key table, under the lock of the cell's shard.
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

  // The entries, oldest first, until `visit` returns false.
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

  // Drops the entries whose mark + `span` is `mark` or earlier: nobody can tell.
  void forget(std::uint64_t mark, std::uint64_t span) noexcept;
  // Whether an entry at `mark` needs a chunk more.
  [[nodiscard]] bool wants_chunk(std::uint64_t mark) const noexcept;
  // REQUIRES entry.mark ≥ newest(), 0 < entry.cost ≤ SlidingLog::kMostTotal − total(). `spare`: an empty
  // chunk if one is wanted; 0, and the newest entry moves to the mark and takes the cost.
  void push(const LogEntry& entry, LogStore::Ref spare) noexcept;

  // What was entered at a mark may stand later: another's clock was ahead, or no chunk was left. These two
  // look for it from its mark on. REQUIRES that it counts still.
  void take_back_from(const LogEntry& entry) noexcept;
  // More for the entry that took it, as much as there is room for. False where there is none.
  [[nodiscard]] bool add_from(const LogEntry& entry, Cost most_entered) noexcept;

 private:
  [[nodiscard]] Cost take_back_first(const LogEntry& entry) noexcept;
  void set(std::uint64_t newest, Cost total, LogStore::Ref tail) noexcept {
    own_.words = {newest, (std::uint64_t{tail} << 32) | total};
  }
  [[nodiscard]] std::uint64_t packed(const LogEntry& entry) const noexcept {
    return (entry.mark << cost_bits_) | entry.cost;
  }
  void clear() noexcept;
  void append(std::uint64_t word, LogStore::Ref spare) noexcept;
  void erase(LogStore::Ref before, LogStore::Ref at, std::size_t index) noexcept;
  // The first entry at a mark or after it; of no cost where there is none. In chunks, `word` is where it
  // stands.
  [[nodiscard]] LogEntry first_from(std::uint64_t mark, std::uint64_t** word) const noexcept;

  Cell& own_;
  LogStore& chunks_;
};

}  // namespace weir::limit
