// How long what has been asked may go without an answer.
#include "redis/pipeline.hpp"

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using namespace std::chrono_literals;
using Purpose = Pipeline::Purpose;

class Pending : public ::testing::Test {
 protected:
  void send(Purpose purpose, std::chrono::milliseconds at) {
    pipeline_.push({.purpose = purpose}, start_ + at);
  }

  const Pipeline::Time start_ = Pipeline::Time() + 1h;
  Pipeline pipeline_{8, 300ms};
};

TEST_F(Pending, NothingAskedIsNeverLate) {
  EXPECT_EQ(pipeline_.next_deadline(), std::nullopt);
  EXPECT_FALSE(pipeline_.is_overdue(Pipeline::Time::max()));
}

TEST_F(Pending, CountsFromWhenTheFirstWithoutAnAnswerWasSent) {
  send(Purpose::Refund, 0ms);
  send(Purpose::LoadRefund, 100ms);
  EXPECT_EQ(pipeline_.next_deadline(), start_ + 300ms);
  EXPECT_FALSE(pipeline_.is_overdue(start_ + 299ms));
  EXPECT_TRUE(pipeline_.is_overdue(start_ + 300ms));
  EXPECT_TRUE(pipeline_.pop());
  EXPECT_EQ(pipeline_.next_deadline(), start_ + 400ms);
  EXPECT_FALSE(pipeline_.is_overdue(start_ + 300ms));
  EXPECT_TRUE(pipeline_.pop());
  EXPECT_EQ(pipeline_.next_deadline(), std::nullopt);
}

TEST_F(Pending, ACallBehindIsDueByItsOwnDeadline) {
  Call sent, gathered;
  sent.deadline = start_ + 50ms;
  gathered.deadline = start_ + 70ms;
  send(Purpose::Refund, 0ms);
  pipeline_.gather(sent);
  pipeline_.push({.purpose = Purpose::Charge, .bills = pipeline_.take_group()}, start_ + 20ms);
  pipeline_.gather(gathered);
  EXPECT_EQ(pipeline_.next_deadline(), start_ + 50ms);
  EXPECT_EQ(pipeline_.take_expired(start_ + 60ms), std::vector<Call*>{&sent});
  EXPECT_EQ(pipeline_.next_deadline(), start_ + 70ms);
  EXPECT_EQ(pipeline_.take_expired(start_ + 80ms), std::vector<Call*>{&gathered});
  EXPECT_EQ(pipeline_.next_deadline(), start_ + 300ms);
}

// Its answer is still to come, and tells that the connection lives.
TEST_F(Pending, ACallThatNobodyWaitsForAnyMoreCountsToo) {
  Call call;
  call.deadline = start_ + 50ms;
  pipeline_.gather(call);
  pipeline_.push({.purpose = Purpose::Charge, .bills = pipeline_.take_group()}, start_);
  EXPECT_EQ(pipeline_.take_expired(start_ + 50ms).size(), 1U);
  EXPECT_EQ(pipeline_.next_deadline(), start_ + 300ms);
  EXPECT_TRUE(pipeline_.is_overdue(start_ + 300ms));
}

TEST_F(Pending, EndsWithTheConnection) {
  send(Purpose::Refund, 0ms);
  EXPECT_EQ(pipeline_.take_all().size(), 1U);
  EXPECT_EQ(pipeline_.next_deadline(), std::nullopt);
  EXPECT_FALSE(pipeline_.is_overdue(start_ + 1h));
}

}  // namespace
}  // namespace weir::redis
