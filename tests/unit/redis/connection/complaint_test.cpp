#include "redis/connection/complaint.hpp"

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using namespace std::chrono_literals;

TEST(Complaint, LogsAtOnceAndDoesNotRepeat) {
  Complaint complaint;
  const Complaint::Time now{1h};
  EXPECT_TRUE(complaint.raise("refused", now));
  EXPECT_FALSE(complaint.raise("refused", now + 1h));
  EXPECT_TRUE(complaint.settle());
  EXPECT_TRUE(complaint.raise("refused", now + 1h));
}

TEST(Complaint, LogsANewReasonEveryTenSecondsAtMost) {
  Complaint complaint;
  Complaint::Time now{1h};
  EXPECT_TRUE(complaint.raise("refused", now));
  int said = 0;
  for (int i = 0; i < 600; ++i) {  // a minute, with two alternating reasons
    now += 100ms;
    said += complaint.raise(i % 2 == 0 ? "no answer" : "refused", now) ? 1 : 0;
  }
  EXPECT_EQ(said, 5);
  EXPECT_TRUE(complaint.raise("another", now + 10s));
}

TEST(Complaint, LogsThreeOutagesInTenSecondsAndCountsTheOthers) {
  Complaint complaint;
  Complaint::Time now{1h};
  EXPECT_TRUE(complaint.settle()) << "it came up first";
  unsigned downs = 0, ups = 0;
  for (int i = 0; i < 99; ++i) {  // down and up again within 100 ms
    now += 100ms;
    downs += complaint.raise("lost", now) ? 1 : 0;
    EXPECT_FALSE(complaint.raise("refused", now)) << "still down";
    ups += complaint.settle() ? 1 : 0;
  }
  EXPECT_EQ(downs, 3U);
  EXPECT_EQ(ups, 3U);
  EXPECT_FALSE(complaint.raise("lost", now + 50ms));
  EXPECT_TRUE(complaint.raise("lost", now + 10s)) << "it stays down";
  EXPECT_EQ(complaint.unsaid(), 96U);
  EXPECT_EQ(complaint.unsaid(), 0U);
  EXPECT_TRUE(complaint.settle());
}

}  // namespace
}  // namespace weir::redis
