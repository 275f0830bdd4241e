// Which node of a Redis Cluster keeps which keys, and what nodes say when a client asks the wrong one
// (redis.io, "Redis cluster specification"). Pure.
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

// CRC-16/XMODEM of the key, or of its hash tag: what stands between its first '{' and the next '}', where
// that is something.
[[nodiscard]] Slot slot_of(std::string_view key) noexcept;

// Who is the master of each slot, as one node saw it.
class SlotMap {
 public:
  // The answer to CLUSTER NODES of the node at `asked`, which may not know its own address. Nodes without an
  // address own nothing here. nullopt where it is no such answer.
  [[nodiscard]] static std::optional<SlotMap> read(std::string_view nodes, const base::Endpoint& asked);

  // Null where nobody serves it.
  [[nodiscard]] const base::Endpoint* owner(Slot slot) const noexcept {
    return owners_[slot] == kNobody ? nullptr : &masters_[owners_[slot]];
  }
  [[nodiscard]] std::span<const base::Endpoint> masters() const noexcept { return masters_; }
  [[nodiscard]] std::size_t served() const noexcept;

  // After MOVED: what is known at once of one slot, before the whole is read anew.
  void move(Slot slot, const base::Endpoint& to);

 private:
  static constexpr std::uint16_t kNobody = 0xffff;

  SlotMap() { owners_.fill(kNobody); }
  [[nodiscard]] bool add(std::string_view line, const base::Endpoint& asked);
  [[nodiscard]] bool give(std::string_view range, std::uint16_t master) noexcept;

  std::vector<base::Endpoint> masters_;
  std::array<std::uint16_t, kSlots> owners_;  // an index into masters_
};

struct Redirection {
  enum class Kind : std::uint8_t {
    Moved,  // for good: the map is out of date
    Ask,    // for this command alone, after ASKING: the slot is on its way there
  };
  Kind kind;
  Slot slot;
  base::Endpoint to;
};

// "MOVED 3999 127.0.0.1:6381" or "ASK …". An address without a host means that of the node that said so,
// `from`.
[[nodiscard]] std::optional<Redirection> redirection_in(std::string_view error, const base::Endpoint& from);

}  // namespace weir::redis
