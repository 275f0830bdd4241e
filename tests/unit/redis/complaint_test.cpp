#include "redis/complaint.hpp"

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using namespace std::chrono_literals;

TEST(Complaint, IsMadeAtOnceAndNotRepeated) {
  Complaint complaint;
  const Complaint::Time now{1h};
  EXPECT_TRUE(complaint.raise("refused", now));
  EXPECT_FALSE(complaint.raise("refused", now + 1h));
  complaint.settle();
  EXPECT_TRUE(complaint.raise("refused", now + 1h));
}

TEST(Complaint, ChangesItsReasonEveryTenSecondsAtMost) {
  Complaint complaint;
  Complaint::Time now{1h};
  EXPECT_TRUE(complaint.raise("refused", now));
  int said = 0;
  for (int i = 0; i < 600; ++i) {  // a minute, with two reasons by turns
    now += 100ms;
    said += complaint.raise(i % 2 == 0 ? "no answer" : "refused", now) ? 1 : 0;
  }
  EXPECT_EQ(said, 5);
  EXPECT_TRUE(complaint.raise("another", now + 10s));
}

}  // namespace
}  // namespace weir::redis
