#include "weir/net/name_lookup.hpp"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace weir::net {
namespace {

void await_end(NameLookup& lookup) {
  while (lookup.is_under_way()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(NameLookup, FindsTheAddressesOfAName) {
  NameLookup lookup;
  EXPECT_FALSE(lookup.is_under_way());
  lookup.begin({"localhost", 80, {}});
  await_end(lookup);
  EXPECT_EQ(lookup.fault(), "");
  ASSERT_FALSE(lookup.known().empty());
  EXPECT_EQ(peer_port(lookup.known().front()), 80);
}

TEST(NameLookup, KeepsKnownAddressesWhenALaterLookUpFails) {
  NameLookup lookup;
  lookup.begin({"localhost", 80, {}});
  await_end(lookup);
  lookup.begin({"no such host", 80, {}});
  await_end(lookup);
  EXPECT_NE(lookup.fault(), "");
  EXPECT_FALSE(lookup.known().empty());
}

TEST(NameLookup, CanBeDestroyedDuringALookUp) {
  for (int round = 0; round < 20; ++round) {
    NameLookup lookup;
    lookup.begin({"localhost", 80, {}});
  }
}

}  // namespace
}  // namespace weir::net
