#include "weir/replay/log_line.hpp"

#include "weir/observe/access_record.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weir::replay {
namespace {

using base::Duration;
using base::TimePoint;
using observe::Amendment;

policy::Rule rule_named(const char* name, limit::RuleIndex index) {
  policy::Rule rule{
      .name = name, .index = index, .rule_number = index, .limiter = *limit::Concurrency::make(3)};
  rule.asks = 0x0abc1234;
  return rule;
}

// A log line with all fields, as weir writes it.
struct Written {
  TimePoint start{Duration{1'771'581'600'123'456}};
  std::vector<policy::Rule> rules{rule_named("login", 7), rule_named("all", 3)};
  std::vector<observe::AppliedRule> said{
      {.rule = &rules[0], .key = {1, 2}, .cost = 5, .outcome = "admitted", .variant = 2, .elastic = true},
      {.rule = &rules[1], .key = {3, 4}, .cost = 1, .outcome = "refused", .factor = 7}};
  std::vector<Amendment> amendments{
      {.kind = Amendment::Kind::Settle, .elastic = true, .rule = 7, .cost = 9, .at = start + Duration(900)},
      {.kind = Amendment::Kind::Release,
       .rule = 3,
       .at = start + Duration(901),
       .ending = {Duration(55), true}},
      {.kind = Amendment::Kind::Refund,
       .rule = 3,
       .at = start + Duration(5),
       .departure = start + Duration(70)}};
  observe::ReplayRecord replay;
  observe::AccessRecord record;

  Written() {
    amendments[0].timestamp = limit::timestamp_at(amendments[0].at) + 6;
    replay.run = 0xfedc;
    replay.start = start;
    replay.evaluated_at = start + Duration(40);
    replay.user = "al\"ice";
    replay.load = 0.1;
    replay.rules = said;
    replay.amendments = amendments;
    replay.all_rules = rules;
    replay.timestamp = limit::timestamp_at(replay.evaluated_at) + 3;
    replay.api_key = base::Digest128{5, 6};
    replay.tier = "pro";
    record.start = start;
    record.total = Duration(1500);
    record.upstream = Duration(300);
    record.client = *base::IpAddress::parse("2001:db8::7");
    record.method = "POST";
    record.target = "/a?b=\"c";
    record.host = "example.com";
    record.route = "api";
    record.status = 401;
    record.verdict = "forward";
    record.replay = &replay;
  }
  [[nodiscard]] std::string line() const {
    std::string text;
    observe::append_json(text, record, observe::LogFields::for_replay());
    text.pop_back();
    return text;
  }
};

TEST(LogLineReader, SettlementOrRefundAfterTheStateMovedToANewProcessIsIgnored) {
  Written written;
  // Gives the settlement and the refund a timestamp. Changes in the key table have timestamps.
  written.amendments[2].timestamp = limit::timestamp_at(written.amendments[2].at);
  LogLineReader reader;
  Unusable why{};
  written.replay.lost_from = written.start + Duration(100);
  const auto* line = reader.read(written.line(), why);
  ASSERT_NE(line, nullptr);
  ASSERT_EQ(line->amendments.size(), 2U);  // the settlement is ignored; a release is always kept
  EXPECT_EQ(line->amendments[0].what.kind, Amendment::Kind::Release);
  EXPECT_EQ(line->amendments[1].what.kind, Amendment::Kind::Refund);
  written.replay.lost_from = written.start + Duration(40);
  EXPECT_EQ(reader.read(written.line(), why), nullptr);
  EXPECT_EQ(why, Unusable::Lost);
  written.replay.in_memory = false;
  EXPECT_NE(reader.read(written.line(), why), nullptr);
}

TEST(LogLineReader, ReadsTheValuesOfAQuestion) {
  const auto with = [](const std::string& question) {
    Written written;
    written.record.question = question;
    std::string text;
    observe::append_json(text, written.record,
                         observe::LogFields::for_replay().add(observe::LogField::Question));
    return text;
  };
  LogLineReader reader;
  Unusable why{};
  const auto* line = reader.read(with(R"({"domain":"edge","cost":2,"descriptors":[{"exact":true,"cost":0,)"
                                      R"("entries":[{"key":"a","value":"b"},{"key":"c","digest":"d"}]}]})"),
                                 why);
  ASSERT_NE(line, nullptr);
  ASSERT_TRUE(line->is_question);
  const auto& question = line->question;
  EXPECT_EQ(question.domain, "edge");
  EXPECT_EQ(question.cost, 2U);
  ASSERT_EQ(question.descriptors.size(), 1U);
  EXPECT_TRUE(question.descriptors[0].exact);
  EXPECT_EQ(question.descriptors[0].cost, 0U);
  EXPECT_EQ(question.descriptors[0].value_of("a"), "b");
  EXPECT_EQ(question.descriptors[0].value_of("c"), "d");
  EXPECT_EQ(question.hidden, std::vector<std::string_view>{"c"});
  line = reader.read(with("{}"), why);
  ASSERT_NE(line, nullptr);
  EXPECT_TRUE(line->is_question && line->question.descriptors.empty());
  line = reader.read(with(""), why);
  ASSERT_NE(line, nullptr);
  EXPECT_FALSE(line->is_question);
  EXPECT_EQ(reader.read(with(R"({"cut":true})"), why), nullptr);
  EXPECT_EQ(why, Unusable::Cut);
}

TEST(LogLineReader, ReadsALineAboutTheResetOfAKey) {
  const TimePoint at{Duration{1'771'581'600'123'456}};
  const std::vector<observe::ForgottenKey> keys{{{1, 2}, limit::timestamp_at(at) + 9}, {{3, 4}, 0}};
  std::string text;
  observe::append_json(text, {.run = 0xfedc, .at = at, .rule = "login", .asks = 0x0abc1234, .keys = keys});
  EXPECT_EQ(text,
            "{\"time\":\"2026-02-20T10:00:00.123456Z\",\"replay\":{\"run\":\"000000000000fedc\","
            "\"reset\":{\"rule\":\"login\",\"asks\":\"0abc1234\",\"keys\":["
            "{\"key\":\"00000000000000020000000000000001\",\"turn\":9},"
            "{\"key\":\"00000000000000040000000000000003\"}]}}}\n");
  LogLineReader reader;
  Unusable why{};
  const auto* line = reader.read(text, why);
  ASSERT_NE(line, nullptr);
  ASSERT_TRUE(line->is_reset);
  EXPECT_EQ(line->reset.rule, "login");
  EXPECT_EQ(line->reset.asks, 0x0abc1234U);
  ASSERT_EQ(line->reset.keys.size(), 2U);
  EXPECT_EQ(line->reset.keys[0].key, keys[0].key);
  EXPECT_EQ(line->reset.keys[0].timestamp, keys[0].timestamp);
  EXPECT_EQ(line->reset.keys[1].timestamp, limit::timestamp_at(at));
  ASSERT_NE(line = reader.read(Written().line(), why), nullptr);
  EXPECT_FALSE(line->is_reset);
  EXPECT_EQ(reader.read(R"({"time":"2026-02-20T10:00:00.123456Z","replay":{"reset":1}})", why), nullptr);
  EXPECT_EQ(why, Unusable::Lacking);
}

TEST(LogLineReader, ReadsAllFieldsThatTheAccessLogWrites) {
  const Written written;
  LogLineReader reader;
  Unusable why{};
  for (int again = 0; again < 3; ++again) {
    const auto* line = reader.read(written.line(), why);
    ASSERT_NE(line, nullptr) << static_cast<int>(why) << written.line();
    EXPECT_EQ(line->run, 0xfedcU);
    EXPECT_EQ(line->start, written.start);
    EXPECT_EQ(line->evaluated_at, written.start + Duration(40));
    EXPECT_EQ(line->timestamp, written.replay.timestamp);
    EXPECT_EQ(line->client, written.record.client);
    EXPECT_EQ(line->method, "POST");
    EXPECT_EQ(line->target, "/a?b=\"c");
    EXPECT_EQ(line->host, "example.com");
    EXPECT_EQ(line->route, "api");
    EXPECT_EQ(line->status, 401U);
    EXPECT_EQ(line->total, Duration(1500));
    EXPECT_EQ(line->upstream, Duration(300));
    EXPECT_EQ(line->api_key, "00000000000000060000000000000005");
    EXPECT_EQ(line->user, "al\"ice");
    EXPECT_EQ(line->tier, "pro");
    EXPECT_EQ(line->load, 0.1);
    EXPECT_EQ(line->verdict, Verdict::Admitted);
    ASSERT_EQ(line->rules.size(), 2U);
    EXPECT_EQ(line->rules[0].rule, "login");
    EXPECT_EQ(line->rules[0].asks, 0x0abc1234U);
    EXPECT_EQ(line->rules[0].key, (limit::Key{1, 2}));
    EXPECT_EQ(line->rules[0].cost, 5U);
    EXPECT_EQ(line->rules[0].variant, 2);
    EXPECT_TRUE(line->rules[0].elastic);
    EXPECT_EQ(line->rules[0].factor, limit::kWholeFactor);
    EXPECT_EQ(line->rules[1].factor, 7);
    EXPECT_EQ(line->rules[1].outcome, "refused");
    ASSERT_EQ(line->amendments.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto& one = line->amendments[i];
      const auto& was = written.amendments[i];
      EXPECT_EQ(one.rule, i == 0 ? "login" : "all");
      EXPECT_EQ(one.what.kind, was.kind);
      EXPECT_EQ(one.what.elastic, was.elastic);
      EXPECT_EQ(one.what.cost, was.cost);
      EXPECT_EQ(one.what.at, was.at);
      EXPECT_EQ(one.what.timestamp, std::max(was.timestamp, limit::timestamp_at(was.at)));
      EXPECT_EQ(one.what.ending.latency, was.ending.latency);
      EXPECT_EQ(one.what.ending.failed, was.ending.failed);
    }
    EXPECT_EQ(line->amendments[2].what.departure, written.amendments[2].departure);
  }
}

TEST(LogLineReader, SaysWhyALineIsUnusable) {
  LogLineReader reader;
  const auto why_not = [&](const std::string& text) {
    Unusable why{};
    return reader.read(text, why) == nullptr ? std::optional(why) : std::nullopt;
  };
  const auto good = Written().line();
  ASSERT_EQ(why_not(good), std::nullopt);
  EXPECT_EQ(why_not(""), Unusable::NoJson);
  EXPECT_EQ(why_not(good.substr(0, good.size() / 2)), Unusable::NoJson);
  EXPECT_EQ(why_not("[]"), Unusable::NoJson);
  EXPECT_EQ(why_not("{}"), Unusable::NoReplay);
  EXPECT_EQ(why_not(R"({"replay":7})"), Unusable::Lacking);
  const auto with = [&](const std::string& from, const std::string& to) {
    auto text = good;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return why_not(text.replace(at, from.size(), to));
  };
  EXPECT_EQ(with(R"("method":"POST",)", ""), Unusable::Lacking);
  EXPECT_EQ(with(R"("verdict":"forward",)", ""), Unusable::Unasked);
  EXPECT_EQ(with(R"("forward")", R"("onward")"), Unusable::Lacking);
  EXPECT_EQ(with("2026-02-20T", "2026-02-30T"), Unusable::Lacking);
  EXPECT_EQ(with(R"("cost":5)", R"("cost":-5)"), Unusable::Lacking);
  EXPECT_EQ(with(R"("does":"settle")", R"("does":"settles")"), Unusable::Lacking);
  EXPECT_EQ(with("/a?b", "/\xef\xbf\xbd?b"), Unusable::Cut);
  Written unasked;
  unasked.replay = {};
  EXPECT_EQ(why_not(unasked.line()), Unusable::Unasked);
  Written closed;
  closed.replay.closed = "login";
  EXPECT_EQ(why_not(closed.line()), Unusable::Closed);
  Written cut;
  cut.replay.cut = true;
  EXPECT_EQ(why_not(cut.line()), Unusable::Cut);
  const std::string endless(5000, 'x');
  Written longer;
  longer.record.target = endless;
  EXPECT_EQ(why_not(longer.line()), Unusable::Cut);
}

TEST(LogLineReader, ReadsALineOfAnyLength) {
  Written written;
  const std::string user(4000, 'u');
  written.replay.user = user;
  for (int i = 0; i < 400; ++i) written.said.push_back(written.said.front());
  written.replay.rules = written.said;
  LogLineReader reader;
  Unusable why{};
  const auto* line = reader.read(written.line(), why);
  ASSERT_NE(line, nullptr);
  EXPECT_EQ(line->rules.size(), 402U);
  EXPECT_EQ(line->user, user);
}

TEST(ParseTime, AcceptsOnlyUtcTimesWithMicroseconds) {
  EXPECT_EQ(parse_time("1970-01-01T00:00:00.000001Z"), TimePoint(Duration(1)));
  EXPECT_EQ(parse_time("2026-02-20T10:00:00.123456Z"), TimePoint(Duration{1'771'581'600'123'456}));
  for (const char* bad :
       {"", "2026-02-20T10:00:00Z", "2026-02-20 10:00:00.123456Z", "2026-13-20T10:00:00.123456Z"})
    EXPECT_EQ(parse_time(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace weir::replay
