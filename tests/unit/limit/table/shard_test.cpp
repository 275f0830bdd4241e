// The table may move keys to make room for a new key, but must not move a key that the present request is
// charging.
#include "unit/limit/traffic.hpp"

#include "weir/limit/key_table.hpp"

#include <vector>

namespace weir::limit {
namespace {

// Charges requests with many known keys and one new key, in full tables. The new key can get a slot only if
// another key moves. Some of the keys that could move belong to the same request.
TEST(Shard, NewKeyNeverMovesAnotherKeyOfItsOwnRequest) {
  constexpr std::uint64_t kTables = 100, kKnown = 60, kNewcomers = 20, kTogether = 24;
  const Limiter limiter = FixedWindow::make({1'000, 24h}).value();
  const auto line = [&](std::uint64_t client) { return Charge{key_of(client), &limiter}; };
  std::vector<Charge> bill;
  std::vector<Outcome> outcomes;
  std::uint64_t came = 0;
  const auto charge = [&](KeyTable& table) {
    outcomes.assign(bill.size(), {});
    return table.charge(bill, kStart, outcomes);
  };
  for (std::uint64_t salt = 0; salt < kTables * 1'000; salt += 1'000) {
    KeyTable table(kKnown);
    std::vector<std::uint64_t> used(kKnown, 1);
    for (std::uint64_t i = 0; i < kKnown; ++i) {
      bill = {line(salt + i)};
      ASSERT_TRUE(charge(table));
      ASSERT_FALSE(outcomes[0].overflow);
    }
    for (std::uint64_t newcomer = 0; newcomer < kNewcomers; ++newcomer) {
      bill.clear();
      for (std::uint64_t i = 0; i < kTogether; ++i) {
        const auto known = (newcomer * kTogether + i) % kKnown;
        bill.push_back(line(salt + known));
        ++used[known];
      }
      bill.push_back(line(salt + kKnown + newcomer));
      ASSERT_TRUE(charge(table));
      came += outcomes.back().overflow ? 0 : 1;
    }
    for (std::uint64_t i = 0; i < kKnown; ++i)
      ASSERT_EQ(table.peek(line(salt + i), kStart).remaining, 999 - used[i])
          << "table " << salt << " key " << i;
  }
  EXPECT_GT(came, kTables * 5) << "new keys found slots";
}

}  // namespace
}  // namespace weir::limit
