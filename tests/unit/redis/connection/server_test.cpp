#include "unit/redis/connection/server.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::redis {

// Tests the helper start_on_ports(), which must try another port if the first one is in use.
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

// Tests the fixture Server: it starts, answers, can be killed, and is empty after a restart.
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
