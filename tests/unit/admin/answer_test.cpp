#include "admin/pages/admission.hpp"

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::admin {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class AnswerTest : public ::testing::Test {
 protected:
  AnswerTest() {
    sources_.version = "1.2.3";
    sources_.commit = "0123456789ab";
    sources_.routes = {"api", "static"};
    sources_.rules = {{"per-key", "token_bucket", "token_bucket 10/s, burst 100", "everything", "api_key|ip",
                       "memory", "enforce"},
                      {"login", "gcra", "gcra 5/min", "path /login", "ip", "redis", "shadow"}};
    sources_.rules[1].index = 1;
    sources_.upstreams = {"backend"};
    sources_.counters = {&one_, &two_};
  }

  [[nodiscard]] Answer ask(const PageRequest& question) const {
    const auto admitted = admit({token_, {.host = "127.0.0.1", .port = 9900, .unix_path = {}}}, question);
    if (const auto* refusal = std::get_if<Answer>(&admitted)) return *refusal;
    return std::get<Page::Handler>(std::get<const Page*>(admitted)->handler)(sources_, question);
  }
  [[nodiscard]] Answer get(std::string_view target, std::string_view authorization = {}) const {
    return ask({.method = "GET", .target = target, .authorization = authorization});
  }
  [[nodiscard]] std::string metrics() const { return metrics_text(sources_); }

  static constexpr observe::Counters::Shape kShape{.routes = 2, .rules = 2, .upstreams = 1};
  observe::Counters one_{kShape};
  observe::Counters two_{kShape};
  Sources sources_;
  Token token_{""};
};

TEST_F(AnswerTest, MetricsPageIncludesAlerts) {
  EXPECT_THAT(metrics(), Not(HasSubstr("weir_alert")));
  sources_.alerts = [] {
    AlertFigures figures;
    figures.name = "login";
    figures.firing = true;
    figures.fired = 3;
    figures.failed = 2;
    return std::vector{figures};
  };
  EXPECT_THAT(metrics(), HasSubstr("weir_alert_firing{alert=\"login\"} 1\n"));
  EXPECT_THAT(metrics(), HasSubstr("weir_alerts_total{alert=\"login\",state=\"firing\"} 3\n"));
  EXPECT_THAT(metrics(), HasSubstr("weir_alert_posts_failed_total{alert=\"login\"} 2\n"));
}

TEST_F(AnswerTest, MetricsPageIncludesVerdictsAndUpstreamErrors) {
  one_.verdicts(observe::Verdict::Delayed).add(2);
  two_.verdicts(observe::Verdict::Delayed).add(3);
  two_.upstream(0).errors.add(4);
  EXPECT_THAT(metrics(), HasSubstr("weir_verdicts_total{verdict=\"delayed\"} 5\n"));
  EXPECT_THAT(metrics(), HasSubstr("weir_upstream_errors_total{upstream=\"backend\"} 4\n"));
}

TEST_F(AnswerTest, MetricsPageIncludesTheLoadOfCpuAndQueue) {
  EXPECT_THAT(metrics(), Not(HasSubstr("weir_load")));
  sources_.load = [] { return std::vector<std::pair<const char*, double>>{{"cpu", 0.25}, {"queue", 1}}; };
  EXPECT_THAT(metrics(), HasSubstr("weir_load{kind=\"cpu\"} 0.25\n"));
  EXPECT_THAT(metrics(), HasSubstr("weir_load{kind=\"queue\"} 1\n"));
}

TEST_F(AnswerTest, HealthPageAnswersOk) {
  EXPECT_EQ(get("/healthz").status, 200U);
  EXPECT_EQ(get("/healthz").body, "ok\n");
  EXPECT_EQ(get("/healthz?verbose").status, 200U);
}

TEST_F(AnswerTest, ReadinessPageShowsWhetherWeirIsReadyAndWhyNot) {
  EXPECT_EQ(get("/readyz").body, R"({"ready":true})");
  Readiness now{false, "upstream backend: no server answers"};
  sources_.readiness = [&] { return now; };
  EXPECT_EQ(get("/readyz").status, 503U);
  EXPECT_EQ(get("/readyz").body, R"({"ready":false,"detail":"upstream backend: no server answers"})");
  now.cause = "10.0.0.1:7000: Connection refused";
  EXPECT_THAT(get("/readyz").body, HasSubstr(R"("cause":"10.0.0.1:7000: Connection refused")"));
  now = {true, ""};
  EXPECT_EQ(get("/readyz").status, 200U);
}

TEST_F(AnswerTest, UnknownPageGets404AndWrongMethodGets405) {
  EXPECT_EQ(get("/nothing").status, 404U);
  EXPECT_EQ(get("/metrics/").status, 404U);
  EXPECT_EQ(boost::json::parse(get("/nothing").body).at("error").as_string(), "not_found");
  for (const char* method : {"POST", "DELETE", "get", "OPTIONS"}) {
    const auto said = ask({.method = method, .target = "/metrics"});
    EXPECT_EQ(said.status, 405U) << method;
    EXPECT_EQ(said.allow, "GET, HEAD");
    EXPECT_EQ(boost::json::parse(said.body).at("error").as_string(), "method_not_allowed");
  }
}

TEST_F(AnswerTest, PagesWithDataRequireTheToken) {
  token_ = Token("s3cret");
  for (const char* target : {"/metrics", "/api/rules", "/api/overview", "/nothing"}) {
    const auto refused = get(target);
    EXPECT_EQ(refused.status, 401U) << target;
    EXPECT_TRUE(refused.challenge);
    EXPECT_THAT(refused.body, Not(HasSubstr("weir_")));
  }
  for (const char* target : {"/healthz", "/readyz", "/", "/web/main.js"})
    EXPECT_EQ(get(target).status, 200U) << target;
  EXPECT_EQ(get("/metrics", "Bearer s3cret").status, 200U);
  EXPECT_EQ(get("/nothing", "bearer s3cret").status, 404U);
}

TEST_F(AnswerTest, RejectsEveryAuthorizationExceptTheBearerToken) {
  token_ = Token("s3cret");
  for (const char* offered : {"", "s3cret", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3cretX",
                              "Bearer  s3cret", "Basic s3cret", "BearerXs3cret", "Bearer S3CRET"})
    EXPECT_EQ(get("/metrics", offered).status, 401U) << offered;
}

TEST_F(AnswerTest, RulesPageAddsUpTheCountersOfAllWorkers) {
  one_.decisions(1, observe::RuleOutcome::ShadowRefused).add(3);
  two_.decisions(1, observe::RuleOutcome::ShadowRefused).add(4);
  const auto rules = boost::json::parse(get("/api/rules").body).at("rules").as_array();
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0].at("name").as_string(), "per-key");
  EXPECT_EQ(rules[0].at("limit").as_string(), "token_bucket 10/s, burst 100");
  EXPECT_EQ(rules[0].at("counters").at("shadow_refused").as_int64(), 0);
  EXPECT_EQ(rules[1].at("mode").as_string(), "shadow");
  EXPECT_EQ(rules[1].at("key").as_string(), "ip");
  EXPECT_EQ(rules[1].at("counters").at("shadow_refused").as_int64(), 7);
}

TEST_F(AnswerTest, MetricsPageAddsUpTheCountersOfAllWorkers) {
  one_.requests(0, 200).add(5);
  two_.requests(0, 200).add(6);
  one_.requests(std::nullopt, 404).add();
  two_.requests(1, observe::Counters::kNoStatus).add(2);
  one_.decisions(0, observe::RuleOutcome::Refused).add(9);
  one_.queue_depth.add(3);
  one_.queue_overdue.add();
  one_.shed[9].add(2);
  two_.shed[9].add();
  two_.queue_depth.add(4);
  two_.upstream(0).reused.add(8);
  one_.client_errors(observe::ClientError::BadHead).add();
  const auto text = metrics();
  EXPECT_THAT(text, HasSubstr("weir_requests_total{code=\"200\",route=\"api\"} 11\n"));
  EXPECT_THAT(text, HasSubstr("weir_requests_total{code=\"404\",route=\"none\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("weir_requests_total{code=\"none\",route=\"static\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("weir_decisions_total{outcome=\"refused\",rule=\"per-key\"} 9\n"));
  EXPECT_THAT(text, HasSubstr("weir_decisions_total{outcome=\"admitted\",rule=\"login\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("weir_queue_depth 7\n"));
  EXPECT_THAT(text, HasSubstr("weir_queue_refused_total{reason=\"overdue\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("weir_shed_total{priority=\"9\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("weir_upstream_reused_total{upstream=\"backend\"} 8\n"));
  EXPECT_THAT(text, HasSubstr("weir_client_errors_total{kind=\"bad_head\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE weir_requests_total counter\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE weir_queue_depth gauge\n"));
  EXPECT_THAT(text, HasSubstr("weir_build{version=\"1.2.3\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("weir_build_info{commit=\"0123456789ab\",version=\"1.2.3\"} 1\n"));
}

TEST_F(AnswerTest, HistogramBucketsAreCumulativeAndInSeconds) {
  one_.local_reply_seconds.record(base::Duration{50});
  two_.local_reply_seconds.record(base::Duration{700});
  two_.local_reply_seconds.record(base::Duration{90'000'000});
  const auto text = metrics();
  EXPECT_THAT(text, HasSubstr("weir_local_reply_seconds_count 3\n"));
  EXPECT_THAT(text, HasSubstr("weir_local_reply_seconds_sum 90.00075\n"));
  EXPECT_THAT(text, HasSubstr("weir_local_reply_seconds_bucket{le=\"0.0005\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("weir_local_reply_seconds_bucket{le=\"0.001\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("weir_local_reply_seconds_bucket{le=\"60\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("weir_local_reply_seconds_bucket{le=\"+Inf\"} 3\n"));
}

TEST_F(AnswerTest, HistogramsOfRoutesAndUpstreamsAddUpTheCountersOfAllWorkers) {
  one_.route(0).seconds.record(base::Duration{700});
  two_.route(0).seconds.record(base::Duration{3'000});
  one_.upstream(0).seconds.record(base::Duration{600});
  two_.upstream(0).seconds.record(base::Duration{40});
  const auto text = metrics();
  EXPECT_THAT(text, HasSubstr("# TYPE weir_request_seconds histogram\n"));
  EXPECT_THAT(text, HasSubstr("weir_request_seconds_count{route=\"api\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("weir_request_seconds_sum{route=\"api\"} 0.0037\n"));
  EXPECT_THAT(text, HasSubstr("weir_request_seconds_bucket{route=\"api\",le=\"0.001\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("weir_request_seconds_bucket{route=\"api\",le=\"0.005\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("weir_upstream_seconds_count{upstream=\"backend\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("weir_upstream_seconds_bucket{upstream=\"backend\",le=\"5e-05\"} 1\n"));
}

TEST_F(AnswerTest, RouteWithoutForwardedRequestsHasNoHistogram) {
  one_.requests(1, 429).add();
  one_.route(0).seconds.record(base::Duration{700});
  EXPECT_THAT(metrics(), HasSubstr("weir_request_seconds_count{route=\"api\"} 1\n"));
  EXPECT_THAT(metrics(), Not(HasSubstr("weir_request_seconds_count{route=\"static\"}")));
}

TEST_F(AnswerTest, MetricsPageAddsUpTheRequestsInFlightOfAllWorkers) {
  one_.route(0).in_flight.add(2);
  two_.route(0).in_flight.add(3);
  two_.upstream(0).in_flight.add(4);
  const auto text = metrics();
  EXPECT_THAT(text, HasSubstr("weir_route_requests_in_flight{route=\"api\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("weir_route_requests_in_flight{route=\"static\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("weir_upstream_requests_in_flight{upstream=\"backend\"} 4\n"));
}

TEST_F(AnswerTest, RoutesWithTheSameNameShareOneMetricSeries) {
  sources_.routes = {"same", "same"};
  one_.requests(0, 200).add(1);
  one_.requests(1, 200).add(2);
  const auto text = metrics();
  const std::string series = "weir_requests_total{code=\"200\",route=\"same\"}";
  EXPECT_THAT(text, HasSubstr(series + " 3\n"));
  EXPECT_EQ(text.find(series), text.rfind(series));
  one_.route(0).seconds.record(base::Duration{1});
  two_.route(1).seconds.record(base::Duration{1});
  EXPECT_THAT(metrics(), HasSubstr("weir_request_seconds_count{route=\"same\"} 2\n"));
}

TEST_F(AnswerTest, MetricLabelsAreEscaped) {
  sources_.routes = {"~^/a\"\\b\n", "static"};
  one_.requests(0, 200).add();
  EXPECT_THAT(metrics(), HasSubstr(R"(weir_requests_total{code="200",route="~^/a\"\\b\n"} 1)"));
}

TEST_F(AnswerTest, MetricsPageOmitsRedisAndKeysIfTheyAreNotConfigured) {
  EXPECT_THAT(metrics(), Not(HasSubstr("weir_redis")));
  EXPECT_THAT(metrics(), Not(HasSubstr("weir_keys")));
  sources_.key_table = [] {
    return limit::KeyTable::Stats{.keys = 12, .slots = 1024, .overflowed = 1, .overflow_refused = 3};
  };
  sources_.redis = [] {
    return std::vector<RedisFigures>{{.up = true, .calls = 10, .timeouts = 1}, {.up = false, .calls = 5}};
  };
  sources_.now = [] {
    return std::chrono::time_point_cast<base::Duration>(std::chrono::system_clock::now() -
                                                        std::chrono::seconds(100));
  };
  const auto text = metrics();
  EXPECT_THAT(text, ContainsRegex("weir_clock_step_seconds 100\\.0"));
  EXPECT_THAT(text, HasSubstr("weir_keys 12\n"));
  EXPECT_THAT(text, HasSubstr("weir_key_overflows_total{outcome=\"charged\"} 1\n"
                              "weir_key_overflows_total{outcome=\"refused\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("weir_redis_up{worker=\"0\"} 1\nweir_redis_up{worker=\"1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("weir_redis_calls_total 15\n"));
}

}  // namespace
}  // namespace weir::admin
