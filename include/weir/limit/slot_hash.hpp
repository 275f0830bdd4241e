// SlotHash: the part of a key that selects its Redis node in a cluster. ChargeSet: a set of charges of one
// bill (a bill: all charges of a request). Plain values.
#pragma once

#include "weir/limit/charge.hpp"

#include <cstddef>
#include <cstdint>

namespace weir::limit {

// All keys of one client share a slot hash, and slot hashes are spread over the nodes of a Redis Cluster. In
// a cluster the slot hash is the first 16 bits of a key; the other 112 bits distinguish the client's keys.
using SlotHash = std::uint16_t;

[[nodiscard]] constexpr SlotHash slot_hash_of(const Key& key) noexcept {
  return static_cast<SlotHash>(key.hi >> 48);
}
[[nodiscard]] constexpr Key with_slot_hash(Key key, SlotHash slot_hash) noexcept {
  key.hi = (key.hi & (~std::uint64_t{0} >> 16)) | std::uint64_t{slot_hash} << 48;
  return key;
}

// A set of charges of one bill: bit n stands for the charge with index n.
using ChargeSet = std::uint32_t;
static_assert(kMaxCharges <= 32);
[[nodiscard]] constexpr ChargeSet all_charges(std::size_t lines) noexcept {
  return lines == 0 ? 0 : ~ChargeSet{0} >> (32 - lines);
}

}  // namespace weir::limit
