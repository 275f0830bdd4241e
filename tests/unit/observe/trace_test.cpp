#include "weir/observe/trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::observe {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

const std::string kTraceId = "0af7651916cd43dd8448eb211c80319c";
const std::string kParentId = "b7ad6b7169203331";
constexpr TraceChance kChance{0x11111111, 0x22222222, 0x33333333, 0x44444444, 0x55555555, 0x66666666, 0};

std::string line_of(const TraceContext& context) {
  std::string line;
  append_traceparent(line, context);
  return line;
}

// Returns true if a request without a parent is sampled. `last`: the random number that decides.
bool samples(std::uint32_t per_million, std::uint32_t last) {
  auto chance = kChance;
  chance.back() = last;
  return join_trace({}, {.per_million = per_million}, chance).sampled;
}

TEST(JoinTrace, RequestWithoutAParentBeginsATrace) {
  const auto context = join_trace({}, {.per_million = kMillion}, kChance);
  EXPECT_FALSE(context.has_parent);
  EXPECT_EQ(line_of(context), "traceparent: 00-33333333444444445555555566666666-1111111122222222-01\r\n");
}

TEST(JoinTrace, RequestWithAParentContinuesItsTrace) {
  const auto context = join_trace("00-" + kTraceId + "-" + kParentId + "-01", {}, kChance);
  EXPECT_TRUE(context.has_parent);
  EXPECT_EQ(std::string(context.parent.data(), context.parent.size()), kParentId);
  EXPECT_EQ(line_of(context), "traceparent: 00-" + kTraceId + "-1111111122222222-01\r\n");
}

TEST(JoinTrace, TraceIsSampledLikeItsParentIfWeirIsSetToFollowParents) {
  for (const auto& [flags, sampled] : {std::pair{"00", false}, {"01", true}, {"02", false}, {"ff", true}}) {
    const auto parent = "00-" + kTraceId + "-" + kParentId + "-" + flags;
    EXPECT_EQ(join_trace(parent, {.per_million = 0}, kChance).sampled, sampled) << flags;
    EXPECT_EQ(join_trace(parent, {.per_million = kMillion}, kChance).sampled, sampled) << flags;
    EXPECT_TRUE(join_trace(parent, {.per_million = kMillion, .parent = false}, kChance).sampled) << flags;
    EXPECT_FALSE(join_trace(parent, {.per_million = 0, .parent = false}, kChance).sampled) << flags;
  }
}

TEST(JoinTrace, RequestWithAnInvalidParentBeginsATrace) {
  for (const auto& parent : {std::string("x"), "00-" + kTraceId + "-" + kParentId,
                             "00-" + std::string(32, '0') + "-" + kParentId + "-01"}) {
    const auto context = join_trace(parent, {}, kChance);
    EXPECT_FALSE(context.has_parent) << parent;
    EXPECT_THAT(line_of(context), StartsWith("traceparent: 00-33333333")) << parent;
  }
}

TEST(JoinTrace, ConfiguredPercentageOfRequestsWithoutAParentIsSampled) {
  constexpr std::uint32_t kLargest = 0xffff'ffff;
  EXPECT_FALSE(samples(0, 0));
  EXPECT_TRUE(samples(1, 0));
  EXPECT_FALSE(samples(1, 4295));  // 2^32 / a million is 4294.97
  EXPECT_TRUE(samples(kMillion / 2, 0x7fff'ffff));
  EXPECT_FALSE(samples(kMillion / 2, 0x8000'0000));
  EXPECT_TRUE(samples(kMillion, kLargest));
  EXPECT_FALSE(samples(kMillion - 1, kLargest));
}

TEST(JoinTrace, ServerIsToldThatATraceIsNotSampled) {
  EXPECT_THAT(line_of(join_trace({}, {.per_million = 0}, kChance)), EndsWith("-00\r\n"));
}

}  // namespace
}  // namespace weir::observe
