// The penalties and violations (limit/penalty.hpp) of the keys of one shard. Only keys with violations have
// an entry.
//
// The memory is bounded. A rule gets a new entry only if the bytes that stay free are at least as many as the
// bytes of the rule's other entries. So one rule alone uses at most half of the memory, and other rules find
// room. The account of a rule is the sum of the bytes of its entries. (This is the dynamic threshold of
// Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998.) A
// violation that finds no room is not counted. The table never drops an entry that is still needed. If the
// table is full, a violation first removes entries that are no longer needed. This search reads the whole
// table, so it runs at most once a second.
//
// Owned by a shard. REQUIRES for every member: the caller holds the shard's mutex.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/limit/penalty.hpp"
#include "weir/limit/saved.hpp"

#include <cstddef>
#include <cstdint>

#include <boost/unordered/unordered_flat_map.hpp>

namespace weir::limit {

class PenaltyTable {
 public:
  // The bytes that an entry takes in the hash table and the allocator, without the instants in its lists.
  static constexpr std::size_t kEntryBytes = 176;
  static constexpr std::size_t kBytesPerTime = sizeof(base::TimePoint);
  static constexpr std::size_t kAccountBytes = 48;  // what by_account_ takes for each rule that has entries

  // Must be called once, before all other members. `bytes`: the memory that the entries may use.
  void open(std::size_t bytes) noexcept { bytes_ = bytes; }

  // Returns the state of the key; null if the key has none.
  [[nodiscard]] const PenaltyState* find(const Key& key) const noexcept;
  // Notes a violation of the key. Returns true if a penalty begins with it. If there is no memory, changes
  // nothing but the number of lost violations, and returns false. REQUIRES: the key's penalty has ended.
  bool violate(const Key& key, RuleIndex rule, const Penalty& penalty, base::TimePoint now) noexcept;
  // Removes the key's entry. Returns true if there was one.
  bool forget(const Key& key) noexcept;
  // Removes entries that are no longer needed.
  void sweep(base::TimePoint now) noexcept;

  // Restores the entry of a key. If the key already has an entry, keeps that one. Returns false if there is
  // no room.
  bool restore(const SavedPenalty& saved) noexcept;
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [key, entry] : entries_) visit(key, entry.forgotten_at, entry.state);
  }

  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }
  [[nodiscard]] std::size_t keys() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    PenaltyState state{};
    base::TimePoint forgotten_at{};
    // the RuleIndex whose account includes the entry; kRestored: the entry came from a snapshot
    std::uint16_t account = 0;
  };
  static constexpr std::uint16_t kRestored = kMaxRules;
  // Returns the key's own bits as its hash, because a key is a digest under a secret key, and so random.
  struct KeyHash {
    using is_avalanching = void;
    std::size_t operator()(const Key& key) const noexcept { return key.lo; }
  };

  [[nodiscard]] static std::size_t bytes_of(const Entry& entry) noexcept;
  [[nodiscard]] bool has_room(std::uint16_t account, std::size_t bytes) const noexcept;
  [[nodiscard]] std::size_t used() const noexcept { return used_ + by_account_.size() * kAccountBytes; }
  void release_bytes(const Entry& entry) noexcept;
  // Removes the account of a rule from by_account_ if the rule has no entry left.
  void drop_unused(std::uint16_t account) noexcept;
  bool violate_or_throw(const Key& key, RuleIndex rule, const Penalty& penalty, base::TimePoint now);

  boost::unordered_flat_map<Key, Entry, KeyHash> entries_;
  // The accounts: for each RuleIndex that has entries, the bytes of these entries.
  boost::unordered_flat_map<std::uint16_t, std::size_t> by_account_;
  std::size_t bytes_ = 0, used_ = 0;  // used_: bytes of all entries
  base::TimePoint next_sweep_{};      // when a full table may be swept again
  std::uint64_t lost_ = 0;
};

}  // namespace weir::limit
