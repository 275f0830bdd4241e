// A Redis Cluster of two masters for one test. Each master has half of the slots unless the test chooses
// otherwise.
#pragma once

#include "redis/cluster/cluster_slots.hpp"
#include "unit/redis/connection/server.hpp"

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/redis/redis_settings.hpp"

#include <array>
#include <cstdint>
#include <memory>

namespace weir::redis {

class TwoMasters {
 public:
  // `first`: the number of slots of the first master. Waits until both masters know the owner of each slot.
  explicit TwoMasters(Slot first = kSlots / 2);

  [[nodiscard]] Server& operator[](std::size_t node) noexcept { return *nodes_[node]; }
  [[nodiscard]] RedisSettings settings(base::Duration timeout) const;
  void empty();
  // Starts to move a slot from the first node to the second, and moves `keys` keys of the slot.
  void begin_move(Slot slot, std::size_t keys);
  // Cancels the move. The slot stays on the first node.
  void give_up_move(Slot slot);
  // Gives the slot to the second node. REQUIRES: neither node has keys of the slot.
  void give(Slot slot);

  // Returns a key on the node, for a cluster with half of the slots on each node. Keys with different `n` are
  // in different slots.
  [[nodiscard]] static limit::Key key_at(std::size_t node, std::uint64_t n);

 private:
  std::array<unsigned short, 2> ports_{};
  std::array<std::unique_ptr<Server>, 2> nodes_;
};

}  // namespace weir::redis
