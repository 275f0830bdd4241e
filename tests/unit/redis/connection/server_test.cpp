#include "unit/redis/connection/server.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::redis {

// If the port is taken, the fixture tries another.
TEST(RedisServer, TestServerStartsOnAnotherPortIfItsPortIsTaken) {
  const auto taken = free_port();
  const Server first({"--bind", "127.0.0.1", "--port", std::to_string(taken)});
  int asked = 0;
  const auto second = start_on_ports([&] {
    return std::vector<std::string>{"--bind", "127.0.0.1", "--port",
                                    std::to_string(asked++ == 0 ? taken : free_port())};
  });
  EXPECT_EQ(second->ask({"PING"}).text, "PONG");
  EXPECT_GE(asked, 2);
}

// Tests the fixture: a server starts, answers, dies and comes back empty.
TEST(RedisServer, TestServerCanBeKilledAndStartedAgain) {
  Server server;
  EXPECT_EQ(server.ask({"SET", "a", "1"}).text, "OK");
  EXPECT_EQ(server.info("keyspace", "db0").substr(0, 6), "keys=1");
  server.kill();
  EXPECT_THROW(server.ask({"PING"}), std::runtime_error);
  server.start();
  EXPECT_EQ(server.ask({"GET", "a"}).kind, Reply::Kind::Nil);
}

}  // namespace weir::redis
