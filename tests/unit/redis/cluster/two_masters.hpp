// A Redis Cluster of the test's own: two masters, each with half of the slots unless the test says otherwise.
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
  // `first`: how many slots the first one keeps. Returns once each of them knows who keeps what.
  explicit TwoMasters(Slot first = kSlots / 2);

  [[nodiscard]] Server& operator[](std::size_t node) noexcept { return *nodes_[node]; }
  [[nodiscard]] RedisSettings settings(base::Duration timeout) const;
  void empty();
  // A slot of the first node's is on its way to the second, with so many of its keys. Afterwards it stays.
  void begin_move(Slot slot, std::size_t keys);
  void give_up_move(Slot slot);
  // The second node keeps it from now on, and neither of them has any keys.
  void give(Slot slot);

  // The n-th key that this node keeps, where each has half of the slots. Those of other numbers lie in other
  // slots.
  [[nodiscard]] static limit::Key key_at(std::size_t node, std::uint64_t n);

 private:
  std::array<unsigned short, 2> ports_{};
  std::array<std::unique_ptr<Server>, 2> nodes_;
};

}  // namespace weir::redis
