#include "redis/session.hpp"

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

TEST(Classify, KnowsWhatRedisMeans) {
  EXPECT_EQ(classify("LOADING Redis is loading the dataset in memory"), StoreError::Loading);
  EXPECT_EQ(classify("BUSY Redis is busy running a script."), StoreError::Loading);
  EXPECT_EQ(classify("MISCONF Errors writing to the AOF file"), StoreError::Misconfigured);
  EXPECT_EQ(classify("READONLY You can't write against a read only replica."), StoreError::ReadOnly);
  EXPECT_EQ(classify("OOM command not allowed when used memory > 'maxmemory'."), StoreError::OutOfMemory);
  EXPECT_EQ(classify("NOPERM this user has no permissions"), StoreError::NotAllowed);
  EXPECT_EQ(classify("WRONGTYPE Operation against a key"), StoreError::ServerError);
  EXPECT_EQ(classify("OOMX"), StoreError::ServerError);
  EXPECT_EQ(classify(""), StoreError::ServerError);
  // As Redis 6 wraps what a script's command answered.
  EXPECT_EQ(
      classify(
          "ERR Error running script (call to f_0123): @user_script:12: @user_script: 12: -OOM command not "
          "allowed when used memory > 'maxmemory'."),
      StoreError::OutOfMemory);
}

TEST(Classify, EveryErrorHasAName) {
  for (int value = 1; value <= static_cast<int>(StoreError::BadReply); ++value)
    EXPECT_NE(make_error_code(static_cast<StoreError>(value)).message(), "unknown");
}

}  // namespace
}  // namespace weir::redis
