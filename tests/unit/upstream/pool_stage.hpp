#pragma once

#include "unit/net/sockets.hpp"
#include "unit/net/ticks.hpp"

#include "weir/upstream/pool.hpp"

#include <optional>
#include <string>
#include <vector>

#include <boost/asio/error.hpp>
#include <gtest/gtest.h>

namespace weir::upstream {

// An upstream whose servers are listening sockets of this test. The test does not accept the connections;
// they stay in the kernel's backlog.
class PoolTest : public ::testing::Test {
 protected:
  PoolTest() : watchdog(context.get_executor()), ticks(watchdog) { watchdog.start(); }

  Pool& open(std::size_t count, Balance balance = Balance::LeastInFlight) {
    pool.reset();
    server_group.reset();
    listeners.clear();
    settings.name = "api";
    settings.balance = balance;
    settings.servers.clear();
    for (std::size_t i = 0; i < count; ++i) {
      listeners.push_back(
          net::ListeningSocket::open({.host = "127.0.0.1", .port = 0, .unix_path = {}}).value());
      settings.servers.push_back({.address = listeners.back()->address()});
    }
    return reopen();
  }
  // Makes the pool again with the present settings.
  Pool& reopen() {
    pool.reset();
    servers = resolve_servers(settings).value();
    server_group.emplace(settings, servers, [this](const std::string& line) { lines.push_back(line); });
    return pool.emplace(context.get_executor(), watchdog, *server_group);
  }
  // Replaces the address of the only server by an address that no host uses (RFC 5737).
  void open_elsewhere() {
    const auto away = net::resolve({.host = "192.0.2.1", .port = 1, .unix_path = {}});
    server_group->member(0).move_to(away.value(), now);
  }
  // Records a request for which no connection to the server could be opened.
  void fail(std::size_t server) { server_group->member(server).unreachable(now); }
  // Accepts the oldest connection in a server's backlog. Drops the other connections.
  net::Socket accept(std::size_t server) {
    auto listening = std::move(*listeners[server]);
    auto again = listening.again();
    listeners[server].emplace(std::move(*again));
    auto acceptor = std::move(listening).into_acceptor(context.get_executor());
    return acceptor.accept();
  }
  net::ErrorCode connected(Lease& lease) { return net::run(context, connect(lease)); }
  static net::Task<net::ErrorCode> connect(Lease& lease) {
    std::string fault;
    const auto ec = co_await lease.connect({}, std::chrono::seconds(1), fault);
    EXPECT_EQ(fault, "") << "the server does not use TLS";
    co_return ec;
  }
  void pass(int count) {
    const int end = ticks.seen + count;
    ASSERT_TRUE(net::turn_until(context, [&] { return ticks.seen >= end; }));
  }

  net::asio::io_context context{1};
  net::Watchdog watchdog;
  net::Ticks ticks;
  UpstreamSettings settings;
  std::vector<std::optional<net::ListeningSocket>> listeners;
  std::vector<Server> servers;
  std::vector<std::string> lines;
  base::TimePoint now{base::Duration{1'700'000'000'000'000}};
  std::optional<ServerGroup> server_group;
  std::optional<Pool> pool;
};

}  // namespace weir::upstream
