// Tests idle connections that have been silent for so long that they skip ticks of the watchdog.
#include "unit/net/ticks.hpp"
#include "unit/proxy/serving_fixture.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using namespace std::chrono_literals;

class IdleTest : public ::testing::Test {
 protected:
  static Configuration configuration() {
    auto config = canned();
    config.server.idle_timeout = 3s;
    config.server.head_timeout = 100ms;
    return config;
  }

  void SetUp() override {
    clients_ = fixture_.fill(3);
    (void)fixture_.ask(early_);
    fixture_.worker.watchdog.start();
    pass(kDozing);
    ASSERT_EQ(fixture_.worker.sessions, 4U);
  }
  void TearDown() override { fixture_.worker.watchdog.stop(); }

  void pass(int ticks) {
    fixture_.context.restart();
    for (const int until = ticks_.seen + ticks; ticks_.seen < until;) fixture_.context.run_one();
  }

  // A connection without octets for 20 ticks becomes quiet. Then it skips ticks: it gets only one in 20.
  // After kDozing ticks without octets, the connection is quiet.
  static constexpr int kDozing = 25;

  ServingFixture fixture_{configuration()};
  net::Ticks ticks_{fixture_.worker.watchdog};
  Tcp::socket early_ = fixture_.connect();
  std::vector<Tcp::socket> clients_;
};

TEST_F(IdleTest, IdleConnectionsCloseAtOnceWhenTheirAcceptorCloses) {
  fixture_.acceptor->close();
  pass(2);
  EXPECT_EQ(fixture_.worker.sessions, 0U);
}

// After an upgrade, idle connections of the old process remain open until the process stops.
TEST_F(IdleTest, IdleConnectionsCloseAtOnceWhenARetiringWorkerStops) {
  fixture_.worker.retiring = fixture_.worker.draining = true;
  fixture_.worker.watchdog.wake_all();
  pass(3);
  EXPECT_EQ(fixture_.worker.sessions, 4U);
  fixture_.worker.hard_stop = true;
  pass(2);
  EXPECT_EQ(fixture_.worker.sessions, 0U);
}

TEST_F(IdleTest, IdleConnectionsThatMustMakeRoomCloseAtOnce) {
  fixture_.worker.idle_evictor.want(2, IdleEvictor::Rank::Quiet);
  pass(2);
  EXPECT_EQ(fixture_.worker.sessions, 2U);
  pass(kDozing);
  EXPECT_EQ(fixture_.worker.sessions, 2U) << "no more evictions were requested";
}

TEST_F(IdleTest, IdleConnectionsRemainUntilTheIdleTimeout) {
  pass(60 - kDozing - 1);
  EXPECT_EQ(fixture_.worker.sessions, 4U);
  pass(4);
  EXPECT_EQ(fixture_.worker.sessions, 0U);
}

TEST_F(IdleTest, RequestOnALongIdleConnectionIsServedAtOnce) {
  const auto before = ticks_.seen;
  EXPECT_NE(fixture_.ask(clients_.front()).find("here"), std::string::npos);
  EXPECT_LE(ticks_.seen, before + 1);
  pass(60 - kDozing + 3);
  EXPECT_EQ(fixture_.worker.sessions, 1U) << "the idle time began again";
}

TEST_F(IdleTest, EmptyLinesDoNotExtendTheIdleTimeout) {
  net::asio::write(clients_.front(), net::asio::buffer(std::string("\r\n")));
  pass(60 - kDozing + 3);
  EXPECT_EQ(fixture_.worker.sessions, 0U);
}

TEST_F(IdleTest, RequestDuringAnUpgradePauseIsNotTimedOut) {
  fixture_.worker.decision_pause.begin();
  net::asio::write(clients_.front(), net::asio::buffer(std::string("GET / HTTP/1.1\r\nHost: a\r\n\r\n")));
  pass(60 - kDozing + 3);
  EXPECT_EQ(fixture_.worker.sessions, 1U) << "only the connection with a request remains";
  fixture_.worker.decision_pause.end();
  pass(2);
  std::string said(4096, '\0');
  said.resize(clients_.front().read_some(net::asio::buffer(said)));
  EXPECT_TRUE(said.starts_with("HTTP/1.1 200")) << said;
}

TEST_F(IdleTest, HeadTimeoutAppliesToAnIncompleteHeadOnAnIdleConnection) {
  std::string half = "GET / HTTP/1.1\r\n";
  net::asio::write(clients_.front(), net::asio::buffer(half));
  pass(5);
  std::string said(4096, '\0');
  said.resize(clients_.front().read_some(net::asio::buffer(said)));
  EXPECT_TRUE(said.starts_with("HTTP/1.1 408")) << said;
}

}  // namespace
}  // namespace weir::proxy
