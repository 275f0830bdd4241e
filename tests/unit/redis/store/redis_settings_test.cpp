#include "weir/redis/redis_settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::redis {
namespace {

TEST(RedisUrl, ParsesAddressUserPasswordAndDatabase) {
  const auto plain = parse_redis_url("redis://cache").value();
  EXPECT_EQ(plain.address, (base::Endpoint{"cache", 6379, ""}));
  EXPECT_EQ(plain.password, "");
  EXPECT_EQ(plain.database, 0);
  const auto full = parse_redis_url("redis://weir:p%40ss%2Fw%25rd@[::1]:7000/12").value();
  EXPECT_EQ(full.address, (base::Endpoint{"::1", 7000, ""}));
  EXPECT_EQ(full.user, "weir");
  EXPECT_EQ(full.password, "p@ss/w%rd");
  EXPECT_EQ(full.database, 12);
  EXPECT_EQ(parse_redis_url("redis://[::1]/").value().address.port, 6379);
  EXPECT_EQ(parse_redis_url("redis://:secret@10.0.0.1/3").value().user, "");
}

TEST(RedisUrl, AcceptsReservedCharactersInThePassword) {
  const auto password = [](const std::string& text) {
    const auto parsed = parse_redis_url("rediss://weir:" + text + "@cache:7000/2");
    if (!parsed) return parsed.error().message;
    EXPECT_EQ(parsed->address, (base::Endpoint{"cache", 7000, ""}));
    EXPECT_EQ(parsed->user, "weir");
    EXPECT_EQ(parsed->database, 2);
    return parsed->password;
  };
  EXPECT_EQ(password("p/w"), "p/w");
  EXPECT_EQ(password("12/34"), "12/34");
  EXPECT_EQ(password("/"), "/");
  EXPECT_EQ(password("p@w"), "p@w");
  EXPECT_EQ(password("p@/w"), "p@/w");
  EXPECT_EQ(password("p:w:"), "p:w:");
  EXPECT_EQ(password("p?w#&=[]+"), "p?w#&=[]+");
  EXPECT_EQ(password("p%25w"), "p%w");
  EXPECT_EQ(password("%2F%40%3A"), "/@:");
  const auto socket = parse_redis_url("unix://weir:p/w@x@/run/redis@1.sock?db=4").value();
  EXPECT_EQ(socket.password, "p/w@x");
  EXPECT_EQ(socket.address.unix_path, "/run/redis@1.sock");
  EXPECT_EQ(parse_redis_url("unix:///run/@/redis.sock").value().address.unix_path, "/run/@/redis.sock");
}

TEST(RedisUrl, ErrorAboutAnUnencodedPasswordNamesTheKeysToUse) {
  const auto parsed = parse_redis_url("redis://u:secret%@cache");
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message, ::testing::HasSubstr("the keys username and password"));
}

TEST(RedisUrl, RedissSchemeTurnsOnTls) {
  const auto tls = parse_redis_url("rediss://weir:secret@cache:7000/2").value();
  EXPECT_TRUE(tls.tls.has_value() && tls.tls->verify);
  EXPECT_EQ(tls.address, (base::Endpoint{"cache", 7000, ""}));
  EXPECT_EQ(tls.password, "secret");
  EXPECT_FALSE(parse_redis_url("redis://cache").value().tls);
}

TEST(RedisUrl, AcceptsUnixSockets) {
  EXPECT_EQ(parse_redis_url("unix:///run/redis.sock").value().address.unix_path, "/run/redis.sock");
  const auto full = parse_redis_url("unix://weir:secret@/run/redis.sock?db=4").value();
  EXPECT_EQ(full.address.unix_path, "/run/redis.sock");
  EXPECT_EQ(full.password, "secret");
  EXPECT_EQ(full.database, 4);
}

TEST(RedisUrl, RejectsInvalidUrlsWithoutRepeatingAPassword) {
  for (const char* url : {"",
                          "cache:6379",
                          "http://u:secret@cache",
                          "redis://",
                          "redis://u:secret@",
                          "redis://u:secret@cache:0",
                          "redis://u:secret@cache:99999",
                          "redis://u:secret@cache/x",
                          "redis://u:secret@cache/-1",
                          "redis://u:secret@cache/1?a=b",
                          "redis://u:secret/1",
                          "redis://u:1/secret@",
                          "redis://u:secret/cache:1:2",
                          "redis://secret/0@cache",
                          "redis://secret@x@cache",
                          "redis://secret@cache",
                          "redis://u:%zzsecret@cache",
                          "redis://u:secret%4@cache",
                          "redis://u:secret@::1:6379",
                          "unix://run/secret.sock",
                          "unix:///secret.sock?db=",
                          "unix:///secret.sock?x=1",
                          "rediss:/u:secret@cache"}) {
    const auto parsed = parse_redis_url(url);
    ASSERT_FALSE(parsed) << url;
    EXPECT_THAT(parsed.error().message, ::testing::Not(::testing::HasSubstr("secret"))) << url;
    EXPECT_THAT(parsed.error().message, ::testing::HasSubstr("write redis://")) << url;
  }
}

}  // namespace
}  // namespace weir::redis
