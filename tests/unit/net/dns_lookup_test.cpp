#include "weir/net/dns_lookup.hpp"

#include "unit/net/name_server.hpp"
#include "unit/net/sockets.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::net {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class DnsLookupTest : public ::testing::Test {
 protected:
  base::Result<NameAnswer> look_up(const std::string& host) {
    std::optional<base::Result<NameAnswer>> answer;
    const DnsLookup lookup(context, {host, 80, {}}, {server.address()},
                           [&](base::Result<NameAnswer> said) { answer = std::move(said); });
    EXPECT_FALSE(answer) << "the answer comes on the event loop";
    EXPECT_TRUE(turn_until(context, [&] { return answer.has_value(); }));
    return answer.value_or(base::Error{"no answer"});
  }
  static std::vector<std::string> hosts(const base::Result<NameAnswer>& answer) {
    std::vector<std::string> hosts;
    for (const auto& one : answer->addresses) {
      hosts.push_back(peer_address(one).to_string());
      EXPECT_EQ(peer_port(one), 80);
    }
    return hosts;
  }

  asio::io_context context{1};
  NameServer server{context};
};

TEST_F(DnsLookupTest, FindsAddressesOfBothFamiliesAndTheirTtl) {
  server.say("api.weir.test", {"10.0.0.1", "10.0.0.2", "fd00::1"}, 7);
  const auto answer = look_up("api.weir.test");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_THAT(hosts(answer), UnorderedElementsAre("10.0.0.1", "10.0.0.2", "fd00::1"));
  EXPECT_EQ(answer->ttl, 7s);
}

TEST_F(DnsLookupTest, TtlIsTheShorterTtlOfAliasAndAddress) {
  server.say("real.weir.test", {"10.0.0.1"}, 60);
  server.alias("api.weir.test", "real.weir.test", 3);
  const auto answer = look_up("api.weir.test");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_THAT(hosts(answer), ElementsAre("10.0.0.1"));
  EXPECT_EQ(answer->ttl, 3s);
}

TEST_F(DnsLookupTest, NamesWithUnderscoresAreFound) {
  server.say("my_app_1.weir.test", {"10.0.0.1"});
  const auto answer = look_up("my_app_1.weir.test");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->ttl, 0s);
}

TEST_F(DnsLookupTest, UnknownNameIsAnError) {
  const auto answer = look_up("gone.weir.test");
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("cannot resolve \"gone.weir.test\": "));
  EXPECT_FALSE(look_up("not a name"));
}

TEST_F(DnsLookupTest, LocalhostNeedsNoNameServer) {
  server.be_silent(true);
  const auto answer = look_up("localhost");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_THAT(hosts(answer), ::testing::Contains("127.0.0.1"));
  EXPECT_EQ(answer->ttl, std::nullopt) << "/etc/hosts knows no TTL";
  EXPECT_TRUE(server.asked().empty());
}

TEST_F(DnsLookupTest, DestructionCancelsTheLookUp) {
  server.be_silent(true);
  for (int i = 0; i < 3; ++i) {
    std::optional<DnsLookup> lookup;
    lookup.emplace(context, base::Endpoint{"api.weir.test", 80, {}}, NameServers{server.address()},
                   [](const base::Result<NameAnswer>&) { ADD_FAILURE() << "the look-up was cancelled"; });
    ASSERT_TRUE(
        turn_until(context, [&] { return server.asked().size() == static_cast<std::size_t>(i + 1); }));
  }
  context.restart();
  context.run_for(10ms);
}

TEST_F(DnsLookupTest, LookUpMayBeDestroyedByItsOwnCallback) {
  server.say("api.weir.test", {"10.0.0.1"});
  std::optional<DnsLookup> lookup;
  lookup.emplace(context, base::Endpoint{"api.weir.test", 80, {}}, NameServers{server.address()},
                 [&](const base::Result<NameAnswer>& answer) {
                   EXPECT_TRUE(answer);
                   lookup.reset();
                 });
  EXPECT_TRUE(turn_until(context, [&] { return !lookup.has_value(); }));
}

TEST_F(DnsLookupTest, AnswersOfManyLookUpsComeInTheOrderOfTheNames) {
  std::vector<base::Endpoint> names;
  for (std::size_t i = 0; i < 3 * kMostLookups; ++i) {
    const auto name = "n" + std::to_string(i) + ".weir.test";
    if (i % 5 != 0) server.say(name, {"10.0.0." + std::to_string(i)});
    names.push_back({name, 80, {}});
  }
  names.push_back({"10.1.1.1", 80, {}});
  names.push_back({"", 0, "/run/weir-test.sock"});
  std::thread serving([&] { context.run(); });
  const auto answers = look_up_all(names, {server.address()});
  context.stop();
  serving.join();
  ASSERT_EQ(answers.size(), names.size());
  for (std::size_t i = 0; i < 3 * kMostLookups; ++i) {
    ASSERT_EQ(answers[i].has_value(), i % 5 != 0) << names[i].host;
    if (answers[i]) {
      EXPECT_THAT(hosts(answers[i]), ElementsAre("10.0.0." + std::to_string(i)));
    }
  }
  EXPECT_THAT(hosts(answers[3 * kMostLookups]), ElementsAre("10.1.1.1"));
  ASSERT_TRUE(answers.back());
  EXPECT_EQ(answers.back()->addresses.size(), 1U);
}

TEST_F(DnsLookupTest, LookUpsOfManyNamesAtASilentNameServerShareOneTimeLimit) {
  server.be_silent(true);
  std::vector<base::Endpoint> names;
  for (std::size_t i = 0; i < 3 * kMostLookups; ++i)
    names.push_back({"n" + std::to_string(i) + ".weir.test", 80, {}});
  names.push_back({"10.1.1.1", 80, {}});
  const auto began = std::chrono::steady_clock::now();
  const auto answers = look_up_all(names, {server.address()}, 100ms);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s) << "a silent name server costs 6 s for 16 names";
  for (std::size_t i = 0; i < 3 * kMostLookups; ++i) {
    ASSERT_FALSE(answers[i]);
    EXPECT_EQ(answers[i].error().message,
              "cannot resolve \"" + names[i].host + "\": no name server answered in time");
  }
  EXPECT_THAT(hosts(answers.back()), ElementsAre("10.1.1.1")) << "an IP address needs no look-up";
}

}  // namespace
}  // namespace weir::net
