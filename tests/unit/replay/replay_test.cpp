#include "weir/replay/replay.hpp"

#include "weir/observe/access_record.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::replay {
namespace {

using base::Duration;
using base::TimePoint;
using namespace std::chrono_literals;
using observe::Amendment;

constexpr TimePoint kStart{Duration{1'771'581'600'000'000}};

policy::Rule rule_of(const char* name, limit::Limiter limiter, const std::vector<const char*>& key,
                     limit::RuleIndex index = 0) {
  policy::Rule rule{.name = name, .index = index, .limiter = limiter};
  for (const auto* part : key) rule.key.push_back(*policy::parse_key_part(part));
  rule.asks = policy::digest_of_asks(rule);
  return rule;
}

limit::Limiter bucket(const char* limit, std::uint64_t burst) {
  return *limit::TokenBucket::make(*limit::parse_rate(limit), burst);
}

// A request as the log describes it.
struct Request {
  TimePoint at = kStart;
  const char* ip = "203.0.113.7";
  const char* path = "/";
  const char* verdict = "forward";
  std::vector<observe::AppliedRule> said{};
  std::vector<Amendment> amendments{};
  std::uint64_t timestamp = 0;
  std::uint64_t run = 1;
  unsigned status = 200;
  const char* user = "";
  bool first = false;
  const char* method = "GET";
  std::optional<std::uint64_t> bytes{};  // size of the answer's body
};

class ReplayTest : public testing::Test {
 protected:
  std::string line(const Request& request) const {
    observe::ReplayRecord replay;
    replay.run = request.run;
    replay.first = request.first;
    replay.start = replay.evaluated_at = request.at;
    replay.timestamp = limit::timestamp_at(request.at) + request.timestamp;
    replay.user = request.user;
    replay.rules = request.said;
    replay.amendments = request.amendments;
    replay.all_rules = recorded_;
    observe::AccessRecord record;
    record.start = request.at;
    record.total = 500us;
    record.client = *base::IpAddress::parse(request.ip);
    record.method = request.method;
    record.target = request.path;
    record.host = "example.com";
    record.status = request.status;
    record.verdict = request.verdict;
    record.replay = &replay;
    auto fields = observe::LogFields::for_replay();
    if (request.bytes) fields.add_all(observe::LogFields::usual());
    record.bytes_out = request.bytes.value_or(0);
    std::string text;
    observe::append_json(text, record, fields);
    text.pop_back();
    return text;
  }
  // Returns the log line about a reset of two keys of a rule: {7, 7} and `key`.
  static std::string reset(TimePoint at, const policy::Rule& rule, limit::Key key) {
    const observe::ForgottenKey keys[] = {{{7, 7}, limit::timestamp_at(at)},
                                          {key, limit::timestamp_at(at) + 1}};
    std::string text;
    observe::append_json(text, {.run = 1, .at = at, .rule = rule.name, .asks = rule.asks, .keys = keys});
    text.pop_back();
    return text;
  }
  Report replay(const std::vector<Request>& requests, const std::vector<policy::Rule>& rules,
                const std::vector<std::string>& resets = {}) const {
    Replay replay({.rules = rules, .routes = {}, .client = client_});
    for (const auto& text : resets) replay.add(text);
    for (const auto& request : requests) replay.add(line(request));
    return replay.run([](double) {}, 10);
  }

  policy::ClientSettings client_;
  std::vector<policy::Rule> recorded_;
};

TEST_F(ReplayTest, ReportListsTheClientsThatALowerLimitWouldRefuse) {
  std::vector<Request> requests;
  for (int i = 0; i < 5; ++i) requests.push_back({.at = kStart + i * 1s});
  requests.push_back({.at = kStart, .ip = "198.51.100.1"});
  const auto report = replay(requests, {rule_of("per-ip", bucket("1/h", 2), {"ip"})});
  EXPECT_EQ(report.requests, 6U);
  EXPECT_EQ(report.newly.refused, 3U);
  EXPECT_EQ(report.newly.admitted, 0U);
  EXPECT_EQ(report.admitted_then, 6U);
  EXPECT_EQ(report.refused_now, 3U);
  ASSERT_EQ(report.rules.size(), 1U);
  const auto& rule = report.rules[0];
  EXPECT_EQ(rule.met, 6U);
  EXPECT_EQ(rule.newly.refused, 3U);
  ASSERT_EQ(rule.clients.size(), 1U);
  EXPECT_EQ(rule.clients[0].client, "203.0.113.7");
  EXPECT_EQ(rule.clients[0].newly.refused, 3U);
}

TEST_F(ReplayTest, NewConfigurationMayHaveAThousandRules) {
  std::vector<policy::Rule> rules;
  for (limit::RuleIndex index = 0; index < 1'000; ++index) {
    const auto path = "/" + std::to_string(index) + "/*";
    rules.push_back(rule_of(("rule-" + std::to_string(index)).c_str(), bucket("1/h", 2), {"ip"}, index));
    rules.back().rule_number = index;
    rules.back().match.path = *policy::PathMatch::parse(path.c_str());
  }
  rules[500].key = {*policy::parse_key_part("query:tenant")};  // the log hides the value
  std::vector<Request> requests;
  for (const auto* path : {"/256/a", "/500/a?tenant=***", "/999/a"})
    for (int i = 0; i < 5; ++i) requests.push_back({.at = kStart + i * 1s, .path = path});
  const auto report = replay(requests, rules);
  EXPECT_EQ(report.rules[256].newly.refused, 3U);
  EXPECT_EQ(report.rules[500].met, 0U);
  EXPECT_FALSE(report.rules[500].left_out.empty());
  EXPECT_EQ(report.rules[999].newly.refused, 3U);
  EXPECT_EQ(report.newly.refused, 6U);
}

TEST_F(ReplayTest, PenaltyInTheNewConfigurationRefusesItsClientsForLonger) {
  std::vector<Request> requests;
  for (const auto second : {0, 0, 2, 8, 12}) requests.push_back({.at = kStart + second * 1s});
  auto rule = rule_of("per-ip", bucket("1/s", 1), {"ip"});
  EXPECT_EQ(replay(requests, {rule}).newly.refused, 1U);
  rule.penalty = {.after = 1, .first = 10s, .grows = 2, .most = 1h, .forget = 24h};
  EXPECT_EQ(replay(requests, {rule}).newly.refused, 3U);
}

// Returns a rule of 10 requests a day that adapts down to 20 %.
policy::Rule adapting_rule() {
  auto rule = rule_of("per-ip", bucket("10/day", 10), {"ip"});
  rule.adapt = policy::Adapt{.upstream = "api", .terms = {.errors_above = 5, .floor = 4}};
  for (limit::Factor factor = 1; factor < limit::kWholeFactor; ++factor)
    rule.scaled.emplace_back(limit::scaled(rule.limiter, factor, 1).value());
  return rule;
}

TEST_F(ReplayTest, RequestIsReplayedWithItsLoggedAdaptFactor) {
  recorded_ = {adapting_rule()};
  const auto at = [&](int second, limit::Factor factor) {
    return Request{.at = kStart + second * 1s,
                   .said = {{.rule = &recorded_[0], .key = {1, 2}, .outcome = "admitted", .factor = factor}}};
  };
  const std::vector<Request> requests{at(0, 4), at(1, 4), at(2, 4), at(3, limit::kWholeFactor)};
  const auto report = replay(requests, recorded_);
  EXPECT_EQ(report.newly.refused, 2U) << "20 % of 10 are two requests, which a bucket pays at that factor";
  EXPECT_TRUE(report.notes.empty() || report.notes[0].find("adapt") == std::string::npos);
  EXPECT_EQ(replay(requests, {rule_of("per-ip", bucket("10/day", 10), {"ip"})}).newly.refused, 0U);
}

TEST_F(ReplayTest, ReportSaysThatTheLogHasNoFactorOfARuleThatAdapts) {
  const auto report = replay({{.first = true}}, {adapting_rule()});
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_EQ(report.notes[0],
            "rule \"per-ip\" has adapt; the log has no factor below 100%, so the replay assumes the whole "
            "limit");
}

TEST_F(ReplayTest, ReportSaysThatTheLogDoesNotBeginWithTheStartOfTheProcess) {
  const auto notes = [&](const std::vector<Request>& requests) { return replay(requests, {}).notes; };
  EXPECT_TRUE(notes({{.first = true}, {.at = kStart + 1s}}).empty());
  EXPECT_TRUE(notes({{.at = kStart + 1s}, {.first = true}}).empty()) << "log lines may come in any order";
  for (const auto& requests : {std::vector<Request>{{}}, {{.first = true}, {.at = kStart + 1s, .run = 2}}}) {
    const auto said = notes(requests);
    ASSERT_EQ(said.size(), 1U);
    EXPECT_TRUE(said[0].starts_with("the log does not start with the start of weir: ")) << said[0];
  }
}

TEST_F(ReplayTest, OptionsRequestForTheWholeServerIsReplayedWithThePathStar) {
  const std::vector<Request> requests{{.path = "*", .method = "OPTIONS"},
                                      {.path = "http://a", .method = "OPTIONS"}};
  EXPECT_EQ(replay(requests, {rule_of("per-path", bucket("1/day", 1), {"path"})}).newly.refused, 1U);
}

TEST_F(ReplayTest, LoggedResetOfAKeyIsRepeated) {
  recorded_ = {rule_of("login", bucket("1/day", 2), {"ip"})};
  const auto said = [&](limit::Key key) {
    return std::vector<observe::AppliedRule>{{.rule = &recorded_[0], .key = key, .outcome = "admitted"}};
  };
  std::vector<Request> requests{{.at = kStart - 1s}};  // the log lacks this client's name
  for (const int second : {1, 3}) {
    requests.push_back({.at = kStart + second * 1s, .said = said({1, 2})});
    requests.push_back({.at = kStart + second * 1s, .ip = "198.51.100.1", .said = said({3, 4})});
  }
  requests.push_back({.at = kStart + 4s, .ip = "198.51.100.1", .said = said({3, 4})});
  const auto resets = {reset(kStart + 2s, recorded_[0], {1, 2})};
  const auto report = replay(requests, recorded_, resets);
  EXPECT_EQ(report.resets, 1U);
  EXPECT_EQ(report.requests, requests.size());
  ASSERT_EQ(report.rules[0].clients.size(), 1U);
  EXPECT_EQ(report.rules[0].clients[0].client, "198.51.100.1");  // only the other client's key was reset
  EXPECT_EQ(report.newly.refused, 1U);
  EXPECT_EQ(replay(requests, recorded_).newly.refused, 2U);
}

TEST_F(ReplayTest, ReportCountsLoggedResetsThatDoNotApplyToTheNewRules) {
  const auto before = rule_of("login", bucket("1/day", 2), {"user"});
  const auto now = rule_of("login", bucket("1/day", 1), {"ip"});
  const auto holding = rule_of("login", *limit::Concurrency::make(3), {"user"});
  const auto resets = {reset(kStart, before, {1, 2}), reset(kStart, before, {3, 4})};
  for (const auto& rule : {now, holding}) {
    const auto report = replay({{}}, {rule}, resets);
    EXPECT_EQ(report.resets, 0U);
    ASSERT_FALSE(report.notes.empty());
    EXPECT_EQ(report.notes[0],
              "of rule \"login\" 2 keys were reset under another version of the rule; the replay does not "
              "reset them");
  }
  EXPECT_EQ(replay({{}}, {}, resets).resets, 0U);  // no rule of the replay has that name
}

TEST_F(ReplayTest, ReportListsTheClientsThatARemovedRuleHadRefused) {
  recorded_ = {rule_of("old", bucket("1/h", 1), {"ip"})};
  const observe::AppliedRule refused{.rule = &recorded_[0], .key = {1, 2}, .cost = 1, .outcome = "refused"};
  const auto report = replay({{.verdict = "reject", .said = {refused}, .status = 429}}, {});
  EXPECT_EQ(report.newly.admitted, 1U);
  ASSERT_EQ(report.rules.size(), 1U);
  EXPECT_FALSE(report.rules[0].in_candidate);
  EXPECT_EQ(report.rules[0].refused_then, 1U);
  EXPECT_EQ(report.rules[0].newly.admitted, 1U);
  ASSERT_EQ(report.rules[0].clients.size(), 1U);
  EXPECT_EQ(report.rules[0].clients[0].client, "203.0.113.7");
  EXPECT_EQ(report.rules[0].clients[0].digest, "00000000000000020000000000000001");
}

TEST_F(ReplayTest, ShadowRefusalsAreCountedSeparately) {
  recorded_ = {rule_of("try", bucket("1/h", 1), {"ip"})};
  const observe::AppliedRule admitted{.rule = &recorded_[0], .key = {1, 2}, .cost = 1, .outcome = "admitted"};
  const observe::AppliedRule would{
      .rule = &recorded_[0], .key = {1, 2}, .cost = 1, .outcome = "shadow_refused"};
  const observe::AppliedRule refused{.rule = &recorded_[0], .key = {1, 2}, .cost = 1, .outcome = "refused"};
  const auto report = replay({{.said = {admitted}},
                              {.at = kStart + 1s, .said = {would}},
                              {.at = kStart + 2s, .verdict = "reject", .said = {refused}, .status = 429}},
                             recorded_);
  EXPECT_EQ(report.rules[0].refused_then, 2U);
  EXPECT_EQ(report.rules[0].shadow_then, 1U);
  EXPECT_EQ(report.rules[0].refused_now, 2U);
  EXPECT_EQ(report.newly.refused, 1U);
}

TEST_F(ReplayTest, ResultDoesNotDependOnTheOrderOfTheLines) {
  std::vector<Request> requests;
  for (int i = 0; i < 6; ++i) requests.push_back({.at = kStart + i * 20min});
  const std::vector rules{rule_of("per-ip", bucket("1/h", 1), {"ip"})};
  const auto forward = replay(requests, rules);
  std::reverse(requests.begin(), requests.end());
  EXPECT_EQ(replay(requests, rules).newly.refused, forward.newly.refused);
  EXPECT_EQ(forward.newly.refused, 4U);  // only the first and the fourth request are admitted
}

TEST_F(ReplayTest, RequestsOfTheSameMicrosecondAreReplayedInTheOrderOfTheirTimestamps) {
  const std::vector rules{rule_of("per-ip", bucket("1/h", 1), {"ip"})};
  for (const bool first : {false, true}) {
    const auto report =
        replay({{.path = "/a", .timestamp = first ? 0U : 1U, .user = "a"},
                {.path = "/b", .timestamp = first ? 1U : 0U, .user = "b"}},
               {rule_of("per-ip", bucket("1/h", 1), {"ip"}), rule_of("path", bucket("1/h", 9), {"path"}, 1)});
    EXPECT_EQ(report.newly.refused, 1U);
  }
  // The request that is first in the log has the earlier time but the later timestamp, so the replay must
  // charge it second. The report begins at the earlier time.
  const auto report = replay(
      {{.at = kStart, .ip = "198.51.100.1", .timestamp = 9000}, {.at = kStart + 1us, .ip = "198.51.100.2"}},
      {rule_of("all", bucket("1/h", 1), {})});
  EXPECT_EQ(report.rules[0].newly.refused, 1U);
  EXPECT_EQ(report.first, kStart);
}

TEST_F(ReplayTest, LimitsAreUnusedAgainAfterALoggedRestart) {
  const std::vector rules{rule_of("per-ip", bucket("1/h", 1), {"ip"})};
  EXPECT_EQ(replay({{.run = 1}, {.at = kStart + 1s, .run = 1}}, rules).newly.refused, 1U);
  EXPECT_EQ(replay({{.run = 1}, {.at = kStart + 1s, .run = 2}}, rules).newly.refused, 0U);
}

TEST_F(ReplayTest, RuleKeyedByAHeaderIsReplayedOnlyIfTheLogHasTheDigestsOfItsKeys) {
  recorded_ = {rule_of("tenant", bucket("9/s", 9), {"header:x-tenant"})};
  const observe::AppliedRule a{.rule = &recorded_[0], .key = {1, 1}, .cost = 1, .outcome = "admitted"};
  const observe::AppliedRule b{.rule = &recorded_[0], .key = {2, 2}, .cost = 1, .outcome = "admitted"};
  const std::vector<Request> requests{
      {.said = {a}}, {.at = kStart + 1s, .said = {a}}, {.at = kStart + 2s, .said = {b}}, {.at = kStart + 3s}};
  const auto known = replay(requests, {rule_of("tenant", bucket("1/h", 1), {"header:x-tenant"})});
  EXPECT_EQ(known.rules[0].left_out, "");
  EXPECT_EQ(known.rules[0].met, 3U);
  EXPECT_EQ(known.newly.refused, 1U);
  ASSERT_EQ(known.rules[0].clients.size(), 1U);
  EXPECT_EQ(known.rules[0].clients[0].digest, "00000000000000010000000000000001");

  const auto other = replay(requests, {rule_of("tenant", bucket("1/h", 1), {"header:x-other"})});
  EXPECT_NE(other.rules[0].left_out.find("the header x-other"), std::string::npos);
  EXPECT_NE(other.rules[0].left_out.find("used something else"), std::string::npos);
  EXPECT_EQ(other.newly.refused, 0U);

  const auto unknown = replay(requests, {rule_of("new", bucket("1/h", 1), {"cookie:session"})});
  EXPECT_NE(unknown.rules[0].left_out.find("the cookie session"), std::string::npos);
  EXPECT_NE(unknown.rules[0].left_out.find("has no such rule"), std::string::npos);
}

TEST_F(ReplayTest, RuleKeyedByAHiddenParameterIsReplayedOnlyIfTheLogHasItsKeys) {
  recorded_ = {rule_of("tenant", bucket("9/s", 9), {"query:tenant"})};
  const observe::AppliedRule a{.rule = &recorded_[0], .key = {1, 1}, .cost = 1, .outcome = "admitted"};
  const observe::AppliedRule b{.rule = &recorded_[0], .key = {2, 2}, .cost = 1, .outcome = "admitted"};
  const std::vector<Request> requests{{.path = "/?n=1"},
                                      {.at = kStart + 1s, .path = "/?tenant=***", .said = {a}},
                                      {.at = kStart + 2s, .path = "/?tenant=***", .said = {b}},
                                      {.at = kStart + 3s, .path = "/?n=1&tenant=***", .said = {b}}};
  const auto known = replay(requests, {rule_of("tenant", bucket("1/h", 1), {"query:tenant"})});
  EXPECT_EQ(known.rules[0].left_out, "");
  EXPECT_EQ(known.rules[0].met, 3U);
  EXPECT_EQ(known.newly.refused, 1U);
  const auto renamed = replay(requests, {rule_of("new", bucket("1/h", 1), {"query:tenant"})});
  EXPECT_NE(renamed.rules[0].left_out.find("the parameter tenant"), std::string::npos);
  EXPECT_EQ(renamed.newly.refused, 0U);
  const auto shown = replay(requests, {rule_of("new", bucket("1/h", 1), {"query:n"})});
  EXPECT_EQ(shown.rules[0].left_out, "");
  EXPECT_EQ(shown.newly.refused, 1U);
}

TEST_F(ReplayTest, LoggedSettlementsAreRepeatedAndNewRulesAreSettledByTheLoggedStatus) {
  auto rule = rule_of("failures", bucket("1/h", 1), {"ip"});
  rule.settlement = policy::Settlement{.charged = {{401, 401}}};
  rule.asks = policy::digest_of_asks(rule);
  // The log has no decision of this rule, so the replay settles its charges by the logged status.
  EXPECT_EQ(replay({{.status = 200}, {.at = kStart + 1s, .status = 401}, {.at = kStart + 2s}}, {rule})
                .newly.refused,
            1U);
  // From here on, the log has the rule's decisions and its settlement.
  recorded_ = {rule};
  const observe::AppliedRule said{.rule = &recorded_[0], .key = {1, 1}, .cost = 1, .outcome = "admitted"};
  const Amendment back{.kind = Amendment::Kind::Settle, .cost = 0, .at = kStart + 100us};
  EXPECT_EQ(replay({{.said = {said}, .amendments = {back}}, {.at = kStart + 1s, .said = {said}}}, {rule})
                .newly.refused,
            0U);
  EXPECT_EQ(replay({{.said = {said}}, {.at = kStart + 1s, .said = {said}}}, {rule}).newly.refused, 1U);
}

TEST_F(ReplayTest, NewRulesAreSettledByTheLoggedSizesOfBodies) {
  auto rule = rule_of("bytes", bucket("1/h", 5), {"ip"});
  rule.settlement = policy::Settlement{.kind = policy::Settlement::Kind::Bytes, .per = 1000};
  const auto refused = [&](std::optional<std::uint64_t> bytes, unsigned status = 200) {
    return replay({{.status = status, .bytes = bytes}, {.at = kStart + 1s}}, {rule}).newly.refused;
  };
  EXPECT_EQ(refused(4000), 0U);
  EXPECT_EQ(refused(4001), 1U);
  EXPECT_EQ(refused(std::nullopt), 0U) << "the log lacks the size, so the reserve of 1 stands";
  rule.settlement->charged = {{200, 299}};
  EXPECT_EQ(refused(4001, 404), 0U);
}

TEST_F(ReplayTest, GrpcCallThatIsChargedByItsStatusIsNeverRefunded) {
  auto rule = rule_of("failures", bucket("1/h", 1), {"ip"});
  rule.settlement = policy::Settlement{.charged_calls = 1U << 16U};
  const auto report = replay({{.status = 200}, {.at = kStart + 1s, .status = 200}}, {rule});
  EXPECT_EQ(report.newly.refused, 1U);
  EXPECT_THAT(report.notes,
              ::testing::Contains(::testing::HasSubstr("\"failures\" charges gRPC calls by their status")));
}

TEST_F(ReplayTest, ConcurrencyPermitIsHeldAsLongAsTheLoggedRequestLasted) {
  const std::vector rules{rule_of("at-once", *limit::Concurrency::make(1), {"ip"})};
  const auto overlapping = replay({{}, {.at = kStart + 400us}, {.at = kStart + 1000us}}, rules);
  EXPECT_EQ(overlapping.newly.refused, 1U);
  const auto refused_then =
      replay({{.verdict = "reject", .status = 429}, {.at = kStart + 400us}, {.at = kStart + 1000us}}, rules);
  EXPECT_EQ(refused_then.newly.admitted, 1U);
  EXPECT_EQ(refused_then.newly.refused, 1U);
  EXPECT_TRUE(std::any_of(refused_then.notes.begin(), refused_then.notes.end(), [](const std::string& note) {
    return note.find("on average") != std::string::npos;
  }));
}

TEST_F(ReplayTest, UnusableLinesAreCountedByReason) {
  Replay replay({.rules = {}, .routes = {}, .client = client_});
  replay.add("nonsense");
  replay.add("{}");
  replay.add(line({}));
  const auto report = replay.run([](double) {}, 10);
  EXPECT_EQ(report.lines, 3U);
  EXPECT_EQ(report.requests, 1U);
  EXPECT_EQ(report.unusable[static_cast<std::size_t>(Unusable::NoJson)], 1U);
  EXPECT_EQ(report.unusable[static_cast<std::size_t>(Unusable::NoReplay)], 1U);
}

}  // namespace
}  // namespace weir::replay
