// Tests what weir reports about a finished request to limiters that adapt to the server's load.
#include "proxy/exchange/access_report.hpp"

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using std::chrono::milliseconds;

RequestReport answered_with(unsigned status) {
  RequestReport report;
  report.sent = base::TimePoint{std::chrono::seconds(10)};
  report.answered = report.sent + milliseconds(40);
  report.server_status = status;
  return report;
}

TEST(AccessReport, AdaptiveLimitLearnsTheLatencyOfTheServer) {
  const auto ending = ending_of(answered_with(200));
  EXPECT_EQ(ending.latency, milliseconds(40));
  EXPECT_FALSE(ending.failed);
}

TEST(AccessReport, AdaptiveLimitLearnsNothingFromAServerError) {
  const auto ending = ending_of(answered_with(500));
  EXPECT_FALSE(ending.latency);
  EXPECT_FALSE(ending.failed);
}

TEST(AccessReport, AdaptiveLimitLearnsOfAFailureIfNoServerResponded) {
  RequestReport report;
  report.failure = "upstream_failed";
  EXPECT_TRUE(ending_of(report).failed);
}

TEST(AccessReport, AdaptiveLimitLearnsNothingIfTheClientLeft) {
  RequestReport report;
  report.failure = "client_left";
  const auto ending = ending_of(report);
  EXPECT_FALSE(ending.latency);
  EXPECT_FALSE(ending.failed);
}

}  // namespace
}  // namespace weir::proxy
