// The map from the slots of a Redis Cluster to its nodes, and the errors with which a node redirects a
// command (redis.io, "Redis cluster specification"). Pure.
#pragma once

#include "weir/base/endpoint.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace weir::redis {

using Slot = std::uint16_t;
inline constexpr std::size_t kSlots = 16384;

// Returns the slot of a key: CRC-16/XMODEM of the key or of its hash tag. The hash tag is the text between
// the first '{' and the next '}', if that text is not empty.
[[nodiscard]] Slot slot_of(std::string_view key) noexcept;

// The master of each slot, as reported by one node.
class SlotMap {
 public:
  // Parses a reply to CLUSTER NODES. `asked`: the address of the node that replied, because a node may not
  // know its own address. The map has no slots for a node whose address is unknown. Returns nullopt if the
  // text is not a reply to CLUSTER NODES.
  [[nodiscard]] static std::optional<SlotMap> read(std::string_view nodes, const base::Endpoint& asked);

  // Returns the address of the slot's master; null if no node serves the slot.
  [[nodiscard]] const base::Endpoint* owner(Slot slot) const noexcept {
    return owners_[slot] == kNobody ? nullptr : &masters_[owners_[slot]];
  }
  [[nodiscard]] std::span<const base::Endpoint> masters() const noexcept { return masters_; }
  [[nodiscard]] std::size_t served() const noexcept;

  // Sets the owner of one slot, after the error MOVED has reported the owner. Reading the whole map again
  // replaces this change.
  void move(Slot slot, const base::Endpoint& to);

 private:
  static constexpr std::uint16_t kNobody = 0xffff;

  SlotMap() { owners_.fill(kNobody); }
  [[nodiscard]] bool add(std::string_view line, const base::Endpoint& asked);
  [[nodiscard]] bool give(std::string_view range, std::uint16_t master) noexcept;

  std::vector<base::Endpoint> masters_;
  std::array<std::uint16_t, kSlots> owners_;  // for each slot, an index into masters_
};

struct Redirection {
  enum class Kind : std::uint8_t {
    Moved,  // the slot has moved: the map is out of date
    Ask,    // the slot is still moving: send only this command to the address, and ASKING before it
  };
  Kind kind;
  Slot slot;
  base::Endpoint to;
};

// Parses "MOVED 3999 127.0.0.1:6381" or "ASK …". `from`: the address of the node that replied. If the error
// has no host, the result has the host of `from`.
[[nodiscard]] std::optional<Redirection> redirection_in(std::string_view error, const base::Endpoint& from);

}  // namespace weir::redis
