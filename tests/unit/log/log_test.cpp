#include "weir/log/log.hpp"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::log {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

// Runs `use` with a log of this level. Returns all written lines, including those that the log's destructor
// writes.
template <class Use>
std::string logged(LogLevel level, Use use) {
  ::testing::internal::CaptureStderr();
  {
    Log log(level);
    use(log);
  }
  return ::testing::internal::GetCapturedStderr();
}

TEST(Log, WritesTimeLevelAndMessageInOneLine) {
  const auto text = logged(LogLevel::Info, [](Log& log) { log.info("listening on 127.0.0.1:8080"); });
  EXPECT_THAT(text, MatchesRegex("[0-9-]+T[0-9:]+\\.[0-9]+Z info listening on 127\\.0\\.0\\.1:8080\n"));
}

TEST(Log, OmitsLinesBelowTheLevel) {
  const auto text = logged(LogLevel::Warning, [](Log& log) {
    log.debug("one");
    log.info("two");
    log.warning("three");
    log.error("four");
  });
  EXPECT_THAT(text, Not(HasSubstr("one")));
  EXPECT_THAT(text, Not(HasSubstr("two")));
  EXPECT_THAT(text, HasSubstr("warning three\n"));
  EXPECT_THAT(text, HasSubstr("error four\n"));
}

TEST(Log, WritesNothingIfTheLevelIsOff) {
  EXPECT_EQ(logged(LogLevel::Off, [](Log& log) { log.error("anything"); }), "");
}

TEST(Log, AuditLinesAreWrittenAtEveryLevel) {
  for (const auto level : {LogLevel::Error, LogLevel::Off})
    EXPECT_THAT(logged(level, [](Log& log) { log.audit("admin: somebody did\nsomething"); }),
                HasSubstr("Z warning admin: somebody did\\x0asomething\n"));
}

TEST(Log, EscapesControlCharactersSoThatAMessageStaysOnOneLine) {
  const auto text =
      logged(LogLevel::Info, [](Log& log) { log.info("bad \r\n\x1b[31m{} %v \x7f caf\xc3\xa9"); });
  EXPECT_THAT(text, HasSubstr("bad \\x0d\\x0a\\x1b[31m{} %v \\x7f caf\xc3\xa9\n"));
}

TEST(Log, DropsAndCountsLinesAboveTheMaximumRate) {
  const auto text = logged(LogLevel::Info, [](Log& log) {
    for (unsigned i = 0; i < Log::kMaxPerSecond + 50; ++i) log.info("again");
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), Log::kMaxPerSecond + 1);
  EXPECT_THAT(text, HasSubstr("50 lines suppressed\n"));
}

}  // namespace
}  // namespace weir::log
