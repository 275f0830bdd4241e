// Tests the inspector while Redis cannot be reached.
#include "server/inspector.hpp"

#include "unit/net/sockets.hpp"

#include "weir/policy/rule.hpp"

#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

namespace weir::server {
namespace {

using testing::HasSubstr;

std::shared_ptr<proxy::Configuration> configuration() {
  policy::Rule rule{.name = "login",
                    .limiter = limit::TokenBucket::make({1, std::chrono::hours(1)}, 1).value()};
  rule.key = {*policy::parse_key_part("ip")};
  rule.store = policy::Store::Redis;
  rule.penalty = limit::Penalty{.after = 1,
                                .first = std::chrono::hours(1),
                                .grows = 1,
                                .most = std::chrono::hours(1),
                                .forget = std::chrono::hours(1)};
  auto config = std::make_shared<proxy::Configuration>();
  config->rules = {std::move(rule)};
  return config;
}

class InspectorTest : public testing::Test {
 protected:
  InspectorTest() {
    workers_.push_back(
        std::make_unique<WorkerThread>(WorkerParts{.shared = shared_,
                                                   .config_snapshot = config_snapshot_,
                                                   .shape = {.routes = 0, .rules = 1, .upstreams = 0},
                                                   .redis = &redis_,
                                                   .redis_refunds = refunds_,
                                                   .shared_grants = nullptr,
                                                   .access_log = access_log_,
                                                   .log = log_,
                                                   .top = 0}));
    workers_.front()->start();
  }

  // Each call returns the next element of `configs_`. The last element is returned again by all later calls.
  std::shared_ptr<const proxy::Configuration> next() {
    auto config = configs_.front();
    if (configs_.size() > 1) configs_.erase(configs_.begin());
    return config;
  }

  net::asio::io_context context_{1};
  net::Clock clock_;
  limit::KeyTable table_{1000};
  proxy::SharedQueue queue_{1};
  proxy::InFlight in_flight_{0};
  proxy::ConnectionsPerIp connections_per_ip_{0};
  proxy::BodyMemory body_memory_{1 << 20};
  proxy::Shared shared_{.clock = clock_,
                        .table = table_,
                        .queue = queue_,
                        .in_flight = in_flight_,
                        .connections_per_ip = connections_per_ip_,
                        .body_memory = body_memory_};
  std::shared_ptr<proxy::ConfigSnapshot> config_snapshot_ = std::make_shared<proxy::ConfigSnapshot>();
  redis::RedisSettings redis_;
  redis::LastRefunds refunds_;
  log::AccessLog access_log_{"off", {}};
  log::Log log_{log::LogLevel::Off};
  std::vector<std::unique_ptr<WorkerThread>> workers_;
  std::vector<std::shared_ptr<proxy::Configuration>> configs_{configuration()};
  Inspector inspector_{context_.get_executor(),
                       clock_,
                       table_,
                       queue_,
                       workers_,
                       log_,
                       access_log_,
                       {.config = [this] { return next(); },
                        .load = [] { return 1.0; },
                        .top = [](limit::RuleIndex) { return std::nullopt; }}};
};

// A reload may happen while the inspector waits for Redis. The charges point into the configuration that was
// in use before, so the job for Redis must keep that configuration alive.
TEST_F(InspectorTest, LookupInRedisKeepsItsConfigurationDuringAReload) {
  auto other = configuration();
  other->names_agreed = false;
  configs_.push_back(other);
  const auto shown = net::run(
      context_, inspector_.keys({.rule = "login", .key = {"192.0.2.1"}, .reset = false, .peer = {}}));
  ASSERT_EQ(shown.status, 200U) << shown.error;
  ASSERT_EQ(shown.limits.size(), 1U);
  EXPECT_THAT(shown.limits[0].note, HasSubstr("Redis did not answer"));
  EXPECT_THAT(shown.limits[0].note, Not(HasSubstr("secret")))
      << "the configuration after the reload has no Redis";
}

}  // namespace
}  // namespace weir::server
