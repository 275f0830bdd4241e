#include "cli/top/top_frame.hpp"

#include "cli/top/top_json.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view kMetrics = R"(# HELP weir_requests_total Requests
# TYPE weir_requests_total counter
weir_requests_total{route="a \"b\\",code="200"} 10
weir_requests_total{route="c",code="429"} 5
weir_decisions_total{rule="login",outcome="admitted"} 40
weir_decisions_total{rule="login",outcome="refused"} 7
weir_queue_depth 3
weir_upstream_healthy{upstream="api",server="10.0.0.1:80"} 0
weir_upstream_healthy{upstream="api",server="10.0.0.2:80"} 1
weir_upstream_drained{upstream="api",server="10.0.0.1:80"} 0
weir_upstream_drained{upstream="api",server="10.0.0.2:80"} 1
weir_redis_up{worker="0"} 1
weir_redis_up{worker="1"} 0
nonsense
)";

TEST(TopFigures, ParsesThePrometheusTextFormat) {
  const Figures figures{kMetrics};
  EXPECT_EQ(figures.all().front().labels.at("route"), "a \"b\\");
  EXPECT_EQ(figures.sum("weir_requests_total"), 15);
  EXPECT_EQ(figures.sum("weir_requests_total", {{"code", "429"}}), 5);
  EXPECT_EQ(figures.sum("weir_queue_depth"), 3);
  EXPECT_TRUE(figures.has("weir_redis_up"));
  EXPECT_FALSE(figures.has("nonsense"));
}

TEST(TopFigures, SumIncludesOnlyTheSeriesWithTheGivenLabels) {
  const Figures figures{std::string(kMetrics) +
                        "weir_decisions_total{outcome=\"refused\",rule=\"other\"} 2\n" +
                        "weir_settlements_total{outcome=\"refunded\",rule=\"login\"} 9\n"};
  EXPECT_EQ(figures.sum("weir_decisions_total"), 49);
  EXPECT_EQ(figures.sum("weir_decisions_total", {{"rule", "login"}}), 47);
  EXPECT_EQ(figures.sum("weir_decisions_total", {{"rule", "login"}, {"outcome", "refused"}}), 7);
  EXPECT_EQ(figures.sum("weir_decisions_total", {{"rule", "other"}}), 2);
  EXPECT_EQ(figures.sum("weir_decisions_total", {{"rule", "third"}}), 0);
}

TEST(TopFrame, ShowsTheCurrentRatesAndTheTopClients) {
  Sample before{.taken = {}, .figures = Figures{kMetrics}, .top = {}};
  std::string later(kMetrics);
  later.replace(later.find("} 40"), 4, "} 60");
  Sample now{.taken = before.taken + std::chrono::seconds(2), .figures = Figures{later}, .top = {}};
  now.top = read_top(R"({"top":[{"rule":"login","seconds":74,"capacity":64,"admitted":
      [{"client":"203.0.113.7","digest":"83a5","cost":12345,"error":4},{"client":"api_key","digest":"0123456789","cost":1,"error":0}],
      "refused":[]}]})");
  // Earlier versions of weir did not send "mode". So a rule without it is not a shadow rule.
  EXPECT_FALSE(now.top.front().shadow);
  const auto frame = draw(before, now, "here", {.width = 80, .height = 0});
  EXPECT_THAT(frame, HasSubstr("login   admitted 10/s   delayed 0/s   refused 0/s"));
  EXPECT_THAT(frame, HasSubstr("api 10.0.0.1:80 DOWN   api 10.0.0.2:80 up drained"));
  EXPECT_THAT(frame, HasSubstr("1 of 2 connections up"));
  EXPECT_THAT(frame, HasSubstr("203.0.113.7"));
  EXPECT_THAT(frame, HasSubstr("12.3k -4"));
  EXPECT_THAT(frame, HasSubstr("api_key 01234567"));
  EXPECT_THROW((void)read_top("{}"), std::runtime_error);
}

TEST(TopFrame, NoTextIsShortenedIfTheWidthIsUnlimited) {
  const std::string name(200, 'n');
  Sample sample{.taken = {}, .figures = Figures{kMetrics}, .top = {}};
  sample.top = {{.rule = name,
                 .seconds = 74,
                 .admitted = {{.client = "2001:db8::1", .digest = "83a5", .cost = 12345, .error = 4}},
                 .refused = {{.client = "route:" + name, .digest = "0123456789", .cost = 1, .error = 0}}}};
  const auto frame = draw(sample, sample, "here", {.width = Screen::kUnbounded, .height = 0});
  EXPECT_THAT(frame, HasSubstr("\n" + name + "   admitted 0/s   delayed 0/s   refused 0/s\n"));
  EXPECT_THAT(frame, ContainsRegex("\n  2001:db8::1 +12.3k -4 +route:" + name + " 01234567 +1\n"));
  EXPECT_THAT(frame, Not(HasSubstr("~")));
}

TEST(TopFrame, ShowsTheDigestOfAClientUnlessItsNameIsUnique) {
  const auto shown = [](const char* name) {
    Sample sample{.taken = {}, .figures = Figures{kMetrics}, .top = {}};
    sample.top = {{.rule = "login",
                   .seconds = 74,
                   .admitted = {{.client = name, .digest = "0123456789", .cost = 1, .error = 0}},
                   .refused = {}}};
    const auto frame = draw(sample, sample, "here", {.width = Screen::kUnbounded, .height = 0});
    EXPECT_THAT(frame, HasSubstr(name));
    return frame.find(" 01234567") != std::string::npos;
  };
  for (const char* unique : {"203.0.113.7", "2001:db8::1", "::", "everybody"})
    EXPECT_FALSE(shown(unique)) << unique;
  for (const char* shared :
       {"", "api_key", "api_key of ada", "header:x-tenant", "user:ada", "2001:db8::1 user:ada"})
    EXPECT_TRUE(shown(shared)) << shared;
}

TEST(TopJson, RatesAndClientsAreWrittenAsPlainNumbers) {
  Sample before{.taken = {}, .figures = Figures{kMetrics}, .top = {}};
  std::string later(kMetrics);
  later.replace(later.find("} 40"), 4, "} 57640");
  Sample now{.taken = before.taken + std::chrono::seconds(2), .figures = Figures{later}, .top = {}};
  now.top = {
      {.rule = "login", .seconds = 74, .admitted = {{"203.0.113.7", "83a5", 12345, 4}}, .refused = {}}};
  EXPECT_EQ(
      top_json(before, now, "here"),
      R"({"address":"here","requests_per_second":0,"connections":0,"http2_connections":0,"http2_streams":0,"queued":3,"keys":0,)"
      R"("servers":[{"upstream":"api","server":"10.0.0.1:80","healthy":false,"drained":false},)"
      R"({"upstream":"api","server":"10.0.0.2:80","healthy":true,"drained":true}],)"
      R"("redis":{"connections":2,"up":1,"calls_per_second":0,"failures_per_second":0},)"
      R"("clients_counted":true,"rules":[{"rule":"login","mode":"enforce","admitted_per_second":28800,)"
      R"("delayed_per_second":0,"refused_per_second":0,"would_refuse_per_second":0,"seconds":74,)"
      R"("admitted":[{"client":"203.0.113.7","digest":"83a5","cost":12345,"error":4}],"refused":[]}]})"
      "\n");
}

TEST(TopFrame, ShowsTheConnectionsThatSpeakHttp2) {
  const auto first_line = [](const char* http2) {
    Sample sample{.taken = {},
                  .figures = Figures{std::string("weir_connections_open 40\nweir_http2_streams 120\n") +
                                     "weir_connections{protocol=\"HTTP/1\"} 32\n" + http2},
                  .top = {}};
    const auto frame = draw(sample, sample, "here", {.width = 100, .height = 0});
    return frame.substr(0, frame.find('\n'));
  };
  EXPECT_THAT(first_line("weir_connections{protocol=\"HTTP/2\"} 8\n"),
              HasSubstr("connections 40 (8 HTTP/2, streams 120)   queued"));
  EXPECT_THAT(first_line("weir_connections{protocol=\"HTTP/2\"} 0\n"), HasSubstr("connections 40   queued"));
}

std::vector<std::string> lines_of(std::string_view frame) {
  std::vector<std::string> lines;
  for (; !frame.empty(); frame.remove_prefix(lines.back().size() + 1))
    lines.emplace_back(frame.substr(0, frame.find('\n')));
  return lines;
}

// Builds two samples, one second apart, and draws the screen that weir top shows after the second sample.
// rule() adds a rule and its decisions in that second.
class Busy {
 public:
  Busy& rule(const char* name, unsigned admitted, unsigned refused, bool shadow = false, int clients = 5) {
    TopRule top{.rule = name, .shadow = shadow, .seconds = 2};
    for (int i = 0; i < clients; ++i) {
      top.admitted.push_back({"203.0.113." + std::to_string(100 + i), "d", 12, 0});
      top.refused.push_back({"198.51.100." + std::to_string(100 + i), "d", 3000, 20});
    }
    now_.top.push_back(std::move(top));
    const auto said = [&](const char* outcome, unsigned count) {
      const auto series =
          "weir_decisions_total{outcome=\"" + std::string(outcome) + "\",rule=\"" + name + "\"} ";
      then_ += series + "7\n";
      page_ += series + std::to_string(7 + count) + "\n";
    };
    said("admitted", admitted);
    said(shadow ? "shadow_refused" : "refused", refused);
    return *this;
  }
  std::vector<std::string> draw(Screen screen, std::string_view address = "127.0.0.1:17900") {
    const Sample before{.taken = {}, .figures = Figures{then_}, .top = {}};
    now_.taken = before.taken + std::chrono::seconds(1);
    now_.figures = Figures{page_};
    auto lines = lines_of(cli::draw(before, now_, address, screen));
    EXPECT_TRUE(screen.height == 0 || lines.size() <= screen.height) << lines.size();
    for (const auto& line : lines) EXPECT_LE(line.size(), screen.width) << line;
    return lines;
  }

 private:
  Sample now_;
  std::string then_{"weir_requests_total 0\n"},
      page_{"weir_requests_total 3012\nweir_connections_open 17\nweir_queue_depth 10\nweir_keys 1234\n"};
};

TEST(TopFrame, RulesThatRefuseRequestsAreListedFirst) {
  Busy busy;
  busy.rule("per-client", 900, 0).rule("login", 0, 0).rule("try", 20, 132, true).rule("queue", 5, 3000);
  const auto lines = busy.draw({.width = 80, .height = 23});
  EXPECT_EQ(lines[2], "queue   admitted 5/s   delayed 0/s   refused 3000/s");
  EXPECT_THAT(lines[4], MatchesRegex("  203\\.0\\.113\\.100 +12 +198\\.51\\.100\\.100 +3000 -20"));
  EXPECT_EQ(lines[10], "per-client   admitted 900/s   delayed 0/s   refused 0/s");
  EXPECT_EQ(lines[18], "try (shadow)   admitted 20/s   delayed 0/s   would refuse 132/s");
  EXPECT_EQ(lines.back(), "login   admitted 0/s   delayed 0/s   refused 0/s");  // an idle rule has one line
}

TEST(TopFrame, RulesWithEqualRatesKeepTheOrderOfTheConfiguration) {
  Busy busy;
  busy.rule("b", 1, 0, false, 0)
      .rule("trial", 1, 9, true, 0)
      .rule("a", 1, 0, false, 0)
      .rule("c", 1, 2, false, 0);
  const auto lines = busy.draw({.width = 80, .height = 0});
  std::string order;
  for (const auto& line : lines)
    if (const auto end = line.find("   admitted"); end != std::string::npos)
      order += line.substr(0, end) + ", ";
  EXPECT_EQ(order, "c, b, a, trial (shadow), ");
}

TEST(TopFrame, ShowsHowManyRulesDoNotFitOnTheScreen) {
  Busy busy;
  for (int i = 0; i < 9; ++i) busy.rule(("idle" + std::to_string(i)).c_str(), 0, 0);
  for (int i = 0; i < 9; ++i) busy.rule(("busy" + std::to_string(i)).c_str(), 1, 10 + i);
  busy.rule("trial", 0, 5, true);
  auto lines = busy.draw({.width = 80, .height = 12});
  EXPECT_EQ(lines.size(), 12U);
  EXPECT_THAT(lines[2], StartsWith("busy8 "));
  EXPECT_THAT(lines.back(),
              StartsWith("... 15 more rules, of which 5 refuse and 1 would; enlarge the terminal"));
  lines = busy.draw({.width = 40, .height = 12});
  EXPECT_THAT(lines.back(), HasSubstr("15 more rules, of which 5 refuse"));
  Busy calm;
  for (int i = 0; i < 9; ++i) calm.rule(("idle" + std::to_string(i)).c_str(), 0, 0);
  lines = calm.draw({.width = 80, .height = 7});
  EXPECT_THAT(lines.back(), StartsWith("... 5 more rules, none refuses"));
  for (const std::size_t height : {1, 2, 3, 4}) busy.draw({.width = 80, .height = height});
}

TEST(TopFrame, ShowsShadowRefusalsAsRequestsThatWouldBeRefused) {
  Busy busy;
  busy.rule("try", 20, 132, true);
  const auto sees = [](const std::vector<std::string>& lines, const char* text) {
    return std::count_if(lines.begin(), lines.end(),
                         [&](const auto& line) { return line.find(text) != std::string::npos; });
  };
  const auto lines = busy.draw({.width = 80, .height = 0});
  EXPECT_EQ(lines[2], "try (shadow)   admitted 20/s   delayed 0/s   would refuse 132/s");
  EXPECT_EQ(lines[3], "  most admitted in 2 s                   would be refused most in 2 s");
  EXPECT_EQ(sees(lines, "refused 0/s"), 0);
  EXPECT_EQ(sees(busy.draw({.width = 80, .height = 0}), "most refused"), 0);
  EXPECT_EQ(sees(Busy().rule("r", 1, 1).draw({.width = 80, .height = 0}), "would"), 0);
}

TEST(TopFrame, NarrowScreenKeepsClientNamesAndOmitsNumbers) {
  Busy busy;
  busy.rule("queue", 5, 3000).rule("a-rule-of-a-long-name", 1, 2000, true);
  for (const std::size_t width : {80, 60, 50, 40, 30, 24, 20}) {
    std::string frame;
    for (const auto& line : busy.draw({.width = width, .height = 0})) frame += line + "\n";
    EXPECT_THAT(frame, HasSubstr("198.51.100.100")) << width;
    EXPECT_THAT(frame, Not(HasSubstr("198.51.100.100~"))) << width;
    EXPECT_THAT(frame, HasSubstr("refused 3000/s")) << width;
    if (width < 24) continue;
    EXPECT_THAT(frame, HasSubstr("would refuse 2000/s")) << width;
    EXPECT_THAT(frame, ContainsRegex("198.51.100.100 +3000")) << width;
    EXPECT_EQ(lines_of(frame)[0].find('~'), std::string::npos) << width;
  }
  EXPECT_THAT(busy.draw({.width = 80, .height = 0})[0], HasSubstr("keys 1234"));
}

TEST(TopFrame, AllRulesAreListedIfTopClientsAreDisabled) {
  Sample sample{.taken = {}, .figures = Figures{kMetrics}, .top = {}, .top_is_on = false};
  sample.top = read_rules(R"({"rules":[{"name":"login","mode":"enforce"},{"name":"try","mode":"shadow"}]})");
  const auto lines = lines_of(draw(sample, sample, "here", {.width = 80, .height = 0}));
  EXPECT_THAT(lines[3], HasSubstr("[admin] top is 0"));
  EXPECT_THAT(lines[5], StartsWith("login   admitted"));
  EXPECT_THAT(lines[7], StartsWith("try (shadow)   admitted"));
  EXPECT_THROW((void)read_rules("{}"), std::runtime_error);
}

TEST(TopFrame, FrameFitsIntoTheWidthAndHeightOfTheTerminal) {
  Sample sample{.taken = {}, .figures = Figures{kMetrics}, .top = {}};
  for (int i = 0; i < 30; ++i)
    sample.top.push_back({.rule = std::string(100, 'r'),
                          .seconds = 60,
                          .admitted = {{std::string(60, 'c'), "d", 1, 0}},
                          .refused = {}});
  for (const std::size_t width : {1, 10, 40, 80, 200}) {
    const auto lines = lines_of(draw(sample, sample, "here", {.width = width, .height = 20}));
    for (const auto& line : lines) EXPECT_LE(line.size(), width);
    const auto absence = draw_absence(std::chrono::seconds(5), "why", "here", {.width = width, .height = 20});
    EXPECT_LE(absence.find('\n'), width);
    EXPECT_EQ(lines.size(), 20U);
  }
}

}  // namespace
}  // namespace weir::cli
