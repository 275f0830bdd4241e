#include "redis/connection/faults.hpp"

#include "weir/limit/limiter.hpp"

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using namespace std::chrono_literals;

class ScriptFaultsTest : public ::testing::Test {
 protected:
  const limit::Limiter log_ = limit::SlidingLog::make({2, 1s}).value();
  const limit::Limiter places_ = limit::Concurrency::make(2).value();
  const std::array<limit::Charge, 3> both_ = {{{{1, 1}, &log_}, {{2, 2}, &places_}, {{3, 3}, &log_}}};
  const Faults::Kinds log_alone_ = Faults::kinds_of(std::span(both_).first(1));
  const Faults::Kinds places_alone_ = Faults::kinds_of(std::span(both_).subspan(1, 1));
  Faults::Time now_{1h};
  Faults faults_;
};

TEST_F(ScriptFaultsTest, AreReportedOnlyOnce) {
  EXPECT_TRUE(faults_.none());
  EXPECT_TRUE(faults_.note(log_alone_, now_));
  EXPECT_FALSE(faults_.none());
  EXPECT_FALSE(faults_.note(log_alone_, now_ + 1h));
  EXPECT_FALSE(faults_.note(Faults::kinds_of(both_), now_ + 1h));
  EXPECT_TRUE(faults_.note(places_alone_, now_ + 1h));
  EXPECT_TRUE(faults_.note(Faults::kRefunds, now_ + 2h));
}

TEST_F(ScriptFaultsTest, AreReportedAgainIfACallWithFewerAlgorithmsFails) {
  EXPECT_TRUE(faults_.note(Faults::kinds_of(both_), now_));
  EXPECT_TRUE(faults_.note(log_alone_, now_ + 1min));
  EXPECT_FALSE(faults_.note(Faults::kinds_of(both_), now_ + 2min));
}

TEST_F(ScriptFaultsTest, AreReportedAgainAfterASuccess) {
  EXPECT_TRUE(faults_.note(log_alone_, now_));
  faults_.note_success(places_alone_);
  EXPECT_FALSE(faults_.note(log_alone_, now_ + 1min));
  faults_.note_success(Faults::kinds_of(both_));
  EXPECT_TRUE(faults_.none());
  EXPECT_TRUE(faults_.note(log_alone_, now_ + 2min));
}

TEST_F(ScriptFaultsTest, AreReportedAgainOnTheNextConnection) {
  EXPECT_TRUE(faults_.note(log_alone_, now_));
  faults_.forget();
  EXPECT_FALSE(faults_.note(log_alone_, now_ + 9s));
  EXPECT_TRUE(faults_.note(log_alone_, now_ + 10s));
}

TEST_F(ScriptFaultsTest, AreReportedAtMostEveryTenSeconds) {
  EXPECT_TRUE(faults_.note(log_alone_, now_));
  for (int i = 0; i < 100; ++i) {
    faults_.note_success(log_alone_);
    EXPECT_FALSE(faults_.note(log_alone_, now_ + 9s));
  }
  EXPECT_TRUE(faults_.note(log_alone_, now_ + 10s));
}

TEST_F(ScriptFaultsTest, NameEachAlgorithmOnlyOnce) {
  EXPECT_EQ(Faults::names_of(both_), "sliding_log, concurrency");
  EXPECT_EQ(Faults::names_of(std::span(both_).first(1)), "sliding_log");
}

}  // namespace
}  // namespace weir::redis
