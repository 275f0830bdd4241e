// Tests that resets of many keys do not change the permits of other keys.
#include "limit/table/resets.hpp"

#include "unit/limit/traffic.hpp"

#include "weir/limit/key_table.hpp"

namespace weir::limit {
namespace {

// The table ignores refunds of charges that were made before a reset of their key. After very many resets, it
// treats every key as reset. Even then it must not ignore the release of a permit, because nothing else would
// free the permit. (A key with permits is never reset.)
TEST(Resets, PermitIsStillReleasedAfterVeryManyResets) {
  KeyTable table(1'000);
  const Limiter one = Concurrency::make(1).value();
  const Charge place{key_of(1), &one};
  Outcome outcome;
  ASSERT_TRUE(table.charge({&place, 1}, kStart, {&outcome, 1}));
  for (std::uint64_t client = 0; client < 2 * Resets::kMost; ++client)
    (void)table.forget(key_of(2 + client), kStart + 1s);
  table.release(place, kStart + 2s, {}, false);
  EXPECT_TRUE(table.peek(place, kStart + 2s).allowed) << "the permit is never released";
}

}  // namespace
}  // namespace weir::limit
