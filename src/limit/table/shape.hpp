// The number and size of shards, buckets and chunks for a given number of keys.
#pragma once

#include "limit/log/log_store.hpp"
#include "limit/table/shard.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace weir::limit {

inline constexpr std::size_t kMaxShards = 256;
inline constexpr std::size_t kMaxKeys = std::size_t{1} << 30;
// The minimum number of keys in a shard. Random keys would fill smaller shards too unevenly.
inline constexpr std::size_t kKeysPerShard = 1024;

// Returns the number of slots for `keys` keys: a fifth more slots than keys. A million random keys are spread
// over 256 shards with deviations of at most 5 % (three standard deviations). So the fullest shard is at most
// 88 % full. At 88 %, every key finds a slot in its two buckets, if one other key may move.
constexpr std::size_t with_slack(std::size_t keys) noexcept {
  return keys + keys / 5;
}

// The bytes that a table may use for each key. Logs get the memory that the slots do not use, but at least
// kLeastForLogs.
inline constexpr std::size_t kBytesPerKey = 64;
inline constexpr std::size_t kLeastForLogs = std::size_t{1} << 20;

// The memory that penalties may use (limit/table/penalty_table.hpp): kPenaltyBytesPerKey for each key of the
// table, but at least kLeastForPenalties.
inline constexpr std::size_t kPenaltyBytesPerKey = 16;
inline constexpr std::size_t kLeastForPenalties = std::size_t{1} << 20;

constexpr std::size_t round_up(std::size_t value, std::size_t unit) noexcept {
  return (value + unit - 1) / unit * unit;
}

struct Shape {
  std::size_t shards;      // a power of two
  std::uint32_t buckets;   // number of buckets in each shard
  std::size_t tags_size;   // bytes of tags in a shard
  std::size_t shard_size;  // bytes of tags and slots in a shard
  std::size_t chunks;      // number of chunks in the log store
  std::size_t penalties;   // bytes that penalties may use in a shard

  explicit Shape(std::size_t keys) noexcept {
    shards = std::bit_floor(std::clamp(keys / kKeysPerShard, std::size_t{1}, kMaxShards));
    const std::size_t slots = round_up(with_slack(keys), shards) / shards;
    buckets =
        static_cast<std::uint32_t>(std::max(round_up(slots, kBucketSlots) / kBucketSlots, std::size_t{2}));
    tags_size = round_up(buckets * kBucketSlots * sizeof(Shard::Tag), kCacheLine);
    shard_size = round_up(tags_size + buckets * kBucketSlots * sizeof(Slot), kCacheLine);
    const std::size_t bound = keys * kBytesPerKey;
    const std::size_t for_logs = bound - std::min(bound, shards * shard_size);
    chunks = std::max(for_logs, kLeastForLogs) / sizeof(LogStore::Chunk);
    penalties = std::max(keys * kPenaltyBytesPerKey, kLeastForPenalties) / shards;
  }

  [[nodiscard]] std::size_t shard_slots() const noexcept { return buckets * kBucketSlots; }
  // Returns how the slots of each shard are divided among the rules. A twelfth of the slots must stay free.
  // Otherwise both buckets of some keys would be full, so a rule could not use its reserved slots.
  [[nodiscard]] QuotaSplit split_of_slots(std::size_t rules) const noexcept {
    return split(shard_slots(), shard_slots() - shard_slots() / 12, rules);
  }
  [[nodiscard]] QuotaSplit split_of_chunks(std::size_t rules) const noexcept {
    return split(chunks, chunks, rules);
  }
};

}  // namespace weir::limit
