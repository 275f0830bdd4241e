#include "weir/net/ticket_keys.hpp"

#include <gtest/gtest.h>

namespace weir::net {
namespace {

using std::chrono::hours;
using Instant = TicketKeys::Instant;

class TicketKeysTest : public ::testing::Test {
 protected:
  static Instant at(int hour) { return Instant{} + hours(hour); }
  TicketKey issued(int hour) { return keys.current(at(hour)).value(); }
  std::optional<TicketKeys::Found> found(const TicketKey& key, int hour) {
    return keys.find(key.name, at(hour));
  }

  TicketKeys keys{hours(4)};
};

TEST_F(TicketKeysTest, AllTicketsOfOnePeriodHaveTheSameKey) {
  const auto first = issued(100);
  EXPECT_EQ(issued(103).name, first.name);
  EXPECT_NE(issued(104).name, first.name);
}

TEST_F(TicketKeysTest, TlsTicketOfThePreviousPeriodIsAcceptedAndRenewed) {
  const auto first = issued(100);
  ASSERT_TRUE(found(first, 103));
  EXPECT_TRUE(found(first, 103)->current);
  ASSERT_TRUE(found(first, 104));
  EXPECT_FALSE(found(first, 104)->current);
  EXPECT_EQ(found(first, 107)->key.cipher, first.cipher);
  EXPECT_FALSE(found(first, 108));
}

TEST_F(TicketKeysTest, TicketKeyExpiresEvenIfNoNextKeyIsRequested) {
  const auto first = issued(100);
  EXPECT_FALSE(found(first, 200));
}

TEST_F(TicketKeysTest, NoKeyIsFoundForAnUnknownKeyName) {
  (void)issued(100);
  EXPECT_FALSE(found(TicketKey{}, 100));
}

TEST_F(TicketKeysTest, EachListenerHasItsOwnKeys) {
  TicketKeys other{hours(4)};
  const auto ours = issued(100);
  const auto theirs = other.current(at(100)).value();
  EXPECT_NE(ours.name, theirs.name);
  EXPECT_NE(ours.cipher, theirs.cipher);
  EXPECT_NE(ours.mac, theirs.mac);
}

}  // namespace
}  // namespace weir::net
