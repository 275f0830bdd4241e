// Tests which names are looked up, and that the servers get the answers of a name server.
#include "weir/upstream/resolver.hpp"

#include "unit/net/name_server.hpp"
#include "unit/net/sockets.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

Addresses at(const std::string& address) {
  return net::resolve({.host = address, .port = 80, .unix_path = {}}).value();
}

class ResolverTest : public ::testing::Test {
 protected:
  ResolverTest() {
    resolver.emplace(
        context, clock, [this](const std::string& line) { lines.push_back(line); },
        [this](const ResolvedUpstream& next) { follow(next); });
    for (const auto* name : {"api.test", "other.test", "a.test", "b.test", "c.test", "old.test", "new.test"})
      system.say(name, {"10.0.0.1"});
  }

  std::shared_ptr<ServerGroup> server_group_of(const std::string& name,
                                               std::initializer_list<const char*> hosts,
                                               base::Duration least = 1ms, base::Duration most = {}) {
    UpstreamSettings settings;
    settings.name = name;
    settings.resolve_least = least;
    settings.resolve = most == base::Duration{} ? least : most;
    std::vector<Server> servers;
    for (const auto* host : hosts) {
      settings.servers.push_back({.address = {.host = host, .port = 80, .unix_path = {}}});
      servers.push_back({settings.servers.back().address.to_string(), known});
    }
    return std::make_shared<ServerGroup>(settings, std::move(servers));
  }
  // Replaces service_group by a group with the servers that the resolver has found. From then on, the
  // resolver watches only that group.
  void follow(const ResolvedUpstream& next) {
    service_group = std::make_shared<ServerGroup>(next.settings, next.servers, ServerGroup::Report{},
                                                  service_group.get());
    watch({service_group});
  }
  template <class Done>
  void until(Done done) {
    ASSERT_TRUE(net::turn_until(context, done));
  }
  Resolver::Figures figures() { return resolver->figures().at(0); }

  void watch(const std::vector<std::shared_ptr<ServerGroup>>& server_groups) {
    resolver->watch(server_groups, {system.address()});
  }

  net::asio::io_context context{1};
  net::NameServer system{context};
  net::Clock clock;
  Addresses known = at("10.0.0.1");  // addresses that servers have at first
  std::vector<std::string> lines;
  std::shared_ptr<ServerGroup> service_group;
  std::optional<Resolver> resolver;
};

TEST_F(ResolverTest, ServerGetsTheAddressesOfItsName) {
  const auto server_group = server_group_of("api", {"api.test"});
  watch({server_group});
  until([&] { return figures().same >= 2; });
  EXPECT_THAT(lines, IsEmpty());
  system.say("api.test", {"10.0.0.2"});
  until([&] { return figures().changed == 1 && figures().same >= 3; });
  EXPECT_EQ(server_group->member(0).server().addresses, at("10.0.0.2"));
  EXPECT_THAT(lines,
              ElementsAre("upstream \"api\": server api.test:80 now resolves to 10.0.0.2; before: 10.0.0.1"));
}

TEST_F(ResolverTest, FailedLookUpIsLoggedOnceAndTheAddressesAreKept) {
  const auto server_group = server_group_of("api", {"api.test"});
  system.say("api.test", {});
  watch({server_group});
  until([&] { return figures().failed >= 3; });
  EXPECT_THAT(lines, ElementsAre(StartsWith(
                         "upstream \"api\": server api.test:80 keeps its addresses 10.0.0.1: cannot resolve "
                         "\"api.test\": ")));
  EXPECT_EQ(server_group->member(0).server().addresses, at("10.0.0.1"));
  system.say("api.test", {"10.0.0.1"});
  until([&] { return figures().same >= 2; });
  EXPECT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines.back(), HasSubstr("server api.test:80 resolves again"));
}

TEST_F(ResolverTest, ServerWithoutAddressesIsDownUntilALookUpSucceeds) {
  known.clear();
  const auto server_group = server_group_of("api", {"api.test", "other.test"});
  EXPECT_FALSE(server_group->member(0).serves());
  system.say("api.test", {});
  system.say("other.test", {});
  watch({server_group});
  until([&] { return figures().failed >= 3; });
  EXPECT_FALSE(server_group->member(0).serves());
  EXPECT_THAT(lines, IsEmpty()) << "the failure was reported at the start";
  system.say("api.test", {"10.0.0.2"});
  system.say("other.test", {"10.0.0.3"});
  until([&] { return server_group->member(0).serves() && server_group->member(1).serves(); });
  EXPECT_EQ(server_group->member(0).server().addresses, at("10.0.0.2"));
  EXPECT_THAT(lines, Contains(HasSubstr("server api.test:80 resolves now, to 10.0.0.2")));
}

TEST_F(ResolverTest, WithoutARefreshIntervalANameIsLookedUpUntilItHasAnAddress) {
  known.clear();
  const auto server_group = server_group_of("api", {"api.test"}, 0s);
  system.say("api.test", {"10.0.0.2"});
  watch({server_group});
  until([&] { return server_group->member(0).serves(); });
  const auto asked = system.asked().size();
  watch({server_group});
  EXPECT_EQ(system.asked().size(), asked);
  EXPECT_EQ(server_group->member(0).server().addresses, at("10.0.0.2"));
}

TEST_F(ResolverTest, OnlyHostNamesAreLookedUpAndOnlyIfConfigured) {
  const auto some = server_group_of("some", {"10.0.0.1", "a.test", "::1", "b.test"});
  const auto never = server_group_of("never", {"c.test"}, 0s);
  const auto none = server_group_of("none", {"10.0.0.1"});
  watch({some, never, none});
  until([&] { return figures().same >= 20; });
  const auto asked = system.asked();
  EXPECT_GE(std::count(asked.begin(), asked.end(), "a.test"), 5);
  EXPECT_GE(std::count(asked.begin(), asked.end(), "b.test"), 5) << "each name is looked up in turn";
  EXPECT_EQ(std::count(asked.begin(), asked.end(), "c.test"), 0);
  EXPECT_EQ(resolver->figures().size(), 1U);
}

TEST_F(ResolverTest, ServerCanBeRemovedDuringItsLookUp) {
  const auto older = server_group_of("old", {"old.test"});
  const auto newer = server_group_of("new", {"new.test"});
  system.be_silent(true);
  watch({older});
  until([&] { return !system.asked().empty(); });
  watch({newer});
  system.say("old.test", {"10.0.0.8"});
  system.say("new.test", {"10.0.0.9"});
  system.be_silent(false);
  until([&] { return figures().changed == 1; });
  EXPECT_EQ(older->member(0).server().addresses, at("10.0.0.1"));
  EXPECT_EQ(newer->member(0).server().addresses, at("10.0.0.9"));
  EXPECT_EQ(figures().upstream, "new");
}

TEST_F(ResolverTest, LookUpCountsAreKeptAfterAReload) {
  watch({server_group_of("api", {"api.test"})});
  until([&] { return figures().same >= 1; });
  const auto same = figures().same;
  watch({server_group_of("api", {"api.test"}, 1h)});
  EXPECT_EQ(figures().same, same);
  watch({});
  EXPECT_THAT(resolver->figures(), IsEmpty());
}

TEST_F(ResolverTest, ServersOfAServiceFollowItsRecords) {
  UpstreamSettings settings;
  settings.name = "api";
  settings.resolve = settings.resolve_least = 1ms;
  settings.service = ServerSettings{.address = {"_s.test", 0, {}}, .is_service = true};
  settings.servers = {*settings.service};
  follow({settings, {{"srv:_s.test", {}}}});
  until([&] { return figures().failed >= 2; });
  EXPECT_THAT(lines, IsEmpty()) << "the failure was reported at the start";
  const auto say = [&](std::initializer_list<std::pair<const char*, std::uint16_t>> targets) {
    system.say("_s.test", {});
    for (const auto& [host, port] : targets)
      system.add_service("_s.test", {.target = {host, port, {}}, .priority = 5, .weight = 0}, 0);
  };
  say({{"a.test", 81}});
  until([&] { return figures().changed == 1 && figures().same >= 3; });
  EXPECT_EQ(service_group->member(0).name(), "a.test:81");
  EXPECT_TRUE(service_group->member(0).serves());
  service_group->member(0).unreachable(clock.now());
  say({{"b.test", 82}, {"a.test", 81}});
  until([&] { return service_group->size() == 2; });
  EXPECT_EQ(service_group->member(0).name(), "a.test:81");
  EXPECT_FALSE(service_group->member(0).serves()) << "it keeps its state";
  EXPECT_TRUE(service_group->member(1).serves());
  say({});
  until([&] { return lines.size() == 3; });
  EXPECT_EQ(service_group->size(), 2U);
  EXPECT_EQ(lines[0],
            "upstream \"api\": srv:_s.test resolves now, to the servers a.test:81 (priority 5, weight 1)");
  EXPECT_EQ(lines[1],
            "upstream \"api\": srv:_s.test now has the servers a.test:81 (priority 5, weight 1), b.test:82 "
            "(priority 5, weight 1); before: a.test:81 (priority 5, weight 1)");
  EXPECT_THAT(lines[2],
              StartsWith("upstream \"api\": srv:_s.test keeps its servers a.test:81 (priority 5, weight "
                         "1), b.test:82 (priority 5, weight 1): cannot resolve \"srv:_s.test\": "));
}

TEST_F(ResolverTest, UnusableAnswerAboutTheServersOfAServiceIsLoggedOnce) {
  UpstreamSettings settings;
  settings.name = "api";
  settings.resolve = settings.resolve_least = 1ms;
  settings.service = ServerSettings{.address = {"_s.test", 0, {}}, .is_service = true};
  settings.servers = {*settings.service};
  system.add_service("_s.test", {.target = {"a.test", 81, {}}, .priority = 5, .weight = 0}, 0);
  resolver.emplace(context, clock, [this](const std::string& line) { lines.push_back(line); });
  watch({std::make_shared<ServerGroup>(settings, std::vector<Server>{{"srv:_s.test", {}}})});
  until([&] { return figures().changed >= 3; });
  EXPECT_EQ(lines.size(), 1U);
}

TEST_F(ResolverTest, SilentNameServerIsAskedForAFewNamesAtATime) {
  std::vector<std::string> hosts;
  std::vector<std::shared_ptr<ServerGroup>> server_groups;
  for (std::size_t i = 0; i < net::kMostLookups + 4; ++i) {
    hosts.push_back("n" + std::to_string(i) + ".test");
    system.say(hosts.back(), {"10.0.0.1"});
    server_groups.push_back(server_group_of(hosts.back(), {hosts.back().c_str()}));
  }
  system.be_silent(true);
  watch(server_groups);
  until([&] { return system.asked().size() >= net::kMostLookups; });
  context.restart();
  context.run_for(50ms);
  EXPECT_EQ(system.asked().size(), net::kMostLookups);
  system.be_silent(false);
  const auto answered = [&] {
    const auto all = resolver->figures();
    return std::all_of(all.begin(), all.end(), [](const auto& one) { return one.same > 0; });
  };
  until(answered);
}

TEST_F(ResolverTest, NameIsLookedUpAgainWhenItsTtlEnds) {
  const auto quick = server_group_of("quick", {"a.test"}, 1ms, 1h);
  const auto slow = server_group_of("slow", {"b.test"}, 1ms, 1h);
  system.say("a.test", {"10.0.0.1"}, 1);
  system.say("b.test", {"10.0.0.1"}, 3'600);
  watch({quick, slow});
  const auto count = [&](const std::string& name) {
    const auto asked = system.asked();
    return std::count(asked.begin(), asked.end(), name);
  };
  until([&] { return count("a.test") >= 1 && count("b.test") >= 1; });
  const auto began = std::chrono::steady_clock::now();
  until([&] { return count("a.test") >= 3; });
  EXPECT_GE(std::chrono::steady_clock::now() - began, 1'900ms);
  EXPECT_EQ(count("b.test"), 1);
}

TEST_F(ResolverTest, ResolverCanBeDestroyedWithoutWaitingForANameServer) {
  system.be_silent(true);
  watch({server_group_of("api", {"api.test"})});
  until([&] { return !system.asked().empty(); });
  const auto began = std::chrono::steady_clock::now();
  resolver.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  context.restart();
  context.run_for(10ms);
}

}  // namespace
}  // namespace weir::upstream
