// Checks that the scripts make the decisions that were computed by hand for the limiters.
#include "unit/limit/limit_vectors.hpp"
#include "unit/redis/scripts/timed_scripts.hpp"

#include <functional>
#include <string_view>

namespace weir::redis {
namespace {

TEST(VectorsInRedis, ScriptsDecideAsComputedByHand) {
  Server server;
  TimedScripts scripts(server);
  for (const auto& [name, limiter, requests] : limit::all_limit_vectors()) {
    for (const auto& [at, client, cost, expected] : requests) {
      SCOPED_TRACE(testing::Message() << name << ": " << client << " asks for " << cost << " after "
                                      << at.count() / 60'000'000 << " min");
      const limit::Charge charge{limit::key_of(std::hash<std::string_view>{}(client)), &limiter, cost};
      scripts.set_clock(limit::kVectorsBegin + at);
      limit::Outcome got;
      base::TimePoint then;
      ASSERT_EQ(read_outcomes(scripts.charge({&charge, 1}), {&charge, 1}, {&got, 1}, then),
                ReplyReading::Answer);
      EXPECT_EQ(then, limit::kVectorsBegin + at);
      EXPECT_EQ(got.allowed, expected.allowed);
      EXPECT_EQ(got.remaining, expected.remaining);
      EXPECT_EQ(got.retry_after, expected.retry_after);
      EXPECT_EQ(got.reset_after, expected.reset_after);
    }
    scripts.forget_all();
  }
}

}  // namespace
}  // namespace weir::redis
