#include "admin/pages/answer.hpp"

#include "weir/admin/recorder.hpp"

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace weir::admin {
namespace {

namespace json = boost::json;
using observe::RuleOutcome;
using observe::Verdict;

constexpr base::TimePoint second(std::int64_t seconds) {
  return base::TimePoint{std::chrono::seconds(seconds)};
}

RuleText rule(const char* name, const char* mode) {
  RuleText text;
  text.name = name;
  text.mode = mode;
  return text;
}

class OverviewTest : public ::testing::Test {
 protected:
  OverviewTest() {
    sources_.version = "1.2.3";
    sources_.started = second(1000);
    sources_.now = [] { return second(1060); };
    sources_.routes = {"api"};
    sources_.rules = {rule("per-key", "enforce"), rule("login", "shadow")};
    sources_.rules[1].index = 1;
    sources_.upstreams = {"backend"};
    sources_.counters = {&one_, &two_};
    sources_.recorder = &recorder_;
  }

  [[nodiscard]] json::object overview() const { return json::parse(overview_json(sources_)).as_object(); }
  [[nodiscard]] json::object history() const { return json::parse(history_json(sources_)).as_object(); }

  static constexpr observe::Counters::Shape kShape{.routes = 1, .rules = 2, .upstreams = 1};
  observe::Counters one_{kShape};
  observe::Counters two_{kShape};
  Recorder recorder_;
  Sources sources_;
};

TEST_F(OverviewTest, AddsUpTheCountersOfAllWorkers) {
  one_.verdicts(Verdict::Admitted).add(5);
  two_.verdicts(Verdict::Admitted).add(6);
  two_.verdicts(Verdict::Refused).add(2);
  one_.requests(0, 200).add(7);
  two_.requests(std::nullopt, 404).add();
  one_.requests(0, observe::Counters::kNoStatus).add();
  one_.shed[3].add(2);
  one_.queue_depth.add(3);
  two_.connections_open.add(4);
  one_.http2_connections_open.add(1);
  two_.http2_connections_open.add(2);
  two_.http2_streams_open.add(30);
  two_.upstream(0).errors.add(9);
  one_.route(0).seconds.record(base::Duration{70});
  two_.route(0).seconds.record(base::Duration{80});
  two_.local_reply_seconds.record(base::Duration{80});
  const auto told = overview();
  EXPECT_EQ(told.at("version").as_string(), "1.2.3");
  EXPECT_EQ(told.at("started").as_int64(), 1'000'000);
  EXPECT_EQ(told.at("now").as_int64(), 1'060'000);
  EXPECT_EQ(told.at("workers").to_number<int>(), 2);
  EXPECT_EQ(told.at("traffic"), json::parse(R"({"admitted":11,"delayed":0,"refused":2,"shed":2})"));
  EXPECT_EQ(told.at("answers"), json::parse(R"({"none":1,"1xx":0,"2xx":7,"3xx":0,"4xx":1,"5xx":0})"));
  EXPECT_EQ(told.at("queue_depth").as_int64(), 3);
  EXPECT_EQ(told.at("connections").as_int64(), 4);
  EXPECT_EQ(told.at("http2"), json::parse(R"({"connections":3,"streams":30})"));
  EXPECT_EQ(told.at("upstreams").at(0).at("errors").to_number<int>(), 9);
  const auto& latency = told.at("latency").as_object();
  EXPECT_EQ(latency.at("counts").as_array().size(), latency.at("bounds_us").as_array().size() + 1);
  EXPECT_EQ(latency.at("counts").at(1).to_number<int>(), 2) << "weir's own answers do not count";
}

TEST_F(OverviewTest, OmitsRedisKeysAndCertificatesIfTheyAreNotConfigured) {
  for (const char* name : {"redis", "keys", "certificates", "process"})
    EXPECT_FALSE(overview().contains(name)) << name;
  sources_.redis = [] {
    return std::vector<RedisFigures>{{.up = true, .calls = 10, .failures = 1}, {.up = false, .calls = 5}};
  };
  sources_.key_table = [] { return limit::KeyTable::Stats{.keys = 12, .slots = 1024, .overflowed = 1}; };
  sources_.process = [] { return ProcessFigures{.resident_bytes = 7, .cpu_seconds = 0.5}; };
  const auto told = overview();
  EXPECT_EQ(told.at("redis"),
            json::parse(R"({"connections":2,"up":1,"calls":15,"failures":1,"timeouts":0,"reconnects":0})"));
  EXPECT_EQ(told.at("keys"), json::parse(R"({"used":12,"slots":1024,"overflowed":1})"));
  EXPECT_EQ(told.at("process").at("resident_bytes").to_number<int>(), 7);
}

TEST_F(OverviewTest, ListsEachServerUnderItsUpstream) {
  sources_.upstreams = {"backend"};
  sources_.servers = [] {
    return std::vector<ServerFigures>{{"backend", "10.0.0.1:80", true, 0}, {"other", "10.0.0.2:80", true, 0}};
  };
  const auto told = overview();
  const auto& servers = told.at("upstreams").at(0).at("servers").as_array();
  ASSERT_EQ(servers.size(), 1U);
  EXPECT_EQ(servers[0], json::parse(R"({"server":"10.0.0.1:80","healthy":true,"drained":false,"weight":1,)"
                                    R"("configured_weight":1,"in_flight":0,"failures":0,"ejections":0})"));
}

TEST_F(OverviewTest, ShowsSinceWhenARuleHasBeenRefusingRequests) {
  recorder_.record(sources_, second(1000));
  EXPECT_TRUE(overview().at("rules").at(0).at("refusing_since").is_null());
  two_.decisions(0, RuleOutcome::Refused).add();
  one_.decisions(1, RuleOutcome::ShadowRefused).add();
  recorder_.record(sources_, second(1005));
  recorder_.record(sources_, second(1010));
  const auto told = overview();
  for (const int rule : {0, 1}) {
    EXPECT_EQ(told.at("rules").at(rule).at("refusing_since").as_int64(), 1'005'000);
    EXPECT_EQ(told.at("rules").at(rule).at("last_refused").as_int64(), 1'005'000);
  }
  EXPECT_EQ(told.at("rules").at(1).at("counters").at("shadow_refused").to_number<int>(), 1);
}

TEST_F(OverviewTest, HistoryHasTheLatestCountsOfAllRequestsAndOfEachRule) {
  recorder_.record(sources_, second(1000));
  one_.verdicts(Verdict::Admitted).add(4);
  one_.decisions(0, RuleOutcome::Admitted).add(3);
  one_.decisions(0, RuleOutcome::Delayed).add();
  recorder_.record(sources_, second(1005));
  one_.verdicts(Verdict::Refused).add(2);
  two_.decisions(1, RuleOutcome::ShadowRefused).add(2);
  recorder_.record(sources_, second(1010));
  EXPECT_EQ(history(), json::parse(R"({"step_ms":5000,"end":1010000,
      "admitted":[4,0],"delayed":[0,0],"refused":[0,2],
      "rules":[{"name":"per-key","admitted":[4,0],"refused":[0,0]},
               {"name":"login","admitted":[0,0],"refused":[0,2]}]})"));
}

TEST_F(OverviewTest, RuleKeepsItsHistoryWhenARuleIsAddedBeforeIt) {
  recorder_.record(sources_, second(1000));
  one_.decisions(0, RuleOutcome::Refused).add(2);
  recorder_.record(sources_, second(1005));
  observe::Counters changed({.routes = 1, .rules = 2, .upstreams = 1});
  sources_.rules[1] = sources_.rules[0];
  sources_.rules[0].name = "new";
  sources_.rules[0].index = 1;
  changed.decisions(0, RuleOutcome::Refused).add(3);
  sources_.counters = {&changed};
  recorder_.record(sources_, second(1010));
  const auto told = overview();
  EXPECT_TRUE(told.at("rules").at(0).at("refusing_since").is_null());
  EXPECT_EQ(told.at("rules").at(1).at("refusing_since").as_int64(), 1'005'000);
  EXPECT_EQ(history().at("rules").at(1).at("refused"), json::parse("[2,1]"));
  EXPECT_EQ(history().at("rules").at(0).at("refused"), json::parse("[0,0]"));
}

TEST_F(OverviewTest, HistoryIsEmptyIfNothingRecordsIt) {
  sources_.recorder = nullptr;
  EXPECT_EQ(history(),
            json::parse(R"({"step_ms":5000,"end":0,"rules":[],"admitted":[],"delayed":[],"refused":[]})"));
  EXPECT_FALSE(overview().at("rules").at(0).as_object().contains("refusing_since"));
}

}  // namespace
}  // namespace weir::admin
