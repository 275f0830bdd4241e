#include "weir/net/service_lookup.hpp"

#include "unit/net/name_server.hpp"
#include "unit/net/sockets.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::net {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

ServiceRecord record(const std::string& host, std::uint16_t port, std::uint16_t priority,
                     std::uint16_t weight) {
  return {.target = {host, port, {}}, .priority = priority, .weight = weight};
}

const std::string kName = "_http._tcp.weir.test";

class ServiceLookupTest : public ::testing::Test {
 protected:
  base::Result<ServiceAnswer> look_up(const std::string& service = kName) {
    std::optional<base::Result<ServiceAnswer>> answer;
    const ServiceLookup lookup(context, service, {server.address()}, select,
                               [&](base::Result<ServiceAnswer> said) { answer = std::move(said); });
    EXPECT_FALSE(answer) << "the answer comes on the event loop";
    EXPECT_TRUE(turn_until(context, [&] { return answer.has_value(); }));
    return answer.value_or(base::Error{"no answer"});
  }

  asio::io_context context{1};
  NameServer server{context};
  ServiceLookup::Select select = [](std::vector<ServiceRecord> records) { return records; };
};

TEST_F(ServiceLookupTest, FindsTheTargetsAndTheirAddresses) {
  server.add_service(kName, record("A.weir.test", 8'001, 10, 60), 9);
  server.add_service(kName, record("gone.weir.test", 8'002, 20, 0), 5);
  server.say("a.weir.test", {"10.0.0.1", "10.0.0.2"}, 1);
  const auto answer = look_up();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->ttl, 5s) << "the shortest TTL of the SRV records";
  ASSERT_EQ(answer->targets.size(), 2U);
  EXPECT_EQ(answer->targets[0].record, record("a.weir.test", 8'001, 10, 60)) << "in lower case";
  EXPECT_EQ(answer->targets[0].addresses.size(), 2U);
  EXPECT_EQ(peer_port(answer->targets[0].addresses[0]), 8'001);
  EXPECT_EQ(answer->targets[1].record, record("gone.weir.test", 8'002, 20, 0));
  EXPECT_TRUE(answer->targets[1].addresses.empty());
}

TEST_F(ServiceLookupTest, OnlyTargetsThatTheCallerSelectsAreLookedUp) {
  const std::string service = "_h._t.t";  // short, because larger answers would need TCP
  for (std::uint16_t i = 0; i < kMostLookups + 3; ++i) {
    const auto host = "n" + std::to_string(i) + ".t";
    server.add_service(service, record(host, 80, i, 0), 5);
    server.say(host, {"10.0.0.1"}, 1);
  }
  select = [](std::vector<ServiceRecord> records) {
    records.resize(kMostLookups + 1);
    return records;
  };
  const auto answer = look_up(service);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->targets.size(), kMostLookups + 1);
  for (const auto& target : answer->targets) EXPECT_EQ(target.addresses.size(), 1U);
  EXPECT_EQ(server.asked().size(), kMostLookups + 1);
}

TEST_F(ServiceLookupTest, NameWithoutTargetsIsAnError) {
  EXPECT_THAT(look_up().error().message, HasSubstr("cannot resolve \"srv:" + kName + "\": "));
  server.add_service(kName, record("", 0, 0, 0), 5);  // without a target: no such service (RFC 2782)
  EXPECT_THAT(look_up().error().message, HasSubstr("has no SRV record with a target"));
  server.say("a.weir.test", {"10.0.0.1"}, 1);
  EXPECT_FALSE(look_up("a.weir.test"));
}

TEST_F(ServiceLookupTest, DestructionCancelsTheLookUp) {
  server.add_service(kName, record("a.weir.test", 80, 0, 0), 5);
  server.ignore("a.weir.test");
  std::optional<ServiceLookup> lookup;
  lookup.emplace(context, kName, NameServers{server.address()}, select,
                 [](const base::Result<ServiceAnswer>&) { ADD_FAILURE() << "the look-up was cancelled"; });
  ASSERT_TRUE(turn_until(context, [&] { return !server.asked().empty(); })) << "a target is looked up";
  lookup.reset();
  context.restart();
  context.run_for(10ms);
}

TEST_F(ServiceLookupTest, AnswersOfManyLookUpsComeInTheOrderOfTheServices) {
  std::vector<std::string> services;
  for (std::uint16_t i = 0; i < 3 * kMostLookups; ++i) {
    services.push_back("_s" + std::to_string(i) + "._tcp.weir.test");
    server.add_service(services.back(), record("a.weir.test", static_cast<std::uint16_t>(i + 1), 0, 0), 5);
  }
  std::thread serving([&] { context.run(); });
  const auto answers = look_up_services(services, {server.address()}, select);
  context.stop();
  serving.join();
  for (std::uint16_t i = 0; i < 3 * kMostLookups; ++i) {
    ASSERT_TRUE(answers[i]) << answers[i].error().message;
    EXPECT_EQ(answers[i]->targets[0].record.target.port, i + 1);
  }
}

TEST_F(ServiceLookupTest, LookUpsOfManyServicesAtASilentNameServerShareOneTimeLimit) {
  server.be_silent(true);
  const std::vector<std::string> services(2 * kMostLookups, kName);
  const auto began = std::chrono::steady_clock::now();
  const auto answers = look_up_services(services, {server.address()}, select, 100ms);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s) << "a silent name server costs 6 s for 16 services";
  for (const auto& answer : answers) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().message,
              "cannot resolve \"srv:" + kName + "\": no name server answered in time");
  }
}

// Returns a message with one question and these bytes as its only answer.
std::vector<unsigned char> message(const std::string& answer) {
  const std::string head("\0\1\x81\x80\0\1\0\1\0\0\0\0", 12);
  const std::string question("\1a\4test\0\0\x21\0\1", 12);
  const auto text = head + question + answer;
  return {text.begin(), text.end()};
}

const std::string kAnswer("\xC0\x0C\0\x21\0\1\0\0\0\7\0\x0A\0\1\0\2\x1F\x90\1B\xC0\x0E", 22);

TEST(ServiceRecords, CompressedTargetIsRead) {
  const auto found = parse_service_records(message(kAnswer));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ttl, 7s);
  ASSERT_EQ(found->records.size(), 1U);
  EXPECT_EQ(found->records[0], record("b.test", 8'080, 1, 2));
}

TEST(ServiceRecords, TtlAboveTwoToThe31CountsAsZero) {
  auto answer = kAnswer;
  answer[6] = '\x80';
  EXPECT_EQ(parse_service_records(message(answer))->ttl, 0s);
}

TEST(ServiceRecords, EveryTruncatedMessageIsMalformed) {
  const auto whole = message(kAnswer);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<unsigned char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(parse_service_records(cut)) << size;
  }
}

TEST(ServiceRecords, RandomlyChangedMessageNeverGivesARecordWithoutATarget) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    auto bytes = message(kAnswer);
    for (auto changes = random() % 4 + 1; changes != 0; --changes)
      bytes[random() % bytes.size()] = static_cast<unsigned char>(random());
    const auto found = parse_service_records(bytes);
    if (!found) continue;
    for (const auto& each : found->records) EXPECT_FALSE(each.target.host.empty());
  }
}

}  // namespace
}  // namespace weir::net
