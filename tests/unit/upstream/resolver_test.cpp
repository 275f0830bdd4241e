// Tests that names are looked up on a separate thread, and that the servers get the results. At the end, the
// thread of the event loop and the look-up thread must not wait for each other.
#include "weir/upstream/resolver.hpp"

#include "unit/net/sockets.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
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

Addresses at(const std::string& address) {
  return net::resolve({.host = address, .port = 80, .unix_path = {}}).value();
}

// A replacement for the system's resolver. The test sets its answers. The look-up thread shares the object
// and may outlive the test.
struct System {
  base::Result<Addresses> look_up(const base::Endpoint& asked) {
    std::unique_lock lock(mutex);
    hosts.push_back(asked.host);
    news.notify_all();
    news.wait(lock, [&] { return !silent; });
    return answer;
  }
  void say(base::Result<Addresses> said) {
    const std::scoped_lock lock(mutex);
    answer = std::move(said);
  }
  void be_silent(bool yes) {
    const std::scoped_lock lock(mutex);
    silent = yes;
    news.notify_all();
  }
  std::vector<std::string> asked() {
    const std::scoped_lock lock(mutex);
    return hosts;
  }

  std::mutex mutex;
  std::condition_variable news;
  base::Result<Addresses> answer = at("10.0.0.1");
  bool silent = false;
  std::vector<std::string> hosts;
};

class ResolverTest : public ::testing::Test {
 protected:
  ResolverTest() {
    resolver.emplace(
        context, clock, [this](const std::string& line) { lines.push_back(line); },
        [system = system](const base::Endpoint& asked) { return system->look_up(asked); });
  }

  std::shared_ptr<ServerGroup> server_group_of(const std::string& name,
                                               std::initializer_list<const char*> hosts,
                                               base::Duration period = 1ms) {
    UpstreamSettings settings;
    settings.name = name;
    settings.resolve = period;
    std::vector<Server> servers;
    for (const auto* host : hosts) {
      settings.servers.push_back({.address = {.host = host, .port = 80, .unix_path = {}}});
      servers.push_back({settings.servers.back().address.to_string(), known});
    }
    return std::make_shared<ServerGroup>(settings, std::move(servers));
  }
  template <class Done>
  void until(Done done) {
    ASSERT_TRUE(net::turn_until(context, done));
  }
  Resolver::Figures figures() { return resolver->figures().at(0); }

  net::asio::io_context context{1};
  net::Clock clock;
  Addresses known = at("10.0.0.1");  // addresses that servers have at first
  std::vector<std::string> lines;
  std::shared_ptr<System> system = std::make_shared<System>();  // may outlive the test
  std::optional<Resolver> resolver;
};

TEST_F(ResolverTest, ServerGetsTheAddressesOfItsName) {
  const auto server_group = server_group_of("api", {"api.test"});
  resolver->watch({server_group});
  until([&] { return figures().same >= 2; });
  EXPECT_THAT(lines, IsEmpty());
  system->say(at("10.0.0.2"));
  until([&] { return figures().changed == 1 && figures().same >= 3; });
  EXPECT_EQ(server_group->member(0).server().addresses, at("10.0.0.2"));
  EXPECT_THAT(lines,
              ElementsAre("upstream \"api\": server api.test:80 now resolves to 10.0.0.2; before: 10.0.0.1"));
}

TEST_F(ResolverTest, ReportsAFailureOnceAndKeepsTheAddresses) {
  const auto server_group = server_group_of("api", {"api.test"});
  system->say(base::Error{"cannot resolve \"api.test\": Host not found"});
  resolver->watch({server_group});
  until([&] { return figures().failed >= 3; });
  system->say(Addresses{});
  const auto failed = figures().failed;
  until([&] { return figures().failed >= failed + 3; });
  EXPECT_THAT(lines,
              ElementsAre("upstream \"api\": server api.test:80 keeps its addresses 10.0.0.1: cannot resolve "
                          "\"api.test\": Host not found"));
  EXPECT_EQ(server_group->member(0).server().addresses, at("10.0.0.1"));
  system->say(at("10.0.0.1"));
  until([&] { return figures().same >= 2; });
  EXPECT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines.back(), HasSubstr("server api.test:80 resolves again"));
}

TEST_F(ResolverTest, ServerWithoutAddressesIsDownUntilALookUpSucceeds) {
  known.clear();
  const auto server_group = server_group_of("api", {"api.test", "other.test"});
  EXPECT_FALSE(server_group->member(0).serves());
  system->say(base::Error{"cannot resolve \"api.test\": Host not found"});
  resolver->watch({server_group});
  until([&] { return figures().failed >= 3; });
  EXPECT_FALSE(server_group->member(0).serves());
  EXPECT_THAT(lines, IsEmpty()) << "the failure was reported at the start";
  system->say(at("10.0.0.2"));
  until([&] { return server_group->member(0).serves() && server_group->member(1).serves(); });
  EXPECT_EQ(server_group->member(0).server().addresses, at("10.0.0.2"));
  EXPECT_THAT(lines, Contains(HasSubstr("server api.test:80 resolves now, to 10.0.0.2")));
}

TEST_F(ResolverTest, WithoutARefreshIntervalANameIsLookedUpUntilItHasAnAddress) {
  known.clear();
  const auto server_group = server_group_of("api", {"api.test"}, 0s);
  system->say(at("10.0.0.2"));
  resolver->watch({server_group});
  until([&] { return server_group->member(0).serves(); });
  const auto asked = system->asked().size();
  resolver->watch({server_group});
  EXPECT_EQ(system->asked().size(), asked);
  EXPECT_EQ(server_group->member(0).server().addresses, at("10.0.0.2"));
}

TEST_F(ResolverTest, LooksUpOnlyHostNamesAndOnlyIfConfigured) {
  const auto some = server_group_of("some", {"10.0.0.1", "a.test", "::1", "b.test"});
  const auto never = server_group_of("never", {"c.test"}, 0s);
  const auto none = server_group_of("none", {"10.0.0.1"});
  resolver->watch({some, never, none});
  until([&] { return figures().same >= 20; });
  const auto asked = system->asked();
  EXPECT_GE(std::count(asked.begin(), asked.end(), "a.test"), 5);
  EXPECT_GE(std::count(asked.begin(), asked.end(), "b.test"), 5) << "each name is looked up in turn";
  EXPECT_EQ(std::count(asked.begin(), asked.end(), "c.test"), 0);
  EXPECT_EQ(resolver->figures().size(), 1U);
}

TEST_F(ResolverTest, ServerCanBeRemovedDuringItsLookUp) {
  const auto older = server_group_of("old", {"old.test"});
  const auto newer = server_group_of("new", {"new.test"});
  system->be_silent(true);
  resolver->watch({older});
  until([&] { return !system->asked().empty(); });
  resolver->watch({newer});
  system->say(at("10.0.0.9"));
  system->be_silent(false);
  until([&] { return figures().changed == 1; });
  EXPECT_EQ(older->member(0).server().addresses, at("10.0.0.1"));
  EXPECT_EQ(newer->member(0).server().addresses, at("10.0.0.9"));
  EXPECT_EQ(figures().upstream, "new");
}

TEST_F(ResolverTest, CountersAreKeptAfterAReload) {
  resolver->watch({server_group_of("api", {"api.test"})});
  until([&] { return figures().same >= 1; });
  const auto same = figures().same;
  resolver->watch({server_group_of("api", {"api.test"}, 1h)});
  EXPECT_EQ(figures().same, same);
  resolver->watch({});
  EXPECT_THAT(resolver->figures(), IsEmpty());
}

TEST_F(ResolverTest, DestructionDoesNotWaitForANameServer) {
  system->be_silent(true);
  resolver->watch({server_group_of("api", {"api.test"})});
  until([&] { return !system->asked().empty(); });
  const auto began = std::chrono::steady_clock::now();
  resolver.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  system->be_silent(false);  // releases the look-up; nobody receives its answer
  context.restart();
  context.run_for(10ms);
}

}  // namespace
}  // namespace weir::upstream
