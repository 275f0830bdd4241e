#include "weir/redis/shared_secret.hpp"

#include "unit/redis/connection/server.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using namespace std::chrono_literals;

constexpr base::SipKey kOffered{0x0123'4567'89ab'cdef, 0xfedc'ba98'7654'3210};
constexpr const char* kOfferedText = "0123456789abcdeffedcba9876543210";
constexpr base::SipKey kOtherSecret{1, 2};

RedisSettings settings_for(const Server& server) {
  RedisSettings settings;
  settings.address.unix_path = server.path();
  settings.prefix = "edge";
  return settings;
}

// A weir instance without `key_secret` in its configuration.
struct Weir {
  Weir(const Server& server, const base::SipKey& offered)
      : secret(
            loop.get_executor(), settings_for(server), offered,
            [this](LogLevel, std::string line) { log.push_back(std::move(line)); },
            [this](const base::SipKey& key) { agreed = key; }) {
    secret.start();
  }
  ~Weir() {
    secret.stop();
    loop.run_for(1s);
  }
  bool turn_until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!done() && std::chrono::steady_clock::now() < end) {
      loop.restart();
      loop.run_one_for(10ms);
    }
    return done();
  }

  net::asio::io_context loop{1};
  std::vector<std::string> log;
  std::optional<base::SipKey> agreed;
  SharedSecret secret;
};

TEST(SharedSecret, IsWrittenAsHexadecimalDigits) {
  EXPECT_EQ(in_hex(kOffered), kOfferedText);
  EXPECT_EQ(secret_in(kOfferedText), kOffered);
  for (const char* text : {"", "0123456789abcdef", "0123456789ABCDEFfedcba9876543210", "secret",
                           "0123456789abcdeffedcba98765432100", "-123456789abcdeffedcba9876543210"})
    EXPECT_EQ(secret_in(text), std::nullopt) << text;
}

TEST(SharedSecret, IsWrittenToARedisThatHasNoSecret) {
  const Server server;
  Weir weir(server, kOffered);
  ASSERT_TRUE(weir.turn_until([&] { return weir.agreed.has_value(); }));
  EXPECT_EQ(*weir.agreed, kOffered);
  EXPECT_EQ(server.ask({"GET", "edge:secret"}).text, kOfferedText);
  EXPECT_EQ(server.ask({"TTL", "edge:secret"}).numbers.front(), -1);
}

TEST(SharedSecret, ExistingSecretInRedisIsAdopted) {
  const Server server;
  server.ask({"SET", "edge:secret", in_hex(kOtherSecret)});
  Weir weir(server, kOffered);
  ASSERT_TRUE(weir.turn_until([&] { return weir.secret.is_agreed(); }));
  EXPECT_EQ(weir.agreed, kOtherSecret);
  EXPECT_EQ(server.ask({"GET", "edge:secret"}).text, in_hex(kOtherSecret));
}

TEST(SharedSecret, IsRestoredAfterRedisLosesItsData) {
  const Server server;
  Weir weir(server, kOffered);
  ASSERT_TRUE(weir.turn_until([&] { return weir.agreed.has_value(); }));
  weir.agreed.reset();
  server.ask({"FLUSHALL"});
  ASSERT_TRUE(weir.turn_until([&] { return server.ask({"EXISTS", "edge:secret"}).numbers.front() == 1; }));
  EXPECT_EQ(server.ask({"GET", "edge:secret"}).text, kOfferedText);
  EXPECT_EQ(weir.agreed, std::nullopt) << "the secret is unchanged";
}

TEST(SharedSecret, SecretThatAnotherInstanceRestoredFirstIsAdopted) {
  const Server server;
  Weir weir(server, kOffered);
  ASSERT_TRUE(weir.turn_until([&] { return weir.agreed.has_value(); }));
  server.ask({"SET", "edge:secret", in_hex(kOtherSecret)});
  ASSERT_TRUE(weir.turn_until([&] { return weir.agreed == kOtherSecret; }));
  EXPECT_THAT(weir.log.back(), ::testing::HasSubstr("contains another secret than before"));
}

TEST(SharedSecret, InvalidValueInRedisIsReportedAndNotUsed) {
  const Server server;
  server.ask({"SET", "edge:secret", "hunter2"});
  Weir weir(server, kOffered);
  ASSERT_TRUE(weir.turn_until([&] { return !weir.log.empty(); }));
  EXPECT_THAT(
      weir.log.front(),
      ::testing::HasSubstr("edge:secret contains something other than weir's secret; delete that key"));
  EXPECT_THAT(weir.log.front(), ::testing::Not(::testing::HasSubstr("hunter2")));
  EXPECT_FALSE(weir.secret.is_agreed());
  server.ask({"DEL", "edge:secret"});
  EXPECT_TRUE(weir.turn_until([&] { return weir.agreed == kOffered; }));
}

TEST(SharedSecret, IsNotReadFromAReplica) {
  const Server server;
  server.ask({"SET", "edge:secret", in_hex(kOtherSecret)});
  server.ask({"REPLICAOF", "127.0.0.1", std::to_string(free_port())});
  Weir weir(server, kOffered);
  ASSERT_TRUE(weir.turn_until([&] { return !weir.secret.why().empty(); }));
  EXPECT_THAT(weir.secret.why(), ::testing::StartsWith("READONLY"));
  EXPECT_FALSE(weir.secret.is_agreed());
}

TEST(SharedSecret, IsWrittenWhenRedisBecomesReachable) {
  Server server;
  server.kill();
  Weir weir(server, kOffered);
  ASSERT_TRUE(weir.turn_until([&] { return !weir.log.empty(); }));
  EXPECT_THAT(weir.log.front(), ::testing::HasSubstr("follow on_store_failure meanwhile"));
  server.start();
  EXPECT_TRUE(weir.turn_until([&] { return weir.agreed == kOffered; }));
}

}  // namespace
}  // namespace weir::redis
