#include "cli/replay/replay_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Told {
  std::uint64_t refused_then, refused_now, shadow_then = 0;
  bool shadow = false;
};

replay::Report report_of(const Told& told) {
  replay::Report report;
  report.lines = report.requests = 1000;
  auto& rule = report.rules.emplace_back();
  rule.name = "try";
  rule.met = 800;
  rule.shadow = told.shadow;
  rule.refused_then = told.refused_then;
  rule.refused_now = told.refused_now;
  rule.shadow_then = told.shadow_then;
  return report;
}

TEST(ReplayText, LoggedShadowRefusalsAreCountedSeparatelyFromRefusals) {
  const auto report = report_of({.refused_then = 687, .refused_now = 738, .shadow_then = 687});
  EXPECT_THAT(to_text(report), HasSubstr("  matched 800 requests\n"
                                         "  refused             0 then         738 now\n"
                                         "  687 would have been refused then (in shadow)\n"
                                         "  newly refused"));
  EXPECT_THAT(to_json(report),
              HasSubstr(R"("refused_then":687,"refused_now":738,"shadow_refused_then":687,)"));
}

TEST(ReplayText, ReplayedShadowRefusalsAreCountedSeparatelyFromRefusals) {
  const auto both =
      to_text(report_of({.refused_then = 687, .refused_now = 738, .shadow_then = 687, .shadow = true}));
  EXPECT_THAT(both, HasSubstr("rule \"try\", in shadow\n"));
  EXPECT_THAT(both, HasSubstr("  refused             0 then           0 now\n"
                              "  687 would have been refused then, 738 would be refused now (in shadow)\n"));
  EXPECT_THAT(to_text(report_of({.refused_then = 20, .refused_now = 30, .shadow = true})),
              HasSubstr("  refused            20 then           0 now\n"
                        "  30 would be refused now (in shadow)\n"));
  EXPECT_THAT(to_text(report_of({.refused_then = 20, .refused_now = 30})), Not(HasSubstr("shadow")));
}

}  // namespace
}  // namespace weir::cli
