// Tests connections that stay open although no reply arrives, with and without a waiting request.
#include "unit/redis/store/store_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using ::testing::HasSubstr;

class ReplyTimeouts : public ::testing::Test {
 protected:
  limit::Limiter ten_an_hour_ = token_bucket({10, 1h}, 10);
  std::vector<limit::Charge> bill_ = {{{1, 1}, &ten_an_hour_}};
};

// Only a refund is sent, so no timeout of a charge can detect that Redis does not respond.
TEST_F(ReplyTimeouts, UnansweredRefundRevealsThatRedisDoesNotRespond) {
  Server server;
  auto settings = Worker::settings_for(server, 200ms);
  settings.lease_time = 900ms;
  Worker worker(settings);
  ASSERT_TRUE(worker.turn_until_up());
  server.freeze();
  worker.store.refund(bill_[0], {});
  ASSERT_TRUE(worker.turn_until([&] { return worker.log.size() >= 2; }));
  EXPECT_THAT(worker.log[1], HasSubstr("is down: away, no reply to a command within 300ms"));
  EXPECT_EQ(worker.store.stats().refunds_lost.load(), 1U);
  server.thaw();
  ASSERT_TRUE(worker.turn_until_up());
  EXPECT_FALSE(worker.charge(bill_).error);
}

// The stopped Redis may still make the charge when it runs again. By then weir has closed the connection and
// cannot refund the charge.
TEST_F(ReplyTimeouts, ChargeWithoutAReplyIsCountedAsLost) {
  Server server;
  auto settings = Worker::settings_for(server, 200ms);
  settings.lease_time = 900ms;
  Worker worker(settings);
  ASSERT_TRUE(worker.turn_until_up());
  server.freeze();
  EXPECT_EQ(worker.charge(bill_).error, StoreError::Timeout);
  EXPECT_EQ(worker.store.stats().refunds_lost.load(), 0U) << "the reply may still arrive";
  EXPECT_TRUE(worker.turn_until([&] { return worker.store.stats().refunds_lost.load() == 1; }));
  server.thaw();
  ASSERT_TRUE(worker.turn_until_up());
}

TEST_F(ReplyTimeouts, ChargeSentAfterARefundWaitsNoLongerThanTheTimeout) {
  Server server;
  auto settings = Worker::settings_for(server, 30ms);
  settings.lease_time = 60s;
  Worker worker(settings);
  ASSERT_TRUE(worker.turn_until_up());
  server.freeze();
  worker.store.refund(bill_[0], {});
  worker.loop.restart();
  worker.loop.poll();
  const auto answer = worker.charge(bill_);
  EXPECT_EQ(answer.error, StoreError::Timeout);
  // Checks that the charge did not wait for the end of the connection: 10 s are half of the time after which
  // weir closes a connection with an unanswered refund.
  EXPECT_LT(answer.took, 10s);
  EXPECT_EQ(worker.store.state(), StoreState::Up);
  server.thaw();
}

}  // namespace
}  // namespace weir::redis
