#include "server/process/heartbeat.hpp"

#include <gtest/gtest.h>

namespace weir::server::test {
namespace {

using namespace std::chrono_literals;

// The event loops of the control thread and of two workers. The test runs each loop by hand, in any order.
class HeartbeatTest : public ::testing::Test {
 protected:
  void start() { heart_.start({one_.get_executor(), other_.get_executor()}, kNever); }
  static void turn(net::asio::io_context& loop) {
    loop.restart();
    loop.poll();
  }

  // longer than any test, so the next round begins only if the test starts it
  static constexpr auto kNever = 1h;
  int beats_ = 0;
  net::asio::io_context control_, one_, other_;
  Heartbeat heart_{control_.get_executor(), [this] { ++beats_; }};
};

TEST_F(HeartbeatTest, IsSentAfterBothEventLoopsHaveAnswered) {
  start();
  turn(one_);
  turn(control_);
  EXPECT_EQ(beats_, 0);
  turn(other_);
  EXPECT_EQ(beats_, 0);
  turn(control_);
  EXPECT_EQ(beats_, 1);
}

TEST_F(HeartbeatTest, IsNotSentWhileAnEventLoopHangs) {
  heart_.start({one_.get_executor(), other_.get_executor()}, 1ms);
  const auto until = std::chrono::steady_clock::now() + 30ms;
  while (std::chrono::steady_clock::now() < until) {
    turn(one_);
    turn(control_);
  }
  EXPECT_EQ(beats_, 0);
  // The event loop that hung continues. Its reply ends the round, and each round that ends causes one
  // heartbeat.
  turn(other_);
  turn(control_);
  EXPECT_EQ(beats_, 1);
}

TEST_F(HeartbeatTest, IsRepeatedWhileTheEventLoopsRun) {
  heart_.start({one_.get_executor(), other_.get_executor()}, 1ms);
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (beats_ < 5 && std::chrono::steady_clock::now() < until) {
    turn(one_);
    turn(other_);
    turn(control_);
  }
  EXPECT_EQ(beats_, 5);
}

TEST_F(HeartbeatTest, IgnoresRepliesToTheRoundThatEndedWithTheWatchOfWorkers) {
  start();
  heart_.stop_watching_workers();
  turn(one_);
  turn(other_);
  turn(control_);
  EXPECT_EQ(beats_, 0);
}

TEST_F(HeartbeatTest, IsStillSentWhileTheEventLoopsOfWorkersEnd) {
  heart_.start({one_.get_executor(), other_.get_executor()}, 1ms);
  heart_.stop_watching_workers();
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (beats_ < 5 && std::chrono::steady_clock::now() < until) turn(control_);
  EXPECT_EQ(beats_, 5);
}

}  // namespace
}  // namespace weir::server::test
