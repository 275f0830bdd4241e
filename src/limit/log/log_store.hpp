// The memory of logs: a fixed number of chunks that all shards share, each a cache line of seven entries.
//
//   chunk  | next 4 | first 1 | count 1 | rule 2 | 7 × 8 bytes of entries |
//
// A log takes a chunk when an admission needs one and gives it back when its entries have expired, so a
// store as large as one key's longest log serves many short ones. Chunks are linked, not grown: nothing is
// ever copied, and there is one size, so nothing fragments.
//
// Owned by the key table. `take`, `give_back` and the counts may be called by any thread; the contents of a
// chunk belong to whoever holds the lock of the key whose log it is in. Its own mutex is the last to be
// taken.
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
  using Ref = std::uint32_t;  // 0: none
  static constexpr std::size_t kEntries = 7;

  struct Chunk {
    Ref next;
    std::uint8_t first;  // entries before it have expired
    std::uint8_t count;  // entries from `first` on
    RuleIndex rule;      // that took it
    std::array<std::uint64_t, kEntries> entries;
  };
  static_assert(sizeof(Chunk) == 64);

  explicit LogStore(std::size_t chunks);

  // An empty chunk, linked to itself; 0 when there is none left, or the rule has its share.
  [[nodiscard]] Ref take(RuleIndex rule) noexcept;
  // The same for what a log had already, whatever the rule's share is now.
  [[nodiscard]] Ref take_beyond_share(RuleIndex rule) noexcept;
  void give_back(Ref chunk) noexcept;
  // Every chunk of a ring, whichever of them is named; 0 is an empty ring.
  void give_back_ring(Ref chunk) noexcept;

  [[nodiscard]] Chunk& operator[](Ref chunk) const noexcept { return chunks_[chunk - 1]; }

  void share_out(const Accounts& accounts, Split split) noexcept;

  // An admission found no chunk, and was entered with the one before it.
  void note_merged() noexcept { merged_.fetch_add(1, std::memory_order_relaxed); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t in_use() const noexcept;
  [[nodiscard]] std::uint64_t merged() const noexcept { return merged_.load(std::memory_order_relaxed); }

 private:
  const std::size_t size_;
  const Pages pages_;
  Chunk* const chunks_;
  [[nodiscard]] Ref take_any(RuleIndex rule) noexcept;

  mutable std::mutex mutex_;  // of what follows
  Quota quota_;
  Ref free_ = 0;             // the first of those given back
  std::size_t touched_ = 0;  // chunks beyond it were never used, and their pages are not resident
  std::size_t in_use_ = 0;
  std::atomic<std::uint64_t> merged_{0};
};

}  // namespace weir::limit
