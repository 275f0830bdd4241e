// Tests how long a key that stores permits lives in Redis: until its last permit expires, whatever happens to
// the other permits. The tests use the clock and TTLs of a real Redis. The leases are so long that a slow
// test does not change the result.
#include "redis/connection/command.hpp"
#include "redis/scripts/bill.hpp"
#include "unit/limit/random_case.hpp"
#include "unit/redis/connection/server.hpp"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using namespace std::chrono_literals;

class PermitExpiry : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kInString = 32;  // most permits in a string; more permits form a sorted set

  // Takes one permit for a new request. Returns the permit's serial number.
  std::uint64_t take(base::Duration lease) {
    const BillRequest demand{{&line_, 1}, {1, ++serials_, lease}};
    std::string out;
    append_charge(out, charge_, {"w"}, {&demand, 1}, {}, serials_);
    const auto reply = connection_.exchange(out, 1).front();
    EXPECT_EQ(reply.kind, Reply::Kind::Numbers) << reply.text;
    return serials_;
  }
  void renew(std::uint64_t serial, base::Duration lease) { send({line_, {}, 1, {1, serial, lease}}); }
  // Renews a permit that Redis does not have.
  void renew_lost(base::Duration lease) { renew(++serials_, lease); }
  void release(std::uint64_t serial) { send({line_, {}, 0, {1, serial, 0s}}); }

  [[nodiscard]] std::string type() { return connection_.ask({"TYPE", name_}).text; }
  // Returns the key's time to live in minutes, without the two milliseconds that a script adds. Rounded up.
  [[nodiscard]] std::int64_t minutes_left() {
    const std::chrono::milliseconds left(connection_.ask({"PTTL", name_}).numbers.at(0));
    return std::chrono::ceil<std::chrono::minutes>(left - 2ms).count();
  }

 private:
  void send(const Refund& refund) {
    std::string out;
    append_refund(out, refund_, {"w"}, {&refund, 1}, 7);
    const auto reply = connection_.exchange(out, 1).front();
    EXPECT_EQ(reply.numbers, (std::vector<std::int64_t>{1, 0, 7})) << reply.text;
  }
  std::string load(std::string_view script) {
    return connection_.ask({"SCRIPT", "LOAD", std::string(script)}).text;
  }

  Server server_;
  Connection connection_{server_.path()};
  const std::string charge_ = load(charge_script()), refund_ = load(refund_script());
  const limit::Limiter many_ = limit::Concurrency::make(100).value();
  const limit::Charge line_{limit::key_of(1), &many_};
  const std::string name_ = key_name("w", line_.key);
  std::uint64_t serials_ = 0;
};

TEST_F(PermitExpiry, KeyWithPermitsInAStringLivesUntilTheLastPermitExpires) {
  take(60min);
  EXPECT_EQ(minutes_left(), 60);
  const auto brief = take(10min);
  EXPECT_EQ(minutes_left(), 60);
  const auto longer = take(90min);
  EXPECT_EQ(minutes_left(), 90);
  renew(brief, 20min);
  EXPECT_EQ(minutes_left(), 90);
  release(brief);
  EXPECT_EQ(minutes_left(), 90);
  renew(longer, 120min);
  EXPECT_EQ(minutes_left(), 120);
  renew_lost(150min);
  EXPECT_EQ(minutes_left(), 150);
  EXPECT_EQ(type(), "string");
}

TEST_F(PermitExpiry, ChargeThatConvertsAStringToASetKeepsTheTimeToLive) {
  take(60min);
  for (std::uint64_t i = 1; i <= kInString; ++i) take(10min);
  ASSERT_EQ(type(), "zset");
  EXPECT_EQ(minutes_left(), 60);
}

TEST_F(PermitExpiry, RenewalThatConvertsAStringToASetKeepsTheTimeToLive) {
  take(60min);
  for (std::uint64_t i = 1; i < kInString; ++i) take(10min);
  ASSERT_EQ(type(), "string");
  renew_lost(10min);
  ASSERT_EQ(type(), "zset");
  EXPECT_EQ(minutes_left(), 60);
}

TEST_F(PermitExpiry, KeyWithPermitsInASetLivesUntilTheLastPermitExpires) {
  for (std::uint64_t i = 0; i <= kInString; ++i) take(10min);
  ASSERT_EQ(type(), "zset");
  EXPECT_EQ(minutes_left(), 10);
  const auto longer = take(60min);
  EXPECT_EQ(minutes_left(), 60);
  const auto brief = take(10min);
  EXPECT_EQ(minutes_left(), 60);
  renew(brief, 20min);
  EXPECT_EQ(minutes_left(), 60);
  release(brief);
  EXPECT_EQ(minutes_left(), 60);
  renew(longer, 90min);
  EXPECT_EQ(minutes_left(), 90);
  renew_lost(120min);
  EXPECT_EQ(minutes_left(), 120);
}

// The first permit expires, but the key must live as long as the other permits.
TEST_F(PermitExpiry, ExpiringPermitsDoNotShortenTheTimeToLive) {
  const auto expired = take(1us);
  take(60min);
  take(10min);
  EXPECT_EQ(minutes_left(), 60);
  renew(expired, 10min);
  EXPECT_EQ(minutes_left(), 60);
}

}  // namespace
}  // namespace weir::redis
