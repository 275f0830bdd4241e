#include "app/top_frame.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::app {
namespace {

using testing::HasSubstr;

constexpr std::string_view kMetrics = R"(# HELP weir_requests_total Requests
# TYPE weir_requests_total counter
weir_requests_total{route="a \"b\\",code="200"} 10
weir_requests_total{route="c",code="429"} 5
weir_decisions_total{rule="login",outcome="admitted"} 40
weir_decisions_total{rule="login",outcome="refused"} 7
weir_queue_depth 3
weir_upstream_healthy{upstream="api",server="10.0.0.1:80"} 0
weir_redis_up{worker="0"} 1
weir_redis_up{worker="1"} 0
nonsense
)";

TEST(Figures, AreReadAsPrometheusWritesThem) {
  const Figures figures{kMetrics};
  EXPECT_EQ(figures.all().front().labels.at("route"), "a \"b\\");
  EXPECT_EQ(figures.sum("weir_requests_total"), 15);
  EXPECT_EQ(figures.sum("weir_requests_total", {{"code", "429"}}), 5);
  EXPECT_EQ(figures.sum("weir_queue_depth"), 3);
  EXPECT_TRUE(figures.has("weir_redis_up"));
  EXPECT_FALSE(figures.has("nonsense"));
}

TEST(TopFrame, ShowsRatesOfTheLastMomentAndWhoItIs) {
  Sample before{.taken = {}, .figures = Figures{kMetrics}, .top = {}};
  std::string later(kMetrics);
  later.replace(later.find("} 40"), 4, "} 60");
  Sample now{.taken = before.taken + std::chrono::seconds(2), .figures = Figures{later}, .top = {}};
  now.top = read_top(R"({"top":[{"rule":"login","seconds":74,"capacity":64,"admitted":
      [{"client":"203.0.113.7","digest":"83a5","cost":12345,"error":4},{"client":"api_key","digest":"0123456789","cost":1,"error":0}],
      "refused":[]}]})");
  const auto frame = draw(before, now, "here", {.width = 80, .height = 0});
  EXPECT_THAT(frame, HasSubstr("login   admitted 10/s   delayed 0/s   refused 0/s"));
  EXPECT_THAT(frame, HasSubstr("api 10.0.0.1:80 DOWN"));
  EXPECT_THAT(frame, HasSubstr("1 of 2 connections up"));
  EXPECT_THAT(frame, HasSubstr("203.0.113.7"));
  EXPECT_THAT(frame, HasSubstr("12.3k -4"));
  EXPECT_THAT(frame, HasSubstr("api_key 01234567"));
  EXPECT_THROW((void)read_top("{}"), std::runtime_error);
}

TEST(TopFrame, FitsTheScreen) {
  Sample sample{.taken = {}, .figures = Figures{kMetrics}, .top = {}};
  for (int i = 0; i < 30; ++i)
    sample.top.push_back({.rule = std::string(100, 'r'),
                          .seconds = 60,
                          .admitted = {{std::string(60, 'c'), "d", 1, 0}},
                          .refused = {}});
  for (const std::size_t width : {10, 40, 80, 200}) {
    const auto frame = draw(sample, sample, "here", {.width = width, .height = 20});
    std::size_t lines = 0, longest = 0;
    for (std::string_view rest = frame; !rest.empty(); ++lines) {
      const auto size = rest.find('\n');
      longest = std::max(longest, size);
      rest.remove_prefix(size + 1);
    }
    const auto absence = draw_absence(std::chrono::seconds(5), "why", "here", {.width = width, .height = 20});
    EXPECT_LE(absence.find('\n'), width);
    EXPECT_EQ(lines, 20U);
    EXPECT_LE(longest, width);
  }
}

}  // namespace
}  // namespace weir::app
