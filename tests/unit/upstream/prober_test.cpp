// Tests a prober with a server that the test controls. Both run on the same event loop.
#include "weir/upstream/prober.hpp"

#include "unit/net/sockets.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace weir::upstream {
namespace {

class ProberTest : public ::testing::Test {
 protected:
  ProberTest() {
    auto listening = net::ListeningSocket::open({.host = "127.0.0.1", .port = 0, .unix_path = {}}).value();
    settings.name = "api";
    settings.servers.push_back({.address = listening.address()});
    settings.health = HealthCheck{.path = "/health?deep",
                                  .interval = std::chrono::milliseconds(20),
                                  .timeout = std::chrono::seconds(10),
                                  .unhealthy_after = 2,
                                  .healthy_after = 2,
                                  .statuses = {{200, 299}}};
    acceptor.emplace(std::move(listening).into_acceptor(context.get_executor()));
  }

  // Creates one server without earlier results, and starts to probe the server.
  void ask() {
    auto servers = resolve_servers(settings).value();
    server = servers[0].name;
    server_group = std::make_shared<ServerGroup>(settings, std::move(servers),
                                                 [this](const std::string& line) { lines.push_back(line); });
    if (!prober) prober.emplace(context.get_executor(), clock);
    prober->watch({server_group});
  }
  // Accepts the next probe's connection.
  net::Descriptor accept() {
    net::Socket asking(context.get_executor());
    bool accepted = false;
    acceptor->async_accept(asking, [&](const net::ErrorCode&) { accepted = true; });
    EXPECT_TRUE(net::turn_until(context, [&] { return accepted; }));
    return net::Descriptor(asking.release());
  }
  // Answers the next probe. Returns its request.
  std::string answer(std::string_view bytes) {
    const auto asking = accept();
    std::string asked;
    EXPECT_TRUE(net::turn_until(context, [&] {
      std::array<char, 500> piece{};
      const auto count = ::recv(asking.number(), piece.data(), piece.size(), MSG_DONTWAIT);
      if (count > 0) asked.append(piece.data(), static_cast<std::size_t>(count));
      return asked.ends_with("\r\n\r\n");
    }));
    net::send_all(asking.number(), bytes);
    return asked;
  }
  // Returns the text after the server's name in the next log line.
  std::string next_word() {
    if (!net::turn_until(context, [&] { return !lines.empty(); })) return "nothing";
    const auto line = lines.front();
    lines.erase(lines.begin());
    const auto at = line.find("server " + server);
    return at == std::string::npos ? line : line.substr(at + 7 + server.size());
  }

  net::asio::io_context context{1};
  net::Clock clock;
  UpstreamSettings settings;
  std::string server;
  std::optional<net::AcceptorSocket> acceptor;
  std::vector<std::string> lines;
  std::shared_ptr<ServerGroup> server_group;
  std::optional<Prober> prober;
};

TEST_F(ProberTest, ProbeRequestsTheHealthCheckPathOnASeparateConnection) {
  ask();
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(answer("HTTP/1.1 200 OK\r\n\r\n"),
              "GET /health?deep HTTP/1.1\r\nHost: " + server +
                  "\r\nUser-Agent: weir-health\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(server_group->member(0).serves()) << "a new server is assumed to be healthy";
}

TEST_F(ProberTest, ConsecutiveFailuresMarkAServerDownAndSuccessesReadmitIt) {
  ask();
  const std::string_view good = "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No\r\n\r\n";
  const std::string_view bad = "HTTP/1.1 500 No\r\n\r\n";
  for (const auto each : {bad, good, bad, bad}) answer(each);
  EXPECT_EQ(next_word(), " is down: it returns 500");
  EXPECT_FALSE(server_group->member(0).serves());
  for (const auto each : {good, bad, good, good}) answer(each);
  EXPECT_EQ(next_word(), " is back");
  EXPECT_TRUE(server_group->member(0).serves());
}

TEST_F(ProberTest, InvalidResponseCountsAsAFailure) {
  settings.health->unhealthy_after = 1;
  ask();
  answer("hello, who is there?\r\n");
  EXPECT_EQ(next_word(), " is down: its response is not HTTP");
  for (const std::string_view cut : {"HTTP/1.1 2", ""}) {
    ask();
    answer(cut);
    EXPECT_EQ(next_word(), " is down: the connection ended before its response");
  }
}

TEST_F(ProberTest, ServerThatDoesNotRespondIsReportedAsTooLate) {
  settings.health->unhealthy_after = 1;
  settings.health->timeout = std::chrono::milliseconds(100);
  ask();
  const auto unanswered = accept();
  EXPECT_EQ(next_word(), " is down: no response in time");
}

TEST_F(ProberTest, ServerThatRefusesConnectionsIsReportedAsUnreachable) {
  settings.health->unhealthy_after = 1;
  acceptor.reset();
  ask();
  EXPECT_EQ(next_word(), " is down: no connection");
}

TEST_F(ProberTest, RemovedServerIsNoLongerProbed) {
  ask();
  answer("HTTP/1.1 200 OK\r\n\r\n");
  prober->watch({});
  const auto another = std::make_shared<ServerGroup>(settings, resolve_servers(settings).value());
  prober->watch({another});
  for (int i = 0; i < 3; ++i) answer("HTTP/1.1 500 No\r\n\r\n");
  EXPECT_FALSE(another->member(0).serves());
  EXPECT_TRUE(server_group->member(0).serves()) << "the former server is not probed as well";
}

}  // namespace
}  // namespace weir::upstream
