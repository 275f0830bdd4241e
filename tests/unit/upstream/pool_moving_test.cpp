#include "unit/upstream/pool_stage.hpp"

#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

// The server's name now has the address of another machine. Idle connections to the old machine are closed.
// Active connections remain until their exchange (request and answer) is complete.
TEST_F(PoolTest, ConnectionsToOldAddressesOfAServerAreClosed) {
  auto& p = open(2);
  const auto first = servers[0].addresses.front();
  const auto second = servers[1].addresses.front();
  auto waits = p.lease({.tried = 0b10});
  auto works = p.lease({.tried = 0b10});
  ASSERT_FALSE(connected(waits));
  ASSERT_FALSE(connected(works));
  waits.keep();
  waits = {};
  server_group->member(0).move_to({second}, now);
  EXPECT_TRUE(works.moved());
  EXPECT_TRUE(works.connected());
  works.keep();
  works = {};
  auto lease = p.lease({.tried = 0b10});
  EXPECT_FALSE(lease.connected()) << "both connections led to the old address";
  ASSERT_FALSE(connected(lease));
  EXPECT_FALSE(lease.moved());
  EXPECT_EQ(net::remote_endpoint(lease.connection().native_handle()), second);
  lease.keep();
  lease = {};
  server_group->member(0).move_to({first, second}, now);
  lease = p.lease({.tried = 0b10});
  EXPECT_TRUE(lease.reused()) << "connections to an address that stays are kept";
  server_group->member(0).move_to({second, first}, now);
  lease.keep();
  lease = {};
  EXPECT_TRUE(p.lease({.tried = 0b10}).reused());
}

TEST_F(PoolTest, IdleConnectionsToOldAddressesAreClosedAtTheNextWatchdogTick) {
  auto& p = open(1);
  {
    auto lease = p.lease({});
    ASSERT_FALSE(connected(lease));
    lease.keep();
  }
  auto theirs = accept(0);
  open_elsewhere();
  pass(2);
  EXPECT_EQ(net::receive(theirs.native_handle()), "") << "the connection is still open";
}

TEST_F(PoolTest, NewAddressesOfAServerApplyToTheNewAndTheOldConfiguration) {
  open(1);
  const auto before = server_group->servers();
  ServerGroup newer(settings, servers, {}, &*server_group);
  open_elsewhere();
  EXPECT_EQ(newer.servers(), server_group->servers());
  EXPECT_NE(newer.servers(), before);
}

TEST(ResolveServers, ErrorNamesTheUpstreamAndTheServer) {
  UpstreamSettings settings;
  settings.name = "api";
  settings.servers = {{.address = {.host = "no such host", .port = 1, .unix_path = {}}}};
  const auto servers = resolve_servers(settings);
  ASSERT_FALSE(servers);
  EXPECT_TRUE(servers.error().message.starts_with("upstream \"api\": cannot resolve \"no such host\": "));
}

}  // namespace
}  // namespace weir::upstream
