#include "redis/connection/log_throttle.hpp"

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using namespace std::chrono_literals;

TEST(LogThrottle, OutageIsLoggedAtOnceAndNotRepeated) {
  LogThrottle log_throttle;
  const LogThrottle::Time now{1h};
  EXPECT_TRUE(log_throttle.raise("refused", now));
  EXPECT_FALSE(log_throttle.raise("refused", now + 1h));
  EXPECT_TRUE(log_throttle.settle());
  EXPECT_TRUE(log_throttle.raise("refused", now + 1h));
}

TEST(LogThrottle, NewReasonOfAnOutageIsLoggedAtMostEveryTenSeconds) {
  LogThrottle log_throttle;
  LogThrottle::Time now{1h};
  EXPECT_TRUE(log_throttle.raise("refused", now));
  int said = 0;
  for (int i = 0; i < 600; ++i) {  // for one minute, two reasons alternate
    now += 100ms;
    said += log_throttle.raise(i % 2 == 0 ? "no answer" : "refused", now) ? 1 : 0;
  }
  EXPECT_EQ(said, 5);
  EXPECT_TRUE(log_throttle.raise("another", now + 10s));
}

TEST(LogThrottle, ThreeOutagesInTenSecondsAreLoggedAndTheOthersCounted) {
  LogThrottle log_throttle;
  LogThrottle::Time now{1h};
  EXPECT_TRUE(log_throttle.settle()) << "the first connection was established";
  unsigned downs = 0, ups = 0;
  for (int i = 0; i < 99; ++i) {  // every 100 ms the service goes down and comes up again
    now += 100ms;
    downs += log_throttle.raise("lost", now) ? 1 : 0;
    EXPECT_FALSE(log_throttle.raise("refused", now)) << "the connection is still down";
    ups += log_throttle.settle() ? 1 : 0;
  }
  EXPECT_EQ(downs, 3U);
  EXPECT_EQ(ups, 3U);
  EXPECT_FALSE(log_throttle.raise("lost", now + 50ms));
  EXPECT_TRUE(log_throttle.raise("lost", now + 10s)) << "the connection stays down";
  EXPECT_EQ(log_throttle.omitted(), 96U);
  EXPECT_EQ(log_throttle.omitted(), 0U);
  EXPECT_TRUE(log_throttle.settle());
}

}  // namespace
}  // namespace weir::redis
