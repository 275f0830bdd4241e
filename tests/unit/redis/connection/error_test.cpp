#include "redis/connection/classify.hpp"

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

TEST(Classify, EachErrorReplyOfRedisBecomesTheMatchingError) {
  EXPECT_EQ(classify("LOADING Redis is loading the dataset in memory"), StoreError::Loading);
  EXPECT_EQ(classify("BUSY Redis is busy running a script."), StoreError::Loading);
  EXPECT_EQ(classify("MISCONF Errors writing to the AOF file"), StoreError::Misconfigured);
  EXPECT_EQ(classify("READONLY You can't write against a read only replica."), StoreError::ReadOnly);
  EXPECT_EQ(classify("OOM command not allowed when used memory > 'maxmemory'."), StoreError::OutOfMemory);
  EXPECT_EQ(classify("NOPERM this user has no permissions"), StoreError::NotAllowed);
  EXPECT_EQ(classify("WRONGTYPE Operation against a key"), StoreError::ServerError);
  EXPECT_EQ(classify("OOMX"), StoreError::ServerError);
  EXPECT_EQ(classify(""), StoreError::ServerError);
  // Redis 6 reports an error of a command inside a script in this form.
  EXPECT_EQ(
      classify(
          "ERR Error running script (call to f_0123): @user_script:12: @user_script: 12: -OOM command not "
          "allowed when used memory > 'maxmemory'."),
      StoreError::OutOfMemory);
}

TEST(Classify, TruncatesAndEscapesTheTextOfErrorReplies) {
  EXPECT_EQ(readable("ERR a\r\nb\x7f"), "ERR a\\x0d\\x0ab\\x7f");
  EXPECT_EQ(readable(std::string(200, 'x')), std::string(200, 'x'));
  EXPECT_EQ(readable(std::string(100'000, 'x')), std::string(200, 'x') + " ...");
  EXPECT_EQ(advised("ERR " + std::string(100'000, 'x')).size(), 204U);
}

TEST(Classify, RecognizesCommandsDeniedInAScript) {
  for (const char* text :
       {"ERR Error running script (call to f_0123): @user_script:12: @user_script: 12: The user executing "
        "the "
        "script can't run this command or subcommand",
        "ERR The user executing the script can't run this command or subcommand script: 0123, on "
        "@user_script:12.",
        "ERR ACL failure in script: User weir has no permissions to run the 'zadd' command script: 0123, on "
        "@user_script:12."}) {
    EXPECT_EQ(classify(text), StoreError::CommandDenied) << text;
    EXPECT_NE(advised(text).find("docs/distributed.md"), std::string::npos) << text;
  }
  EXPECT_NE(advised("NOPERM this user has no permissions").find("docs/distributed.md"), std::string::npos);
  EXPECT_EQ(advised("MOVED 1 10.0.0.1:7000"),
            "MOVED 1 10.0.0.1:7000 (it is a cluster: write topology = \"cluster\")");
  EXPECT_EQ(advised("WRONGPASS invalid username-password pair"), "WRONGPASS invalid username-password pair");
}

TEST(Classify, RecognizesRejectedConnections) {
  EXPECT_TRUE(rejects_all_commands("DENIED Redis is running in protected mode"));
  EXPECT_TRUE(rejects_all_commands("NOAUTH Authentication required."));
  EXPECT_TRUE(rejects_all_commands("ERR max number of clients reached"));
  EXPECT_TRUE(rejects_all_commands("ERR max number of clients + cluster connections reached"));
  EXPECT_FALSE(rejects_all_commands("NOPERM this user has no permissions"));
  EXPECT_FALSE(rejects_all_commands("ERR unknown command"));
}

TEST(Classify, EveryErrorHasAName) {
  for (int value = 1; value <= static_cast<int>(StoreError::NoTls); ++value)
    EXPECT_NE(make_error_code(static_cast<StoreError>(value)).message(), "unknown");
}

}  // namespace
}  // namespace weir::redis
