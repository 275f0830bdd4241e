#include "cli/redis/redis_check.hpp"

#include <gmock/gmock.h>

namespace weir::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

class RedisCheck : public ::testing::Test {
 protected:
  RedisCheck() {
    state_.key_secret = "secret";
    state_.redis.emplace();
    state_.redis->address = {"cache", 6379, ""};
    found_.address = state_.redis->address;
    found_.facts = {.product = "Redis",
                    .version = "7.0.15",
                    .role = "master",
                    .eviction = "noeviction",
                    .max_memory = 1 << 20,
                    .used_memory = 1 << 19};
    found_.round_trips = redis::RoundTrips{80us, 300us, 50};
    found_.clock = redis::ClockDifference{-2ms, 40us};
  }
  [[nodiscard]] RedisReport report() const { return report_on(found_, state_); }

  config::StateSettings state_;
  redis::Inspection found_;
};

TEST_F(RedisCheck, PrintsAllFindingsAboutARedisServer) {
  const auto said = report();
  EXPECT_EQ(said.text,
            "redis cache:6379\n"
            "  reachable     yes, as the default user\n"
            "  server        Redis 7.0.15\n"
            "  role          master\n"
            "  maxmemory     1.0 MiB, 0.5 MiB in use\n"
            "  eviction      noeviction\n"
            "  round trip    0.08 ms median, 0.30 ms worst of 50; timeout 20ms\n"
            "  clock         2.00 ms behind this host's, give or take 0.04 ms\n"
            "  scripts       load, charge and refund\n"
            "  prefix        weir\n"
            "  key_secret    set\n");
  EXPECT_THAT(said.faults, IsEmpty());
  EXPECT_THAT(said.warnings, IsEmpty());
}

TEST_F(RedisCheck, WarnsOfEveryEvictionPolicyThatMayDeleteAKey) {
  for (const char* policy : {"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu",
                             "volatile-random", "volatile-ttl"}) {
    found_.facts.eviction = policy;
    EXPECT_THAT(report().warnings, ElementsAre(HasSubstr(policy)));
    EXPECT_THAT(report().faults, IsEmpty());
  }
  found_.facts.max_memory = 0;  // a Redis without a memory limit evicts nothing
  EXPECT_THAT(report().warnings, IsEmpty());
}

TEST_F(RedisCheck, WarnsIfTheRoundTripToRedisTakesLongerThanTheTimeout) {
  found_.round_trips->worst = 20ms;
  EXPECT_THAT(report().warnings, ElementsAre(HasSubstr("the worst round trip exceeds the timeout of 20ms")));
  found_.round_trips->median = 20ms;
  EXPECT_THAT(report().warnings, ElementsAre(HasSubstr("the median round trip")));
}

TEST_F(RedisCheck, WarnsIfTheClocksDifferByMoreThanASecondPlusTheMeasurementError) {
  found_.clock = redis::ClockDifference{-1200ms, 200ms};
  EXPECT_THAT(report().warnings, IsEmpty());
  found_.clock->ahead -= 1us;
  EXPECT_THAT(report().warnings, ElementsAre(HasSubstr("more than a second apart")));
}

TEST_F(RedisCheck, WarnsOfCommandsThatRedisDenies) {
  found_.denied = {"PING: NOPERM"};
  EXPECT_THAT(report().warnings, ElementsAre(HasSubstr("PING: NOPERM")));
}

TEST_F(RedisCheck, NamesTheRedisKeyOfTheSharedSecretIfKeySecretIsNotSet) {
  state_.key_secret.clear();
  state_.redis->prefix = "edge";
  EXPECT_THAT(report().text,
              HasSubstr("  key_secret    not set; instances share the secret in edge:secret\n"));
  EXPECT_THAT(report().warnings, IsEmpty());
}

TEST_F(RedisCheck, ReportsAFaultIfTheSharedSecretInRedisIsInvalid) {
  using State = redis::SecretState::State;
  state_.key_secret.clear();
  found_.secret = redis::SecretState{State::Foreign, "a list"};
  EXPECT_THAT(report().faults,
              ElementsAre("weir:secret holds a list instead of weir's secret (32 hexadecimal digits), so "
                          "rules in Redis follow on_store_failure; delete that key (redis-cli DEL "
                          "weir:secret), or set [state] key_secret on every instance"));
  for (const auto state : {State::Absent, State::Good}) {
    found_.secret = redis::SecretState{state};
    EXPECT_THAT(report().faults, IsEmpty());
    EXPECT_THAT(report().warnings, IsEmpty());
  }
  found_.secret = redis::SecretState{State::Unknown, "NOPERM"};
  EXPECT_THAT(report().warnings, ElementsAre("this check could not read weir:secret: NOPERM"));
}

TEST_F(RedisCheck, OldVersionsReplicasClustersAndMissingRightsAreReportedAsFaults) {
  found_.facts.version = "6.0.16";
  EXPECT_THAT(report().faults, ElementsAre(HasSubstr("too old")));
  found_.facts.version = "6.2.0";
  EXPECT_THAT(report().faults, IsEmpty());
  found_.facts.role = "slave";
  EXPECT_THAT(report().faults, ElementsAre(HasSubstr("replica")));
  found_.facts.role = "master";
  found_.facts.in_cluster = true;
  EXPECT_THAT(report().faults, ElementsAre(HasSubstr("cluster")));
  found_.facts.in_cluster = false;
  found_.obstacles = {"NOPERM"};
  EXPECT_THAT(report().faults, ElementsAre("scripts: NOPERM"));
}

TEST_F(RedisCheck, UnreachableRedisServerIsPrintedWithoutOtherFindings) {
  found_ = {};
  found_.address = state_.redis->address;
  found_.unreachable = "Connection refused";
  EXPECT_EQ(report().text,
            "redis cache:6379\n  reachable     no\n  prefix        weir\n  key_secret    set\n");
  EXPECT_THAT(report().faults,
              ElementsAre("Connection refused (expected a Redis where url of [state.redis] says)"));
}

TEST(ReadInfo, ReadsTheInfoReplyOfRedisAndOfValkey) {
  const auto redis = redis::read_info(
      "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n\r\n# Memory\r\nused_memory:123\r\n"
      "used_memory_human:1K\r\nmaxmemory:456\r\nmaxmemory_policy:noeviction\r\n# "
      "Replication\r\nrole:master\r\n"
      "# Cluster\r\ncluster_enabled:1\r\n");
  EXPECT_EQ(redis.product, "Redis");
  EXPECT_EQ(redis.version, "7.0.15");
  EXPECT_EQ(redis.used_memory, 123U);
  EXPECT_EQ(redis.max_memory, 456U);
  EXPECT_EQ(redis.eviction, "noeviction");
  EXPECT_EQ(redis.role, "master");
  EXPECT_TRUE(redis.in_cluster);
  const auto valkey =
      redis::read_info("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n");
  EXPECT_EQ(valkey.product + " " + valkey.version, "Valkey 8.0.1");
  EXPECT_TRUE(redis::is_recent(valkey));
  EXPECT_FALSE(valkey.max_memory);
}

TEST(IsRecent, VersionsAreComparedAsNumbersAndNotAsText) {
  const auto recent = [](const char* version) {
    return redis::is_recent(redis::read_info(std::string("redis_version:") + version));
  };
  EXPECT_TRUE(recent("6.2.0"));
  EXPECT_TRUE(recent("6.10.1"));
  EXPECT_TRUE(recent("10.0.0"));
  EXPECT_TRUE(recent("255.255.255"));
  EXPECT_FALSE(recent("6.0.16"));
  EXPECT_FALSE(recent("5.9.9"));
  EXPECT_FALSE(recent("7"));
  EXPECT_FALSE(recent("unstable"));
}

}  // namespace
}  // namespace weir::cli
