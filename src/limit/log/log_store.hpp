// The memory of sliding logs: a fixed number of chunks that all shards of the key table share. A chunk is one
// cache line and holds seven entries.
//
//   chunk  | next 4 | first 1 | count 1 | rule 2 | 7 × 8 bytes of entries |
//
// A log takes a chunk when an admission needs one, and returns the chunk when its entries have expired. A
// store that is as large as one key's longest log can thus serve many short logs. Chunks are linked, so
// nothing is copied. All chunks have one size, so memory does not fragment.
//
// Owned by the key table. Any thread may call `take`, `give_back` and the counters. A chunk belongs to the
// log of one key. Its contents may be used only under the lock of that key's shard. The store's own mutex is
// always locked last.
#pragma once

#include "limit/table/pages.hpp"
#include "limit/table/quota.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace weir::limit {

class LogStore {
 public:
  using Ref = std::uint32_t;  // 1 plus the index of a chunk; 0: no chunk
  static constexpr std::size_t kEntries = 7;

  struct Chunk {
    Ref next;
    std::uint8_t first;  // index of the first live entry; earlier entries have expired
    std::uint8_t count;  // number of live entries
    RuleIndex rule;      // the rule that took the chunk
    std::array<std::uint64_t, kEntries> entries;
  };
  static_assert(sizeof(Chunk) == 64);

  explicit LogStore(std::size_t chunks);

  // Returns an empty chunk, linked to itself. Returns 0 if no chunk is free or the rule has used up its
  // share.
  [[nodiscard]] Ref take(RuleIndex rule) noexcept;
  // Returns a chunk even if the rule has used up its share. Used for entries that a log had before a restart
  // or reload.
  [[nodiscard]] Ref take_beyond_share(RuleIndex rule) noexcept;
  void give_back(Ref chunk) noexcept;
  // Returns to the store all chunks of the ring that contains `chunk`. Does nothing if `chunk` is 0.
  void give_back_ring(Ref chunk) noexcept;

  [[nodiscard]] Chunk& operator[](Ref chunk) const noexcept { return chunks_[chunk - 1]; }

  void share_out(const QuotaAccounts& accounts, QuotaSplit split);
  void add(RuleIndex rule, RuleIndex account);

  // Counts an admission for which no chunk was free. Its cost was added to the newest entry of the log
  // instead.
  void note_merged() noexcept { merged_.fetch_add(1, std::memory_order_relaxed); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t in_use() const noexcept;
  [[nodiscard]] std::uint64_t merged() const noexcept { return merged_.load(std::memory_order_relaxed); }

 private:
  const std::size_t size_;
  const Pages pages_;
  Chunk* const chunks_;
  [[nodiscard]] Ref take_any(RuleIndex rule) noexcept;

  mutable std::mutex mutex_;  // guards the members below
  Quota quota_;
  Ref free_ = 0;             // the first free chunk; 0: no free chunk
  std::size_t touched_ = 0;  // number of chunks ever used; the pages of all other chunks are not resident
  std::size_t in_use_ = 0;
  std::atomic<std::uint64_t> merged_{0};
};

}  // namespace weir::limit
