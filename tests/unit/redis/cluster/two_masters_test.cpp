#include "unit/redis/cluster/two_masters.hpp"

#include "redis/scripts/bill.hpp"

#include "weir/limit/slot_hash.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weir::redis {

TEST(TwoMasters, EachMasterServesOnlyTheKeysOfItsSlots) {
  TwoMasters cluster;
  for (std::size_t node = 0; node < 2; ++node) {
    const auto tag = tag_of(limit::slot_hash_of(TwoMasters::key_at(node, 7)));
    const auto name = "{" + std::string(tag.data(), tag.size()) + "}";
    EXPECT_EQ(cluster[node].ask({"SET", name, "1"}).text, "OK");
    EXPECT_EQ(cluster[1 - node].ask({"SET", name, "1"}).text.substr(0, 6), "MOVED ");
  }
}

}  // namespace weir::redis
